"""The home of an execution: has other wraps take part, and copes with the loss of one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from wrap.cluster.notices import UNKNOWN, Notices, address_of, is_there, other_than
from wrap.cluster.peers import BEGIN, PeerProtocol, Peers, is_needed
from wrap.cluster.store_path import outputs
from wrap.core.errors import TaskError
from wrap.core.program import Component, Key, keys
from wrap.core.recovery import Again, Tally, to_run_again
from wrap.dispatch.live import begin_next, fail_later
from wrap.dispatch.storing import fetched
from wrap.event_loop.threads import ThreadPool
from wrap.net.direct import answered, is_refused
from wrap.net.gateway_client import OK
from wrap.net.messages import Request, Result
from wrap.net.peer_connection import Message, Received
from wrap.net.peer_pool import Asked
from wrap.net.transport import GRACE_S
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution

#: So often a broken connection to a wrap that is still there is made anew in an execution.
_RENEWED = 5


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
        self._notices: Notices
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
        self._notices = Notices(execution, self.exchange.direct, self.routes, self._tally)
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
        piecewise = execution.client is not None
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
        elif is_refused(answer):
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
        self._threads.start(partial(self._recovers, find))

    def _recovers(self, find: Callable[[], None]) -> None:
        """Fail the execution if `find` cannot go on: else it would wait until its deadline."""
        try:
            find()
        except Exception as error:  # no thread, descriptor or memory could be had
            message = f"{type(error).__name__}: {error}"
            self._execution.fail(TaskError("wrap-failed", message))

    def _recover(self, name: str, request: Request) -> None:
        """A connection broke: make another one, or have another replica do what was lost."""
        direct, execution = self.exchange.direct, self._execution
        is_wanted = lambda: time.monotonic() < self._deadline and not execution.over  # noqa: E731
        if is_there(direct, self.routes[name]):
            execution.event(self._renew, name, request)
        elif address := address_of(
            direct, name, self.routes[name], execution.ident.number, is_wanted
        ):
            self._replace(name, address)
        # Else the execution is over, or will be at its deadline.

    def _turn_to_another(self, name: str, request: Request) -> None:
        """A wrap has not begun, as it is ending: where no other one is of its build, it has to."""
        direct, number = self.exchange.direct, self._execution.ident.number
        if address := other_than(direct, name, self.routes[name], number):
            self._replace(name, address, has_begun=False)
        else:
            self._execution.event(self._urge, name, request.tasks)

    def _urge(self, name: str, tasks: Iterable[int]) -> None:
        self._losing.discard(name)
        self._begin(name, tasks, urged=True)

    def _replace(self, name: str, address: str, has_begun: bool = True) -> None:
        """Run what is needed of what a wrap has lost, or has not begun.

        What others send it, or one that has to run more than before, may come before it begins.
        """
        with self._recovering:
            others = list[str]()
            self._execution.event(self._moved, name, address, has_begun, others)
            spared = "" if has_begun else name
            has = self._notices.of_place(others, name)
            self._run_what_is_gone(name, has, spared=spared)

    def broke(self, execution: Execution, task: int, attempt: int, error: TaskError) -> None:
        """All that live streams connect with a task runs again, or the execution has failed."""
        component = self._wrap.components[task]
        again = self._tally.broke(component, attempt)
        if again is None:
            fail_later(execution, error)
        elif again:
            self._threads.start(partial(self._recovers, partial(self._repeat, component)))

    def _repeat(self, component: Component) -> None:
        with self._recovering:
            others = list[str]()
            self._execution.event(lambda: others.extend(self._open))
            self._run_what_is_gone("", self._notices.of_attempt(others, component), component)

    def _run_what_is_gone(
        self,
        name: str,
        has: dict[str, set[int]],
        broken: Collection[int] = (),
        spared: str = "",
    ) -> None:
        """Run again what is gone with a wrap, or what broke, by what the others have.

        The wrap that is `spared` had begun nothing, so that no attempt is over with it.
        """
        ended = True
        while ended:
            seen = list[Again]()
            self._execution.event(self._see, name, has, broken, spared, seen)
            if not seen:
                return  # it is over
            ended = False
            for component in {self._wrap.components[task] for task in seen[0].repeat}:
                wraps = {self._wrap.wrap_of[task] for task in component & seen[0].repeat}
                told = [
                    each
                    for each in wraps & has.keys()
                    if each != self.home and not self._tally.knows(each, component)
                ]
                if not told:
                    continue
                for each in set(told).difference(self._notices.of_attempt(told, component)):
                    ended = True  # so it has kept nothing
                    del has[each]
        again = dict[str, set[int]]()
        self._execution.event(self._await_again, name, seen[0].begin, again)
        for each in again:
            self._notices.of_place([each], each)
            self._notices.of_place(has.keys() - {each}, each)
        self._execution.event(self._run_again, again)

    def _renew(self, name: str, request: Request) -> None:
        self._losing.discard(name)
        self._renewed += 1
        if self._renewed > _RENEWED:
            raise TaskError("remote", f"connections to wrap {name} break again and again")
        self._begin(name, request.tasks, renewed=True)

    def _moved(self, name: str, address: str, has_begun: bool, others: list[str]) -> None:
        is_lost = has_begun and self.routes[name] != ""
        self._lost[name] = self._lost.get(name, 0) + is_lost
        if self._lost[name] >= self._wrap.attempts:
            raise _ended_while_it_ran(name)
        self.routes[name] = address
        others += [other for other in self._open if other != name]

    def _see(
        self,
        name: str,
        has: Mapping[str, set[int]],
        broken: Collection[int],
        spared: str,
        seen: list[Again],
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
                if place != spared and self._tally.lost(place, component) is None:
                    raise _ended_while_it_ran(name)
        for task in found.repeat:
            if wrap.wrap_of[task] == home:
                begin_next(self._execution, task, self._tally.now[wrap.components[task]])
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
