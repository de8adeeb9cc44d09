"""The coordinator of an execution: asks other wraps to take part, and recovers from their loss.

`wrap.core.participants` has the rules. This module sends the questions, and recovers in threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from wrap.cluster.notices import UNKNOWN, Notices, is_reachable, other_replica, replacement_replica
from wrap.cluster.peers import BEGIN, PeerProtocol, Peers
from wrap.cluster.store_path import outputs
from wrap.core.errors import TaskError
from wrap.core.limits import left_s
from wrap.core.participants import Participants, Reply
from wrap.core.program import Component, Key, keys
from wrap.core.recovery import Rerun
from wrap.core.sharing import is_needed
from wrap.dispatch.live import begin_next, fail_later
from wrap.dispatch.storing import fetched
from wrap.dispatch.task_threads import handed_on
from wrap.event_loop.threads import ThreadPool
from wrap.net.direct import answered, is_refused
from wrap.net.gateway_client import OK
from wrap.net.messages import Request, Result
from wrap.net.peer_connection import Message, Received
from wrap.net.peer_pool import PendingQuestion
from wrap.net.transport import GRACE_S
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution


class Coordinator(Peers):
    """The other wraps, from the coordinator's side. Called while an event is handled."""

    grace_s = GRACE_S

    def __init__(
        self,
        protocol: PeerProtocol,
        threads: ThreadPool,
        routes: dict[str, str],
        wanted: frozenset[int],
        deadline: float,
    ) -> None:
        super().__init__(protocol, protocol.wrap.name, routes, wanted)
        self.needs = partial(is_needed, protocol.wrap.takers, protocol.wrap.name, wanted)
        self._threads = threads
        self._deadline = deadline
        self._execution: Execution
        self._notices: Notices
        self._participants = Participants(protocol.wrap, wanted)
        #: Wrap -> the last question to it, which may have been answered.
        self._questions: dict[str, PendingQuestion] = {}
        self._recovering = threading.Lock()

    def is_waiting(self, here: Collection[int]) -> bool:
        """Return whether a wrap has not answered, or an object is missing or being stored."""
        return self._storing > 0 or self._participants.is_waiting(here)

    def begin(self, execution: Execution) -> None:
        """Ask all other wraps to begin. Executions that wait here block no workers there."""
        self._execution = execution
        direct = self.protocol.direct
        self._notices = Notices(execution, direct, self.routes, self._participants)
        for name, tasks in self._wrap.remotes.items():
            self._ask(name, tasks)

    def timeout_error(self) -> TaskError | None:
        return self._participants.timeout_error()

    def loss_error(self) -> TaskError | None:
        return self._participants.loss_error()

    def close(self) -> None:
        for asked in self._questions.values():
            asked.cancel()

    def streams_broke(
        self, execution: Execution, task: int, attempt: int, error: TaskError
    ) -> None:
        """Begin another attempt of all tasks that live streams connect with `task`, or fail."""
        component = self._wrap.components[task]
        again = self._participants.attempts.count_break(component, attempt)
        if again is None:
            fail_later(execution, error)
        elif again:
            self._recover(partial(self._repeat, component))

    def _ask(
        self, name: str, tasks: Iterable[int], renewed: bool = False, urged: bool = False
    ) -> None:
        execution = self._execution
        number, needed, attempts = self._participants.ask(name, tasks)
        objects: dict[Key, Object] = {}
        if any(None in keys(self._wrap.inputs[task]) for task in needed):
            objects[None] = execution.data[None]
        wanted = self.wanted.intersection(needed)
        piecewise = execution.client is not None
        request = Request(execution.ident, needed, objects, wanted, piecewise=piecewise)
        now = time.monotonic()
        fields = [
            left_s(now, self._deadline),
            self.coordinator,
            self.routes,
            renewed,
            urged,
            attempts,
        ]
        message = Message(BEGIN, fields, request.frames())

        def on_answer(answer: Received | None) -> None:
            execution.event_of(len(needed), self._replied, name, number, request, now, answer)

        pool = self.protocol.direct.pool
        self._questions[name] = pool.ask(self.routes[name], message, on_answer)

    def _replied(
        self, name: str, number: int, request: Request, asked: float, answer: Received | None
    ) -> None:
        reply = _reply_of(answer)
        if not self._participants.replied(name, number, reply):
            return  # the wrap has been asked again
        if answer is None:
            self._recover(partial(self._reconnect, name))
        elif reply is Reply.UNKNOWN:
            self._recover(partial(self._replace, name, self.routes[name]))
        elif reply is Reply.REFUSED:
            self._recover(partial(self._use_another_replica, name))
        else:
            results = answered(name, answer, request, asked)
            take = partial(self._take, name, number, results)
            fetched(self._execution, outputs(results).values(), take)

    def _take(self, name: str, number: int, results: list[Result]) -> None:
        self._participants.ended(name, number)
        self._execution.accept_answer(results)

    def _recover(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread, as it may wait for wraps; fail the execution on an error."""

        def recover() -> None:
            try:
                work()
            except Exception as error:  # no thread, descriptor or memory is available
                message = f"{type(error).__name__}: {error}"
                self._execution.fail(TaskError("wrap-failed", message))

        self._threads.start(recover)

    def _is_wanted(self, name: str) -> bool:
        """Return whether to keep looking for a replica of a wrap.

        Not if the wrap seems to be of another build by now, and the request was handed on.
        """
        execution = self._execution
        if self.protocol.direct.replicas(name).is_stranger and handed_on(execution):
            return False
        return time.monotonic() < self._deadline and not execution.over

    def _reconnect(self, name: str) -> None:
        """Reconnect after a broken connection, or have another replica run the lost tasks."""
        direct, number = self.protocol.direct, self._execution.ident.number
        lost = self.routes[name]
        if is_reachable(direct, lost):
            self._execution.event(self._ask_once_more, name)
        elif address := replacement_replica(
            direct, name, lost, number, partial(self._is_wanted, name)
        ):
            self._replace(name, address)
        # Otherwise the execution is over, or will be at its deadline.

    def _ask_once_more(self, name: str) -> None:
        self._ask(name, self._participants.reconnected(name), renewed=True)

    def _use_another_replica(self, name: str) -> None:
        """Use another replica: the wrap is shutting down. If no other has this build, urge it."""
        direct, number = self.protocol.direct, self._execution.ident.number
        ending = self.routes[name]
        if address := other_replica(direct, name, ending, number, partial(self._is_wanted, name)):
            self._replace(name, address, has_begun=False)
        else:
            self._execution.event(self._force, name)

    def _force(self, name: str) -> None:
        self._ask(name, self._participants.tasks_to_force(name), urged=True)

    def _replace(self, name: str, address: str, has_begun: bool = True) -> None:
        """Run the needed tasks that a wrap has lost or not begun, at a new address.

        Objects may reach a wrap before it begins there, or begins again with more tasks.
        """
        with self._recovering:
            others = list[str]()
            self._execution.event(self._record_replacement, name, address, has_begun, others)
            not_begun = "" if has_begun else name
            objects_at = self._notices.notify_address(others, name)
            self._rerun_lost(name, objects_at, not_begun=not_begun)

    def _record_replacement(
        self, name: str, address: str, has_begun: bool, others: list[str]
    ) -> None:
        is_lost = has_begun and self.routes[name] != ""
        others += self._participants.replaced(name, is_lost)
        self.routes[name] = address

    def _repeat(self, component: Component) -> None:
        with self._recovering:
            others = list[str]()
            self._execution.event(lambda: others.extend(self._participants.asked))
            self._rerun_lost("", self._notices.notify_attempt(others, component), component)

    def _rerun_lost(
        self,
        name: str,
        objects_at: dict[str, set[int]],
        broken: Collection[int] = (),
        not_begun: str = "",
    ) -> None:
        """Run the lost or broken tasks again; see `Participants.rerun_after_loss`."""
        all_confirmed = False
        while not all_confirmed:
            found = list[Rerun]()
            self._execution.event(self._find_rerun, name, objects_at, broken, not_begun, found)
            if not found:
                return  # the execution is over
            all_confirmed = True
            for component, wraps in self._participants.wraps_to_notify(
                found[0].repeat, objects_at
            ).items():
                for each in set(wraps).difference(self._notices.notify_attempt(wraps, component)):
                    all_confirmed = False  # the wrap has ended and kept nothing
                    del objects_at[each]
        again = dict[str, Collection[int]]()
        begin = found[0].begin
        self._execution.event(lambda: again.update(self._participants.begin_again(name, begin)))
        for each in again:
            self._notices.notify_address([each], each)
            self._notices.notify_address(objects_at.keys() - {each}, each)
        self._execution.event(self._ask_again, again)

    def _find_rerun(
        self,
        name: str,
        objects_at: Mapping[str, set[int]],
        broken: Collection[int],
        not_begun: str,
        found: list[Rerun],
    ) -> None:
        """Find the tasks to run again, and restart those of this wrap that live streams connect."""
        here = self._execution.run.here
        rerun = self._participants.rerun_after_loss(name, objects_at, here, broken, not_begun)
        for task in rerun.repeat:
            if self._wrap.wrap_of[task] == self.coordinator:
                attempt = self._participants.attempt_of(self._wrap.components[task])
                begin_next(self._execution, task, attempt)
        found.append(rerun)

    def _ask_again(self, again: Mapping[str, Collection[int]]) -> None:
        for other, tasks in again.items():
            self._ask(other, tasks)
            self.resend_outputs(self._execution, other)


def _reply_of(answer: Received | None) -> Reply:
    """Return the kind of an answer; None stands for a broken connection."""
    if answer is None:
        return Reply.BROKEN
    if is_refused(answer):
        return Reply.REFUSED
    status = answer.fields[0]
    return {OK: Reply.RESULTS, UNKNOWN: Reply.UNKNOWN}.get(status, Reply.FAILURE)
