"""The workers of one execution: further processes that run some of its tasks."""

from __future__ import annotations

import time
import weakref
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from wrap.core.errors import TaskError
from wrap.core.events import WorkerEnded, WorkerLost
from wrap.core.program import Call
from wrap.core.run import WORKER_DIED, located
from wrap.core.workers import Worker
from wrap.net.messages import Request
from wrap.workers.worker import WorkerDiedError, WorkerProcess

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution


@dataclass
class _Taken:
    """A worker that the execution has taken."""

    process: WorkerProcess
    #: When the worker was requested.
    asked: float
    worker: Worker
    #: Whether the loop watches it.
    watched: bool = False
    #: Whether an event that the loop has reported is still to be handled.
    reported: bool = False
    #: How the worker ended, if the cause is known already.
    died: str = ""


class WorkerCalls:
    """The workers of one execution."""

    def __init__(self, execution: Execution) -> None:
        #: Descriptor -> a called worker for which nothing waits yet.
        self.called: dict[int, int] = {}
        # A strong reference would keep the execution's memory until the garbage collector runs.
        self._execution_ref = weakref.ref(execution)
        self._runtime = execution.runtime
        self._part = execution.part
        self._taken: dict[int, _Taken] = {}

    @property
    def _execution(self) -> Execution:
        """The execution, which every caller keeps alive."""
        return cast("Execution", self._execution_ref())

    @property
    def any_taken(self) -> bool:
        return bool(self._taken)

    @property
    def any_busy(self) -> bool:
        """Whether a worker has unanswered calls."""
        return any(taken.process.owed for taken in list(self._taken.values()))

    def call(self, call: Call) -> None:
        """Call a worker; the first call takes the worker."""
        number, execution = int(call.place), self._execution
        taken = self._taken.get(number) or self._take(number, call)
        sent = taken.worker.call(call)
        objects = {key: execution.data[key] for key in sent.needs}
        taken.process.post(
            Request(
                *(execution.ident, call.tasks, objects, call.gives, sent.rest, sent.alone, number),
                live=execution.live,
                piecewise=execution.client is not None,
            )
        )
        if taken.watched:
            self._renew(taken)
        elif taken.process.sending:
            self.watch([number])
        else:
            self.called[taken.process.fileno()] = number

    def watch_called(self) -> None:
        """Have the loop watch the called workers for which nothing waits yet."""
        if self.called:
            self.watch(self.called.values())
            self.called.clear()

    def watch(self, numbers: Iterable[int]) -> None:
        """Have the loop watch workers, unless they have answered everything meanwhile."""
        execution = self._execution
        for number in numbers:
            taken = self._taken.get(number)
            if taken is not None and taken.process.owed and not taken.watched:
                self._runtime.loop.watch(
                    taken.process,
                    partial(self._from_loop, execution, number),
                    once=execution.run.program.evaluates,
                )
                taken.watched = True

    def answered(self, number: int) -> list[int] | None:
        """Process a worker's messages; return the tasks that begin here, None if it is lost."""
        if number not in self._taken:
            return None
        begins = self._received(number)
        taken = self._taken.get(number)
        if taken is not None and taken.process.owed:
            self.called[taken.process.fileno()] = number
        return begins

    def lose(self, number: int, late: Collection[int], error: TaskError | None) -> None:
        """Give up a worker, and report its end in a `WorkerEnded` event."""
        taken = self._taken.pop(number)
        self._runtime.loop.forget(taken.process)
        if late:
            taken.died = "was killed, as a task of it hung"
        self._runtime.threads.start(
            partial(self._bury, self._execution, number, taken, late, error)
        )

    def failure(self, execution: Execution, number: int) -> TaskError:
        """Return the error of a worker that died; to find out how it ended can take a while."""
        return self._failure(execution, self._taken[number])

    def forget(self) -> None:
        for taken in self._taken.values():
            self._runtime.loop.forget(taken.process)

    def give_back(self) -> None:
        for number, taken in self._taken.items():
            self._give(number, taken.process)

    def _take(self, number: int, call: Call) -> _Taken:
        asked = time.monotonic()
        try:
            process = self._runtime.mechanism.take(number - 1)
        except OSError as error:
            failure = TaskError(WORKER_DIED, f"no process could be had: {error}")
            raise located(self._execution.runtime.wrap, failure, call.tasks) from error
        keeps = not self._execution.run.program.decides
        taken = _Taken(process, asked, Worker(self._part, number, keeps))
        self._taken[number] = taken
        return taken

    def _give(self, number: int, process: WorkerProcess) -> None:
        self._runtime.mechanism.give(number - 1, process, sound=not process.owed)

    def _renew(self, taken: _Taken) -> None:
        """Have the loop watch a worker again, once its last report is handled.

        Before that, the loop would report the same again and again, each time to a further thread.
        """
        if not taken.reported:
            self._runtime.loop.renew(taken.process)

    def _from_loop(self, execution: Execution, number: int, writable: bool, readable: bool) -> None:
        if taken := self._taken.get(number):
            taken.reported = True
        execution.from_loop(partial(self._ready, number, writable, readable))

    def _ready(self, number: int, writable: bool, readable: bool) -> list[int]:
        taken = self._taken.get(number)
        if taken is None:
            return []
        if writable:
            taken.process.flush()
        begins = self._received(number) if readable else []
        taken.reported = False
        if taken.watched and self._taken.get(number) is taken and not self._execution.over:
            self._renew(taken)
        return begins

    def _received(self, number: int) -> list[int]:
        """Process the answers of a worker; return the tasks that begin in this process."""
        taken, execution = self._taken[number], self._execution
        process = taken.process
        try:
            results = process.receive()
        except WorkerDiedError as error:
            taken.died = str(error)
            process.owed.update(process.owed or self._part.tasks_at(number))
            return execution.tell(WorkerLost(number, process.owed, execution.is_answering))
        for result in results:
            if result.ready is not None:
                result.asked = taken.asked
                # A worker of a pool was ready before its first request.
                result.ready = max(result.ready, taken.asked)
        taken.worker.record_objects(result.task for result in results)
        begins = execution.ended(results)
        if not process.owed:
            if taken.watched:
                self._runtime.loop.forget(process)
                taken.watched = False
            if taken.worker.is_called_for_all:
                del self._taken[number]
                self._give(number, process)
        return begins

    def _bury(
        self,
        execution: Execution,
        number: int,
        taken: _Taken,
        late: Collection[int],
        error: TaskError | None,
    ) -> None:
        failure = self._failure(execution, taken)
        self._give(number, taken.process)

        def handle() -> None:
            owed, now = taken.process.owed, time.monotonic()
            ended = WorkerEnded(now, number, owed, late, error, failure, execution.is_answering)
            execution.threads.start(execution.tell(ended))

        execution.event(handle)

    def _failure(self, execution: Execution, taken: _Taken) -> TaskError:
        ending = taken.died or taken.process.end()
        owed = taken.process.owed
        message = f"the process of {self._runtime.wrap.names(owed)} {ending}"
        return located(execution.runtime.wrap, TaskError(WORKER_DIED, message), owed)
