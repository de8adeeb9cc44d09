"""The home of an execution: has other wraps take part, and copes with the loss of one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from wrap.direct import answered
from wrap.engine import Key, keys
from wrap.errors import TaskError
from wrap.exchange import BEGIN, MOVED, Exchange, Peers
from wrap.line import Message, Received
from wrap.lines import Asked
from wrap.messages import Request, Result
from wrap.objects import Object
from wrap.recovery import to_run_again
from wrap.remote import OK
from wrap.storing import outputs
from wrap.threads import ThreadPool
from wrap.transport import GRACE_S

if TYPE_CHECKING:
    from wrap.execution import Execution

#: What a wrap answers that does not know an execution, that has ended all its tasks in it, and
#: that takes part in no more.
UNKNOWN, ENDED, ENDING = 404, 410, 503
#: So often a broken connection to a wrap that is still there is made anew in an execution.
_RENEWED = 5
#: How long to wait before the gateway is asked again where a wrap is, in seconds.
_PAUSE_S = 0.05
#: How long another wrap is waited for that is to say what it has, in seconds.
_ANSWER_S = 2.0


class Home(Peers):
    """The other wraps, as the home sees them.

    Its methods, but `start`, are called while the execution handles an event.
    """

    grace_s = GRACE_S

    def __init__(
        self,
        exchange: Exchange,
        threads: ThreadPool,
        routes: dict[str, str],
        wanted: frozenset[int],
        deadline: float,
    ) -> None:
        super().__init__(exchange, exchange.wrap.name, routes, wanted)
        self._threads = threads
        self._deadline = deadline
        self._execution: Execution
        #: What each wrap was asked for that has not answered.
        self._open: dict[str, tuple[Request, Asked]] = {}
        self._losing: set[str] = set()
        self._lost: dict[str, int] = {}
        self._renewed = 0
        self._recovering = threading.Lock()

    @property
    def waiting(self) -> bool:
        """Whether a wrap has not answered, or an object has not come."""
        missing = not self.wanted <= self._execution.here
        return bool(self._open or self._losing) or missing or self._storing > 0

    def start(self, execution: Execution) -> None:
        """Have all other wraps take part."""
        self._execution = execution
        for name, tasks in self._wrap.remotes.items():
            self._begin(name, tasks)

    def needs(self, task: int) -> bool:
        """As `Peers.needs` says."""
        return task in self.wanted or super().needs(task)

    def late(self) -> TaskError | None:
        """Which wraps have not answered, or are gone."""
        wraps = sorted(self._losing) or sorted(self._open)
        if not wraps:
            return None
        what = "ended, and was not there again" if self._losing else "did not answer"
        error = TaskError("timeout", f"{', '.join(wraps)} {what} in time", status=504)
        return error.located(None, wraps[0])

    def close(self) -> None:
        """Want nothing of the others any more."""
        for _, asked in self._open.values():
            asked.cancel()

    def _begin(self, name: str, tasks: Iterable[int], renewed: bool = False) -> None:
        execution, needed = self._execution, sorted(tasks)
        objects: dict[Key, Object] = {}
        if any(None in keys(self._wrap.inputs[task]) for task in needed):
            objects[None] = execution.data[None]
        request = Request(execution.ident, needed, objects, self.wanted.intersection(needed))
        now = time.monotonic()
        fields = [max(0.001, self._deadline - now), self.home, self.routes, renewed]
        message = Message(BEGIN, fields, request.frames())

        def got(answer: Received | None) -> None:
            execution.event(self._took, name, request, now, answer)

        self._open[name] = request, self.exchange.direct.lines.ask(self.routes[name], message, got)

    def _took(self, name: str, request: Request, asked: float, answer: Received | None) -> None:
        """A wrap has answered, or its connection broke."""
        if name not in self._open or self._open[name][0] is not request:
            return
        if answer is None:
            self._lose(name, partial(self._recover, name, request))
        elif answer.fields[0] == UNKNOWN:
            self._lose(name, partial(self._replace, name, self.routes[name]))
        elif answer.fields[0] == ENDING and not answer.content:
            self._lose(name, partial(self._turn_to_another, name, request))
        else:
            results = answered(name, answer, request, asked)
            self._execution.fetched(
                outputs(results).values(), partial(self._has_answered, name, results)
            )

    def _has_answered(self, name: str, results: list[Result]) -> None:
        del self._open[name]
        self._execution.took(results)

    def _lose(self, name: str, find: Callable[[], None]) -> None:
        """Go on without a wrap until there is one in its place."""
        del self._open[name]
        self._losing.add(name)
        self._threads.start(find)

    def _recover(self, name: str, request: Request) -> None:
        """A connection broke: make another one, or have another replica do what was lost."""
        if self._is_there(self.routes[name]):
            self._execution.event(self._renew, name, request)
        elif address := self._found(name):
            self._replace(name, address)
        # Else the execution is over, or will be at its deadline.

    def _turn_to_another(self, name: str, request: Request) -> None:
        """A wrap has not begun, as it is ending."""
        time.sleep(_PAUSE_S)
        if address := self._found(name):
            self.routes[name] = address
            self._execution.event(self._begin_lost, name, request.tasks)

    def _begin_lost(self, name: str, tasks: Iterable[int]) -> None:
        self._losing.discard(name)
        self._begin(name, tasks)

    def _replace(self, name: str, address: str) -> None:
        """Run what is needed of what a wrap has lost."""
        with self._recovering:
            others = list[str]()
            self._execution.event(self._moved, name, address, others)
            has = self._told(name, address, others)
            self._execution.event(self._run_again, name, has)

    def _is_there(self, address: str) -> bool:
        try:
            self.exchange.direct.lines.reach(address)
        except (OSError, ValueError):
            return False
        return True

    def _found(self, name: str) -> str | None:
        """Where a wrap is that was lost; None where it is not there in time."""
        replicas = self.exchange.direct.replicas(name)
        replicas.forget(self.routes[name])
        replicas.ask_again()
        while time.monotonic() < self._deadline and not self._execution.over:
            if address := replicas.of(self._execution.ident.number):
                return address
            replicas.ask_again()
            time.sleep(_PAUSE_S)
        return None

    def _renew(self, name: str, request: Request) -> None:
        self._losing.discard(name)
        self._renewed += 1
        if self._renewed > _RENEWED:
            raise TaskError("remote", f"connections to wrap {name} break again and again")
        self._begin(name, request.tasks, renewed=True)

    def _moved(self, name: str, address: str, others: list[str]) -> None:
        self._lost[name] = self._lost.get(name, 0) + (self.routes[name] != "")
        if self._lost[name] >= self._wrap.attempts:
            raise TaskError("remote", f"wrap {name} ended while it ran").located(None, name)
        self.routes[name] = address
        others += [other for other in self._open if other != name]

    def _told(self, name: str, address: str, others: Sequence[str]) -> dict[str, set[int]]:
        """Tell the others where a wrap is now; what each has of the execution.

        Who does not say so may have nothing yet; who has ended all its tasks is not among them.
        """
        message = Message(MOVED, [self._execution.ident.number, name, address])
        addresses = {other: self.routes[other] for other in others}
        has: dict[str, set[int]] = {other: set() for other in others}
        answers = self.exchange.direct.lines.ask_all(addresses, message, _ANSWER_S)
        for other, answer in answers.items():
            if answer.fields[0] == OK:
                has[other] = set(answer.fields[1])
            elif answer.fields[0] == ENDED:
                del has[other]
        return has

    def _run_again(self, name: str, has: Mapping[str, set[int]]) -> None:
        self._losing.discard(name)
        here, graph = self._execution.here, self._wrap.graph
        again = to_run_again(
            name,
            self._wrap.wrap_of,
            graph.needs,
            self._wrap.takers,
            {**has, self.home: here},
            self.wanted,
            self.home,
        )
        for other, tasks in again.items():
            if other not in self._losing:  # else it gets what is needed by itself
                self._begin(other, tasks)
                self.send_again(self._execution, other)
                self._tell_of(other, has)
        self._execution.took([])

    def _tell_of(self, name: str, others: Iterable[str]) -> None:
        """Have the others send again what they have for a wrap that has kept nothing."""
        message = Message(MOVED, [self._execution.ident.number, name, self.routes[name]])
        for other in others:
            if other != name:
                self.exchange.direct.lines.ask(self.routes[other], message, _ignored)

    def relay(self, to: str, given: Mapping[int, Object | None]) -> None:
        """Send on what another wrap could not send."""
        self.send(self._execution, to, given)


def _ignored(_: Received | None) -> None:
    """What it has is of no importance."""
