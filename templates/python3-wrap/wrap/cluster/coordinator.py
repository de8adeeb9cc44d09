"""The home of an execution: has other wraps take part, and copes with the loss of one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from wrap.cluster.peers import AGAIN, BEGIN, MOVED, PeerProtocol, Peers, is_needed
from wrap.cluster.store_path import outputs
from wrap.core.errors import TaskError
from wrap.core.program import Component, Key, keys
from wrap.core.recovery import Again, Tally, to_run_again
from wrap.dispatch.storing import fetched
from wrap.event_loop.threads import ThreadPool
from wrap.net.direct import answered
from wrap.net.gateway_client import OK
from wrap.net.messages import Request, Result
from wrap.net.peer_connection import Message, Received
from wrap.net.peer_pool import Asked
from wrap.net.transport import GRACE_S
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution

#: What a wrap answers that does not know an execution, that has ended all its tasks in it, and
#: that takes part in no more.
UNKNOWN, ENDED, ENDING = 404, 410, 503
#: So often a broken connection to a wrap that is still there is made anew in an execution.
_RENEWED = 5
#: How long to wait before the gateway is asked again where a wrap is, in seconds.
_PAUSE_S = 0.05
#: How long another wrap is waited for that is told of a loss, in seconds; and how often.
_ANSWER_S = 2.0
_TOLD = 3


class Coordinator(Peers):
    """The other wraps, as the home sees them.

    Its methods are called while the execution handles an event.
    """

    grace_s = GRACE_S

    def __init__(
        self,
        exchange: PeerProtocol,
        threads: ThreadPool,
        routes: dict[str, str],
        wanted: frozenset[int],
        deadline: float,
    ) -> None:
        super().__init__(exchange, exchange.wrap.name, routes, wanted)
        self.needs = partial(is_needed, exchange.wrap, wanted)
        self._threads = threads
        self._deadline = deadline
        self._execution: Execution
        self._begun = False
        #: What each wrap was asked for that has not answered.
        self._open: dict[str, tuple[Request, Asked]] = {}
        self._losing: set[str] = set()
        self._lost: dict[str, int] = {}
        self._renewed = 0
        self._tally = Tally(exchange.wrap.attempts)
        self._recovering = threading.Lock()

    @property
    def waiting(self) -> bool:
        """Whether a wrap has not answered, or an object has not come."""
        missing = self._begun and not self.wanted <= self._execution.run.here
        asked = bool(self._open or self._losing) or not self._begun
        return asked or missing or self._storing > 0

    def begin(self, execution: Execution) -> None:
        """Have all other wraps take part.

        Those that wait here for processes take none elsewhere.
        """
        self._execution, self._begun = execution, True
        for name, tasks in self._wrap.remotes.items():
            self._begin(name, tasks)

    def late(self) -> TaskError | None:
        """Which wraps have not answered, or are gone."""
        return self.gone() or _late(self._open, "did not answer")

    def gone(self) -> TaskError | None:
        """As `Peers.gone` says."""
        return _late(self._losing, "ended, and was not there again")

    def close(self) -> None:
        """Want nothing of the others any more."""
        for _, asked in self._open.values():
            asked.cancel()

    def _begin(
        self, name: str, tasks: Iterable[int], renewed: bool = False, urged: bool = False
    ) -> None:
        execution, needed = self._execution, sorted(tasks)
        objects: dict[Key, Object] = {}
        if any(None in keys(self._wrap.inputs[task]) for task in needed):
            objects[None] = execution.data[None]
        wanted = self.wanted.intersection(needed)
        piecewise = execution.is_piecewise
        request = Request(execution.ident, needed, objects, wanted, piecewise=piecewise)
        now = time.monotonic()
        attempts = list[tuple[int, int]]()
        for component, attempt in self._tally.now.items():
            attempts.append((min(component), attempt))
            self._tally.told(name, component, attempt)
        seconds = max(0.001, self._deadline - now)
        fields = [seconds, self.home, self.routes, renewed, urged, attempts]
        message = Message(BEGIN, fields, request.frames())

        def got(answer: Received | None) -> None:
            execution.event(self._took, name, request, now, answer)

        self._open[name] = request, self.exchange.direct.lines.ask(self.routes[name], message, got)

    def _took(self, name: str, request: Request, asked: float, answer: Received | None) -> None:
        """A wrap has answered, or its connection broke."""
        if name not in self._open or self._open[name][0] is not request:
            if answer is not None and answer.fields[0] == OK:  # it had ended, and begins again
                results = answered(name, answer, request, asked)
                objects = outputs(results).values()
                fetched(self._execution, objects, partial(self._execution.took, results))
            return
        if answer is None:
            self._lose(name, partial(self._recover, name, request))
        elif answer.fields[0] == UNKNOWN:
            self._lose(name, partial(self._replace, name, self.routes[name]))
        elif answer.fields[0] == ENDING and not answer.content:
            self._lose(name, partial(self._turn_to_another, name, request))
        else:
            results = answered(name, answer, request, asked)
            fetched(
                self._execution,
                outputs(results).values(),
                partial(self._has_answered, name, results),
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
        """A wrap has not begun, as it is ending: where no other one is of its build, it has to."""
        time.sleep(_PAUSE_S)
        replicas = self.exchange.direct.replicas(name)
        replicas.forget(self.routes[name])
        address = replicas.of(self._execution.ident.number, _PAUSE_S)
        self.routes[name] = address or self.routes[name]
        self._execution.event(self._begin_lost, name, request.tasks, address is None)

    def _begin_lost(self, name: str, tasks: Iterable[int], urged: bool) -> None:
        self._losing.discard(name)
        self._begin(name, tasks, urged=urged)

    def _replace(self, name: str, address: str) -> None:
        """Run what is needed of what a wrap has lost.

        What others send it, or one that has to run more than before, may come before it begins.
        """
        with self._recovering:
            others = list[str]()
            self._execution.event(self._moved, name, address, others)
            self._run_what_is_gone(name, self._told_where(others, name))

    def broke(self, execution: Execution, task: int, attempt: int, error: TaskError) -> None:
        """All that live streams connect with a task runs again, or the execution has failed."""
        component = self._wrap.components[task]
        again = self._tally.broke(component, attempt)
        if again is None:
            execution.fail_later(error)
        elif again:
            self._threads.start(partial(self._repeat, component))

    def _repeat(self, component: Component) -> None:
        with self._recovering:
            others = list[str]()
            self._execution.event(lambda: others.extend(self._open))
            self._run_what_is_gone("", self._told_again(others, component), component)

    def _run_what_is_gone(
        self, name: str, has: dict[str, set[int]], broken: Collection[int] = ()
    ) -> None:
        """Run again what is gone with a wrap, or what broke, by what the others have."""
        ended = True
        while ended:
            seen = list[Again]()
            self._execution.event(self._see, name, has, broken, seen)
            if not seen:
                return  # it is over
            ended = False
            for component in {self._wrap.components[task] for task in seen[0].repeat}:
                wraps = {self._wrap.wrap_of[task] for task in component & seen[0].repeat}
                told = [each for each in wraps & has.keys() if not self._knows(each, component)]
                for each in set(told).difference(self._told_again(told, component)):
                    ended = True  # so it has kept nothing
                    del has[each]
        again = dict[str, set[int]]()
        self._execution.event(self._await_again, name, seen[0].begin, again)
        for each in again:
            self._told_where([each], each)
            self._told_where(has.keys() - {each}, each)
        self._execution.event(self._run_again, again)

    def _knows(self, name: str, component: Component) -> bool:
        return name == self.home or self._tally.knows(name, component)

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
        while time.monotonic() < self._deadline and not self._execution.over:
            if address := replicas.of(self._execution.ident.number, _PAUSE_S):
                return address
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
            raise _ended_while_it_ran(name)
        self.routes[name] = address
        others += [other for other in self._open if other != name]

    def _told_where(self, names: Iterable[str], name: str) -> dict[str, set[int]]:
        """Tell wraps where another one is now, which gets what they have for it; what each has.

        One that hears of itself keeps nothing.
        """
        number = self._execution.ident.number
        return self._told(names, Message(MOVED, [number, name, self.routes[name]]))[0]

    def _told_again(self, names: Iterable[str], component: Component) -> dict[str, set[int]]:
        """Tell wraps of the attempt that some tasks are in now; what each has."""
        attempt = self._tally.now[component]
        fields = [self._execution.ident.number, min(component), attempt]
        has, known = self._told(names, Message(AGAIN, fields))
        for each in known:
            self._tally.told(each, component, attempt)
        return has

    def _told(self, names: Iterable[str], message: Message) -> tuple[dict[str, set[int]], set[str]]:
        """Tell wraps something; what each has, and which of them know the execution.

        Who does not say what it has may have nothing yet; who has ended all its tasks is not among
        them.
        """
        has: dict[str, set[int]] = {other: set() for other in names}
        left, known = set(has), set[str]()
        for _ in range(_TOLD):
            addresses = {other: self.routes[other] for other in left}
            for other, answer in self.exchange.direct.lines.ask_all(
                addresses, message, _ANSWER_S
            ).items():
                if answer.fields[0] == UNKNOWN and message.kind == AGAIN:
                    continue  # it may be about to begin, with the attempt before
                left.remove(other)
                if answer.fields[0] == OK:
                    has[other] = set(answer.fields[1])
                    known.add(other)
                elif answer.fields[0] == ENDED:
                    del has[other]
            if not left or self._execution.over:
                break
            time.sleep(_PAUSE_S)
        return has, known

    def _see(
        self, name: str, has: Mapping[str, set[int]], broken: Collection[int], seen: list[Again]
    ) -> None:
        """See what is to be run again. Raises TaskError where no attempt is left for that."""
        wrap, home = self._wrap, self.home
        runs = {other: self._open[other][0].tasks for other in has if other in self._open}
        found = to_run_again(
            name,
            wrap.wrap_of,
            wrap.graph.needs,
            wrap.takers,
            {**has, home: self._execution.run.here},
            {**runs, home: wrap.tasks},
            self.wanted,
            home,
            wrap.components,
            {*wrap.live, *map(wrap.giver_of, wrap.live)},
            broken,
        )
        for place, tasks in found.begin.items():
            for component in {wrap.components[task] for task in tasks if task in wrap.components}:
                if self._tally.lost(place, component) is None:
                    raise _ended_while_it_ran(name)
        for task in found.repeat:
            if wrap.wrap_of[task] == home:
                self._execution.next(task, self._tally.now[wrap.components[task]])
        seen.append(found)

    def _await_again(
        self, name: str, begin: Mapping[str, set[int]], again: dict[str, set[int]]
    ) -> None:
        """Await nothing more of what wraps had before that are to begin again."""
        for other, tasks in begin.items():
            if other == name or other not in self._losing:  # else it gets that by itself
                again[other] = tasks
                self._open.pop(other, None)
        self._losing.discard(name)
        self._losing.update(again)

    def _run_again(self, again: Mapping[str, set[int]]) -> None:
        for other, tasks in again.items():
            self._losing.discard(other)
            self._begin(other, tasks)
            self.send_again(self._execution, other)

    def relay(self, to: str, given: Mapping[int, Object | None]) -> None:
        """Send on what another wrap could not send."""
        self.send(self._execution, to, given)


def _ended_while_it_ran(name: str) -> TaskError:
    return TaskError("remote", f"wrap {name} ended while it ran").located(None, name)


def _late(wraps: Iterable[str], what: str) -> TaskError | None:
    names = sorted(wraps)
    if not names:
        return None
    error = TaskError("timeout", f"{', '.join(names)} {what} in time", status=504)
    return error.located(None, names[0])
