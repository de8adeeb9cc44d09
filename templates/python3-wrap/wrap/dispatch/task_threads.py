"""The threads of one execution. Each runs tasks of this process, or calls other wraps, in turn.

A thread whose task has ended polls the workers that are called then, for a moment. So a quick
answer wakes no other thread. If another wrap is called then, the thread makes that call.
"""

from __future__ import annotations

import select
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, cast

from wrap.core.builds import OTHER_BUILD, PAUSE_S
from wrap.core.errors import TaskError
from wrap.core.events import Failed
from wrap.core.program import MAIN
from wrap.core.start_queue import StartQueue
from wrap.event_loop.threads import Work, own_work
from wrap.functions import runner as tasks
from wrap.functions.last_begun import LastBegun
from wrap.functions.task_io import Access
from wrap.net.messages import Request, Result

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution

#: How long tasks of this process wait until calls to other wraps are sent, in seconds. Connecting,
#: or a large input, can take longer. A thread that computes keeps the GIL for a switch interval,
#: and sending needs the GIL several times.
_SENDING_S = 0.02
#: How long a thread whose task has ended polls workers before the loop does, in milliseconds:
#: longer than a message takes, and short compared to most tasks.
_MOMENT_MS = 1


@dataclass
class TaskThread:
    """The next work of one thread."""

    #: Its work in the pool, used to give the thread up.
    work: Work | None = None
    #: The task that it runs next.
    task: int | None = None
    #: The wrap that it calls next, the request, and the callback for when the request is sent.
    wrap_call: tuple[str, Request, Callable[[], None]] | None = None
    #: Descriptor -> the worker that it waits for.
    workers: dict[int, int] = field(default_factory=dict)


class TaskThreads:
    """Starts and ends the threads of an execution."""

    def __init__(self, execution: Execution) -> None:
        #: Task -> its thread's work.
        self.running: dict[int, Work] = {}
        #: Calls to other wraps that no thread makes yet.
        self.unsent: list[tuple[str, Request]] = []
        # A strong reference would keep the execution's memory until the garbage collector runs.
        self._execution_ref = weakref.ref(execution)
        self._runtime = execution.runtime
        self._queue: StartQueue[int] = StartQueue()
        self._last_begun = LastBegun()
        opens = None if execution.broker is None else execution.broker.open
        client = None if execution.client is None else execution.client.open
        self._access = Access(execution.ident.number, opens, execution.data.resolve, client)

    @property
    def _execution(self) -> Execution:
        """The execution, which every caller keeps alive."""
        return cast("Execution", self._execution_ref())

    def start(self, begins: Iterable[int], is_leaving: bool = False) -> None:
        """Run tasks as threads; the loop waits for workers, further threads call other wraps.

        A thread of the pool that `is_leaving`, with nothing else to do, runs the first task.
        """
        self._queue.add(begins)
        self._start(self._execution, is_leaving)

    def send_first(self, begins: Iterable[int], go_on: Callable[[], None]) -> bool:
        """Send calls to other wraps first, then call `go_on`; return False if there is no need."""
        if not self.unsent:
            return False
        execution = self._execution
        places = map(execution.part.place_of.get, begins)
        if not any(isinstance(place, int) for place in places):
            return False
        sent, until = self._call_wraps(), time.monotonic() + _SENDING_S
        self._runtime.threads.start(partial(_await_sent, execution, sent, until, go_on))
        return True

    def serve(self, handle: Callable[[], list[int]], work: Work | None = None) -> None:
        """Handle an event in this thread of the pool, and run the tasks that begin by it."""
        thread, execution = TaskThread(work or own_work()), self._execution
        execution.event(lambda: self.go_on(execution, thread, handle()))
        self._serve(execution, thread)

    def abandon(self, task: int) -> None:
        """Stop waiting for a task; call it while an event is handled."""
        if work := self.running.pop(task, None):
            self._runtime.lost_threads.add(work)
            work.cancel()
        self._prepared(task)

    def end(self) -> None:
        """Stop all tasks: threads are only interrupted at their limits, as that can do damage."""
        now, limits = time.monotonic(), self._execution.run.limits
        for task, work in self.running.items():
            self._runtime.lost_threads.add(work)
            if limits[task] <= now:
                work.cancel()
            else:
                self._runtime.loop.call_at(limits[task], work.cancel)

    def go_on(self, execution: Execution, thread: TaskThread, begins: list[int]) -> None:
        """Have a thread run the first new task; else it waits for workers or calls a wrap."""
        called = execution.workers.called
        self._queue.add(begins)
        if not self._take_task(execution, thread):
            thread.workers |= called
            called.clear()
            if self.unsent and not thread.workers:
                thread.wrap_call = (*self.unsent.pop(), lambda: None)
            self._call_wraps()
            return
        called |= thread.workers
        thread.workers.clear()
        self._start(execution)

    def _start(self, execution: Execution, is_leaving: bool = False) -> None:
        execution.workers.watch_called()
        if self.unsent:
            self._call_wraps()
        self._call(is_leaving)

    def _call(self, is_leaving: bool = False) -> None:
        """Start a thread for the waiting tasks, unless a task is being prepared."""
        first = self._queue.call()
        if first is not None:
            thread, name = TaskThread(), self._runtime.wrap.function_of(first)
            threads = self._runtime.threads
            start = threads.start_next if is_leaving else threads.start
            thread.work = start(partial(self._come, self._execution, thread), name)

    def _come(self, execution: Execution, thread: TaskThread) -> None:
        self._last_begun.await_wait()
        execution.event(self._came, execution, thread)
        self._serve(execution, thread)

    def _came(self, execution: Execution, thread: TaskThread) -> None:
        self._queue.came()
        self._take_task(execution, thread)

    def _take_task(self, execution: Execution, thread: TaskThread) -> bool:
        """Have a thread run the first waiting task; return False if no task may begin."""
        number = self._queue.take(execution.run.limits)
        if number is None:
            return False
        thread.task = number
        if thread.work is not None:
            thread.work.name = self._runtime.wrap.function_of(number)
            self.running[number] = thread.work
        return True

    def _prepared(self, number: int) -> None:
        """Let the next task begin: this task has reached its handler, or never will.

        Starting a thread releases the GIL. The lock keeps others from taking a task meanwhile.
        """
        if self._queue.prepared(number):
            self._call()

    def _begins(self, number: int) -> None:
        self._last_begun.begins()
        self._prepared(number)

    def _serve(self, execution: Execution, thread: TaskThread) -> None:
        """Do the thread's next work in a loop, with all that follows within a moment."""
        budget = self._runtime.budget
        while True:
            if budget is not None:
                budget.make_room()  # this thread's output may exceed the quota
            while thread.workers and not execution.over:
                self._await_workers(execution, thread)
            if thread.task is not None:
                self._run(execution, thread, thread.task)
            elif thread.wrap_call is not None:
                wrap_call, thread.wrap_call = thread.wrap_call, None
                self._call_wrap(execution, thread, *wrap_call)
            else:
                return

    def _run(self, execution: Execution, thread: TaskThread, number: int) -> None:
        runtime = self._runtime
        given = partial(execution.data.resolve, runtime.wrap.graph.source_of(number))
        begins = None
        if self._queue.is_preparing(number):
            begins = partial(execution.event, self._begins, number)
        result = tasks.run(
            *(number, given, execution.ident, MAIN, partial(execution.event, self._emitted)),
            *(self._access, begins, runtime.wrap, runtime.functions),
        )
        self._last_begun.ends()
        thread.task = None
        execution.event(self._ended, execution, thread, result)

    def _emitted(self, result: Result) -> None:
        self.start(self._execution.ended([result]))

    def _ended(self, execution: Execution, thread: TaskThread, result: Result) -> None:
        if self.running.pop(result.task, None) is not None:  # else the task was given up
            self.go_on(execution, thread, execution.ended([result]))

    def _await_workers(self, execution: Execution, thread: TaskThread) -> None:
        """Handle answers that arrive within a moment; leave later answers to the loop."""
        poll = select.poll()
        for descriptor in thread.workers:
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(_MOMENT_MS)
        if not ready:
            thread.workers, left = {}, thread.workers
            execution.event(execution.workers.watch, left.values())
        for descriptor, _ in ready:
            number = thread.workers.pop(descriptor, None)
            if number is not None:
                execution.event(self._answered, execution, thread, number)

    def _answered(self, execution: Execution, thread: TaskThread, number: int) -> None:
        begins = execution.workers.answered(number)
        if begins is not None:
            self.go_on(execution, thread, begins)

    def _call_wraps(self) -> list[threading.Event]:
        """Start threads that call other wraps; return an event per call, set when it is sent."""
        events: list[threading.Event] = []
        execution, unsent, self.unsent = self._execution, self.unsent, []
        for wrap, request in unsent:
            sent = threading.Event()
            thread = TaskThread(wrap_call=(wrap, request, sent.set))
            thread.work = self._runtime.threads.start(partial(self._serve, execution, thread))
            events.append(sent)
        return events

    def _call_wrap(
        self,
        execution: Execution,
        thread: TaskThread,
        wrap: str,
        request: Request,
        sent: Callable[[], None],
    ) -> None:
        try:
            results = self._results(execution, wrap, request, sent)
        except Exception as cause:
            error = (
                cause if isinstance(cause, TaskError) else TaskError("remote", f"{wrap}: {cause}")
            )
            sent()  # whoever waits for this need not wait until its timeout
            error.located(self._runtime.wrap.names(request.tasks) or None, wrap)
            failed = Failed(time.monotonic(), request.tasks, error)
            execution.event(lambda: self.go_on(execution, thread, execution.tell(failed)))
        else:
            sent()
            if execution.over and self._runtime.spans is not None:
                # No other wrap exports them any more.
                self._runtime.spans.part(execution.ident, results)
            execution.event(lambda: self.go_on(execution, thread, execution.ended(results)))

    def _results(
        self, execution: Execution, wrap: str, request: Request, sent: Callable[[], None]
    ) -> list[Result]:
        """Return the results of another wrap, once it is of this build. Raises TaskError.

        A wrap of another build begins nothing. The execution is over if an entry of another build
        answers the request.
        """
        while True:
            try:
                return self._runtime.transport.call(wrap, request, execution.deadline, sent)
            except TaskError as error:
                if error.code != OTHER_BUILD or time.monotonic() >= execution.deadline:
                    raise
                sent()
                if handed_on(execution):
                    raise
            time.sleep(PAUSE_S)


def handed_on(execution: Execution) -> bool:
    """Hand on the request, as a wrap is of another build; return whether the execution is over.

    The request stays here if the client has received a part of the answer.
    """
    if execution.hand_on is not None and not execution.is_answering:
        try:
            execution.hand_on()
        except TaskError as end:
            execution.fail(end)
    return execution.over


def _await_sent(
    execution: Execution, sent: Iterable[threading.Event], until: float, go_on: Callable[[], None]
) -> None:
    for event in sent:
        event.wait(max(0.0, until - time.monotonic()))
    execution.event(go_on)
