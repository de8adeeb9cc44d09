"""One execution in this wrap: performs the commands of its run, and sends it events.

`wrap.core.run` has the rules. An execution has no thread of its own. Each event is handled by the
thread in which it happens: of the request, of an ended task, or of a call to another wrap. The loop
handles workers and timers. The first error fails the execution. Then workers are killed, because
they share nothing with this process. Threads may continue until the deadline. Only then are they
interrupted, because an interrupt can damage what they share.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from wrap.cluster.peers import Given, Peers
from wrap.core import events as on
from wrap.core.errors import TaskError
from wrap.core.limits import Limits
from wrap.core.program import MAIN, Key, Program
from wrap.core.run import Run
from wrap.dispatch.admission import Admission
from wrap.dispatch.perform import PERFORM
from wrap.dispatch.runtime import Runtime
from wrap.dispatch.storing import fetched
from wrap.dispatch.task_threads import TaskThreads
from wrap.dispatch.worker_calls import WorkerCalls
from wrap.event_loop.loop import Timer
from wrap.event_loop.threads import Work
from wrap.net.messages import Ident, Result
from wrap.net.transport import GRACE_S
from wrap.pipes.broker import ExecutionStreams
from wrap.pipes.piecewise import Client
from wrap.values.budget import HELD_FROM
from wrap.values.inputs import Inputs
from wrap.values.value import Object

#: Bytes of an execution's objects up to which its answer is made within a moment.
_SMALL = 1 << 16
#: How many tasks or outputs the loop handles in one event; more go to another thread.
_FEW = 100

#: The outcome of an execution: its results, or its error.
Outcome = list[Result] | TaskError
#: The outcome of an execution whose answer nobody awaits any more.
CANCELLED = TaskError("cancelled", "nobody waits for it any more")


class Execution:
    """Runs a request of the workflow, or the tasks that another wrap asks for.

    Args:
        program: decides which tasks run.
        objects: the inputs from elsewhere.
        deadline: seconds of the monotonic clock.
        reply: called once, with the execution and its outcome, by a thread that may block.
        peers: the other wraps that take part. None if the execution has all inputs and only
            answers.
        prepare: returns further objects when the execution begins, which can wait for free workers.
        into_buckets: puts what tasks emit into buckets.
        client: gets the answer piece by piece. None if the answer is sent as a whole.
        hand_on: called if a wrap is of another build; raises TaskError if this ends the execution.
            None if the execution waits until the wrap is of its build.
    """

    def __init__(
        self,
        runtime: Runtime,
        program: Program,
        objects: dict[Key, Object],
        ident: Ident,
        deadline: float,
        reply: Callable[[Execution, Outcome], None],
        peers: Peers | None = None,
        prepare: Callable[[], Mapping[Key, Object]] | None = None,
        into_buckets: Callable[[Result], None] | None = None,
        client: Client | None = None,
        hand_on: Callable[[], None] | None = None,
    ) -> None:
        self.runtime: Runtime = runtime
        self.ident = ident
        #: Whether the times of its tasks are traced or exported.
        self.is_told = ident.watch.traced or ident.is_exported
        self.deadline = deadline
        self.part = program.part
        self.peers = peers
        self.data: Inputs = Inputs(objects, runtime.budget)
        self.run = Run(
            program,
            runtime.wrap,
            Limits(deadline, GRACE_S, HELD_FROM),
            None if peers is None else peers.needs,
            ident.is_exported,
        )
        self._reply = reply
        self._prepare = prepare
        self.into_buckets = into_buckets
        self.client = client
        self.hand_on = hand_on
        self.broker = runtime.broker if self.part.live else None
        self.streams = ExecutionStreams(ident.number, self._attempt_of, client)
        elsewhere = client is not None and (self.part.processes or peers is not None)
        self._registered_with = runtime.broker if elsewhere or self.part.live else None
        #: Held while an event is handled.
        self.lock = threading.RLock()
        self.workers: WorkerCalls = WorkerCalls(self)
        self.threads: TaskThreads = TaskThreads(self)
        self.results: list[Result] = []
        self.timers: dict[int, Timer] = {}
        self._timer: Timer | None = None
        #: Waits for workers; None if it needs none.
        self.admission: Admission | None = None
        self._outcome: Outcome | Callable[[], Outcome] | None = None

    def start(self, work: Work | None = None, is_leaving: bool = False) -> None:
        """Begin as soon as workers are available.

        The calling thread runs tasks itself if it is the thread of `work`. A thread of the pool
        that `is_leaving` does so as soon as its present work is done.
        """
        if missing := self.data.missing:
            self.event(fetched, self, missing, self._start)
        else:
            self._start(work, is_leaving)

    def _start(self, work: Work | None = None, is_leaving: bool = False) -> None:
        self.event(self.wake_at, self.deadline)
        if self._registered_with is not None:
            self._registered_with.begin(self.streams)
        if self.part.processes:
            self.admission = Admission(self)
            self.admission.wait()
        elif work is None:
            self.event_of(len(self.part.place_of), self.begin, is_leaving)
        else:
            self.threads.serve(self._first, work)

    @property
    def is_answering(self) -> bool:
        """Whether the client has received a part of the answer."""
        return self.client is not None and self.client.begun

    @property
    def live(self) -> bool:
        return self.broker is not None

    @property
    def over(self) -> bool:
        """Whether its outcome is decided."""
        return self._outcome is not None

    def arrived(self, given: Given) -> None:
        """Handle the arrival of other wraps' objects, or of their names in a store."""
        objects = [each for each in given.values() if each is not None]
        self.event_of(len(given), fetched, self, objects, lambda: self._arrived(given))

    def accept_answer(self, results: list[Result]) -> None:
        """Handle the answer of another wrap; call it while an event is handled."""
        self.results += results
        self._arrived({each.task: each.output for each in results})

    def _arrived(self, given: Given) -> None:
        self.threads.start(self.tell(on.Arrived(time.monotonic(), given)))

    def fail(self, error: TaskError) -> None:
        """End the execution with an error, unless it is over."""
        self.event(_raise, error)

    def _attempt_of(self, task: int) -> int | None:
        with self.lock:
            return self.run.attempts.attempt_of(task)

    def begin(self, is_leaving: bool = False) -> None:
        """Begin the first tasks; call it while an event is handled."""
        if self.run.program.evaluates:  # a thread of the pool evaluates, not the loop or the server
            self.runtime.threads.start(partial(self.threads.serve, self._first))
            return
        if self.peers is not None:
            self.peers.begin(self)
        self.threads.start(self._first(), is_leaving)

    def from_loop(self, handle: Callable[[], list[int]]) -> None:
        """Handle an event from the loop; in another thread if the program evaluates paths.

        Evaluation may take until the deadline, and holds the lock.
        """
        if self.run.program.evaluates:
            with contextlib.suppress(RuntimeError):  # no thread is available
                self.runtime.threads.start(partial(self.threads.serve, handle))
                return
        self.event(lambda: self.threads.start(handle()))

    def _first(self) -> list[int]:
        if self._prepare is not None:
            self.data.add(self._prepare())
        if self.run.program.decides or self.part.tasks_at(MAIN):
            self.runtime.lost_threads.check()
        return self.tell(on.Began(time.monotonic(), self.data, self.data.sizes))

    def ended(self, results: Iterable[Result]) -> list[int]:
        """Process results; return the tasks that begin here. Call it while an event is handled."""
        answers = list(results)
        if self.into_buckets is not None:
            for result in answers:
                if result.place is not None:
                    self.into_buckets(result)
            answers = [each for each in answers if each.place is None]
        return self.tell(on.Ended(time.monotonic(), answers))

    def tell(self, event: on.Event) -> list[int]:
        """Have the rules handle an event, and perform their commands; call it in an event.

        Returns the tasks that begin in this process. Raises TaskError if the execution has failed.
        """
        begins: list[int] = []
        for command in self.run.handle(event):
            more = PERFORM[type(command)](self, command)
            if more:
                begins += more
        return begins

    def event(self, handle: Callable[..., None], *arguments: Any) -> None:
        """Handle an event, and answer if the execution is over after it."""
        with self.lock:
            if self._outcome is not None:
                return
            try:
                handle(*arguments)
            except TaskError as error:
                # Its frames refer to this execution, whose memory would stay until the garbage
                # collector runs.
                self._outcome = error.with_traceback(None)
            except Exception as error:  # no thread, descriptor or memory is available
                self._outcome = TaskError("wrap-failed", f"{type(error).__name__}: {error}")
            if self._outcome is None:
                run, peers = self.run, self.peers
                if not run.is_over(peers is not None and peers.is_waiting(run.here)):
                    return
                self._outcome = self.results
            for timer in (self._timer, *self.timers.values()):
                if timer is not None:
                    timer.cancel()
            self.workers.forget()
        if self.runtime.loop.is_here and not self._ends_at_once():
            with contextlib.suppress(RuntimeError):  # no thread is available
                self.runtime.threads.start(self._finish)
                return
        self._finish()

    def event_of(self, size: int, handle: Callable[..., None], *arguments: Any) -> None:
        """Handle an event of `size` tasks or outputs; large events leave the loop."""
        if size > _FEW and self.runtime.loop.is_here:
            with contextlib.suppress(RuntimeError):  # no thread is available
                self.runtime.threads.start(partial(self.event, handle, *arguments))
                return
        self.event(handle, *arguments)

    def end_with(self, outcome: Callable[[], Outcome]) -> None:
        """End the execution with an outcome that is computed later; call it in an event."""
        self._outcome = outcome

    def _ends_at_once(self) -> bool:
        """Return whether the end is quick: nothing to stop, and a small answer."""
        running = self.workers.any_taken or self.threads.running or callable(self._outcome)
        quick = self.runtime.store is None and not running
        return quick and not self.is_told and self.data.size <= _SMALL

    def _finish(self) -> None:
        """Stop what still runs, return the workers, and answer."""
        outcome = self._outcome() if callable(self._outcome) else self._outcome
        try:
            self._end_all()
        finally:
            if outcome is not None:
                self._reply(self, outcome)
            self.data.close()

    def _end_all(self) -> None:
        if self.peers is not None:
            self.peers.close()
            self.peers.protocol.remove(self)
            # A cycle of references would keep its objects until the garbage collector runs.
            self.peers = None
        self.workers.give_back()
        self.threads.end()
        if self._registered_with is not None:
            self._registered_with.end(self.streams)
        if self.admission is not None:
            self.admission.leave()
            self.admission = None  # it refers to the execution

    def wake_at(self, when: float) -> None:
        """Have the rules check the time at `when`, instead of at the earlier wake time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.runtime.loop.call_at(when, partial(self.from_loop, self._look))

    def _look(self) -> list[int]:
        now, peers, full = time.monotonic(), self.peers, self.runtime.mechanism.full
        if peers is None:
            return self.tell(on.TimePassed(now, 0.0, self.is_answering, full=full))
        gone = peers.loss_error() if self.live else None
        event = on.TimePassed(
            now, peers.grace_s, self.is_answering, gone, peers.timeout_error(), full
        )
        return self.tell(event)


def _raise(error: TaskError) -> None:
    raise error
