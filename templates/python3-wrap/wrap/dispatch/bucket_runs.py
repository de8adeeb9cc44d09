"""Buckets, their objects and their runs: performs the firings of `wrap.core.buckets.flow`.

Each firing is a run of one task: in the thread that takes it, or as an execution if the task runs
in a further process. Waiting events occupy no thread. A bounded number of threads takes firings
from the queue, one after another.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

from wrap.cluster.durable import DurableBuckets
from wrap.core.buckets.flow import Firing, Flow
from wrap.core.buckets.own import TriggerError
from wrap.core.buckets.ready import FiringQueue
from wrap.core.buckets.triggers import Item
from wrap.core.errors import TaskError
from wrap.core.parallelism import Parallelism
from wrap.core.triggers import MOST_AT_ONCE
from wrap.dispatch.event_memory import EventMemory
from wrap.dispatch.event_objects import Objects, given_by, listed
from wrap.dispatch.execution import Outcome
from wrap.dispatch.firing_runs import FiringRun, FiringRuns
from wrap.dispatch.replica import Replica
from wrap.dispatch.runtime import Runtime
from wrap.event_loop.alarm import Alarm
from wrap.net.messages import UNWATCHED, Result, Watch
from wrap.observe.metrics import StreamMetrics
from wrap.observe.trace_context import TraceContext
from wrap.values.quota import Quota
from wrap.values.value import JSON, Object, quoted

#: The interval of checks whether all runs have ended, in seconds.
_LOOK_S = 0.01
#: The numbers of requests that are not stored.
_NUMBERS = count(time.time_ns())
#: The code of errors of users' triggers.
_TRIGGER_FAILED = "trigger-failed"
#: How many copies of a request exist beside its events while it is written.
_WRITTEN_COPIES = 2
#: `serves` is the BucketRuns whose firings this thread takes.
_own = threading.local()


class BucketRuns:
    """Any thread may call its methods.

    Args:
        declared: see `wrap.core.buckets.flow.Flow`.
        numbers: name in `declared` -> its task.
        offset_s: by how much the clock of windows is ahead of the monotonic clock, in seconds; None
            if no time passes.
        deadline: the end of all runs, in seconds of the monotonic clock.
        watch: what `results` record.
        durable: stores everything until it has ended, if it is to outlive the process.

    Raises TaskError, ``trigger-failed``, if a user's trigger cannot be made.

    Attributes:
        quota: the memory quota of objects.
        results: of all runs, if they are watched; also of failed runs, if they are exported.
        error: the first error of a firing that has been given up.
        flow, ready: the objects in buckets, and the firings that wait or run.
        lock: held while `flow` or `ready` changes.
    """

    def __init__(
        self,
        runtime: Runtime,
        declared: dict[str, Any],
        numbers: dict[str, int],
        offset_s: float | None = None,
        deadline: float = math.inf,
        watch: Watch = UNWATCHED,
        metrics: StreamMetrics | None = None,
        durable: DurableBuckets | None = None,
        trace: TraceContext | None = None,
        quota: Quota | None = None,
    ) -> None:
        self.quota = quota or Quota()
        self.results: list[Result] = []
        self.error: TaskError | None = None
        self._runtime = runtime
        self._numbers = numbers
        self._offset_s = offset_s
        self._keeps_results = watch.traced or (trace is not None and trace.is_exported)
        self._metrics = metrics
        self.objects = Objects()
        self._declared = declared
        self.replica = Replica(self, durable, declared["buckets"]) if durable is not None else None
        self.flow = self._new_flow()
        self._memory = EventMemory(
            self.flow.routes, self.objects, self.quota, _WRITTEN_COPIES if durable else 0
        )
        self.lock = threading.Lock()
        self.ready = FiringQueue[str, Object]()
        self._parallelism = Parallelism(MOST_AT_ONCE, time.monotonic(), time.process_time())
        self._runs = FiringRuns(runtime, deadline, watch, trace)
        routes = self.flow.routes
        self._answers: dict[str, list[Item[Object]]] = {
            task: [] for task in numbers if offset_s is None and routes.answers(task)
        }
        self._answered = 0
        self.quota.takers.add(self)
        self._then: Callable[[], None] | None = None
        self._alarm = Alarm(runtime.loop, self._passed)

    @property
    def size(self) -> int:
        """Bytes of the objects that wait or are processed."""
        with self.lock:
            return self.flow.size

    @property
    def taken(self) -> int:
        """The same, and the bytes of answers and unwritten commands; needs no lock."""
        return self.flow.size + self._answered + self._unwritten

    @property
    def _unwritten(self) -> int:
        """Bytes that wait to be written to the store."""
        return self.replica.durable.size if self.replica is not None else 0

    @property
    def most(self) -> int:
        return self._parallelism.most

    @property
    def load(self) -> tuple[int, int, int]:
        """How many firings run, how many wait, and how many may run at once.

        The evaluator also counts the firings that are offered to any replica.
        """
        offered = self.replica.offered if self.replica is not None else 0
        with self.lock:
            return self.ready.running, len(self.ready) + offered, self.most

    def take(self, given: Object, then: Callable[[int], None]) -> None:
        """Hold events: the items of a JSON list; another value is a single event.

        `then` is called with their number when they are held. Raises TaskError, ``full`` or
        ``too-large``; nothing is held then.
        """
        with self._memory.events(given) as (events, cost):
            self._hold(given, events, cost, then)
        self.work()

    def _hold(
        self, given: Object, events: Sequence[Object], cost: int, then: Callable[[int], None]
    ) -> None:
        count = len(events)  # so that `held` does not keep the events
        durable = self.replica.durable if self.replica is not None else None

        def held() -> None:
            if self._metrics is not None:
                self._metrics.events.add(by=count)
            then(count)

        with self.lock:
            number = next(_NUMBERS if durable is None else durable.numbers)
            fired = self.flow.take(number, events, self.now())
            if durable is not None:
                again = partial(self._take_again, given, cost, then)
                durable.store_request(number, given, cost, held, again)
            self.follow(fired)
        if durable is None:
            held()

    def _take_again(self, given: Object, cost: int, then: Callable[[int], None]) -> None:
        """Hold events that were not stored, as other replicas took this replica for dead."""
        self._hold(given, self.objects.items(given), cost, then)
        self.work()

    def reset(self) -> None:
        """Drop all objects and waiting firings; needs the lock."""
        self.flow = self._new_flow()
        self.ready.forget()

    def stop(self, until: float) -> None:
        """Begin nothing more; return when all runs have ended, or at `until` (monotonic time)."""
        self.ready.stopped = True
        if self.replica is not None:
            with self.lock:
                self.replica.resign()
        while self.ready.running and time.monotonic() < until:
            time.sleep(_LOOK_S)

    def drain(self, then: Callable[[], None]) -> None:
        """Fire all waiting objects as soon as nothing runs; call `then` when nothing is left."""
        with self.lock:
            self._then = then
            new, over = self._continue()
        self.work(new)
        if over is not None:
            over()

    def answer(self) -> Object:
        """Return the outputs that no bucket gets, as a JSON object of lists, if no time passes."""
        fields = []
        for name, items in self._answers.items():
            texts = listed(sorted(items, key=lambda item: item.number))
            fields.append(f"{''.join(quoted(name))}:{texts.text()}")
        return Object("{" + ",".join(fields) + "}", JSON)

    def _new_flow(self) -> Flow[str, Object]:
        try:
            return Flow(self._declared, self.objects, in_sessions=self.replica is not None)
        except TriggerError as error:
            raise TaskError(_TRIGGER_FAILED, str(error)) from error

    def now(self) -> float:
        return 0.0 if self._offset_s is None else time.monotonic() + self._offset_s

    def follow(self, fired: Sequence[Firing[str, Object]]) -> None:
        """Queue firings, and set the alarm for the next due time; needs the lock."""
        for fault in self.flow.faults():
            print(f"{_TRIGGER_FAILED}: {fault}")
            self.error = self.error or TaskError(_TRIGGER_FAILED, str(fault))
            if self._metrics is not None:
                self._metrics.failures.add(fault.bucket)
        if self.replica is None:
            self.ready.add(fired)
        else:
            self.replica.keep(fired)
        if self._offset_s is not None:
            self._alarm.set_for(self.flow.due_s - self._offset_s)

    def _passed(self) -> None:
        with self.lock:
            self._alarm.clear()
            self.follow(self.flow.passed(self.now()))
            new = self._call()
        self.work(new)

    def work(self, new: int | None = None) -> None:
        """Start threads for waiting firings, or the `new` threads that `_call` has counted."""
        if new is None:
            with self.lock:
                new = self._call()
        for _ in range(new):
            self._runtime.threads.start(self._work)

    def _call(self, goes_on: bool = False) -> int:
        """Return how many threads to start for waiting firings; needs the lock.

        One less if this thread serves and not `goes_on`.
        """
        return self.ready.call(self.most, getattr(_own, "serves", None) is self and not goes_on)

    def _work(self) -> None:
        _own.serves = self
        try:
            with self.lock:
                self.ready.thread_came()
            while (run := self._next()) is not None and self._runs.begin(run):
                pass
        finally:
            _own.serves = None

    def _next(self) -> FiringRun | None:
        now = time.monotonic()
        with self.lock:
            if self._parallelism.is_due(now):
                self._parallelism.look(now, time.process_time())
            if not self.ready or self.ready.waits_for(self.quota, self._unwritten):
                return None
            firing = self.ready.next(self.most)
            if firing is None:
                return None
            return self._runs.of(firing, self._numbers[firing.task], self)

    def emitted(self, run: FiringRun, result: Result) -> None:
        """Put an object that a running firing has emitted into buckets."""
        place, name = result.place, result.emitted
        if place is None or name is None:
            return
        with self.lock:
            if run.over or run.flow is not self.flow:  # another replica owns it
                return
            firing, value, now_s, full = run.firing, given_by(result.output), self.now(), None
            buckets, _ = self.flow.routes.emission_targets(firing.task, name)
            gives = [(bucket, False) for bucket in buckets]
            try:
                with self._memory.given(firing.task, gives, value, firing.task in self._answers):
                    self.follow(
                        self.flow.emitted(firing.number, place, name, result.group, value, now_s)
                    )
            except TaskError as error:
                full = error
            new = self._call(goes_on=True)
        self.work(new)
        if full is not None:
            self.ended(run, full, goes_on=True)

    def ended(
        self,
        run: FiringRun,
        outcome: Outcome,
        of_failed: Sequence[Result] = (),
        goes_on: bool = False,
    ) -> bool:
        """Process the end of a run; return False if it had ended before.

        With `goes_on` this thread takes no further firing yet.
        """
        firing, number = run.firing, run.firing.number
        self.results += of_failed
        with self.lock:
            if run.over:
                return False
            run.over = True
            self._runs.forget(run)
            self.ready.ended()
            now_s, given_up = self.now(), False
            is_own = run.flow is self.flow  # else another replica owns it
            if is_own and not isinstance(outcome, TaskError):
                if self._keeps_results:
                    self.results += outcome
                try:
                    self._process_output(firing, outcome[0].output, now_s)
                except TaskError as full:
                    outcome = full
            if is_own and isinstance(outcome, TaskError):
                self.follow(self.flow.failed(number, now_s))
                given_up = not self.flow.runs(number)
                if given_up:
                    self.error = self.error or outcome
            new, over = self._continue(goes_on)
        self.work(new)
        if isinstance(outcome, TaskError):
            what = "it is given up" if given_up else "another run of it goes on"
            print(f"bucket {firing.bucket}: {firing.task}: {outcome.code}: {outcome}: {what}")
        if self._metrics is not None:
            if isinstance(outcome, TaskError):
                self._metrics.failures.add(firing.bucket)
            else:
                self._metrics.delays.observe(now_s - firing.due_s, firing.bucket)
        if over is not None:
            over()
        elif self.replica is not None:
            self.replica.take_offered()
        return True

    def _process_output(
        self, firing: Firing[str, Object], output: Object | None, now_s: float
    ) -> None:
        """Process the output of a run; needs the lock. Raises as `EventMemory.given`."""
        value, task = given_by(output), firing.task
        is_first, answers = self.flow.runs(firing.number), task in self._answers
        gives = self.flow.routes.gives(task)
        with self._memory.given(task, gives, value if is_first else None, answers):
            if value is not None and is_first and answers:
                self._answers[task].append(Item(firing.number, value))
                self._answered += self.objects.size(value)
            self.follow(self.flow.ended(firing.number, value, now_s))

    def _continue(self, goes_on: bool = False) -> tuple[int, Callable[[], None] | None]:
        """Return how many threads to start, and what to call if nothing is left; needs the lock.

        While draining, fire waiting objects when nothing runs.
        """
        if self._then is not None and self.flow.idle:
            self.follow(self.flow.drain(self.now()))
            if self.flow.idle:
                over, self._then = self._then, None
                self._runs.clear_idle_timer()
                return 0, over
        return self._call(goes_on), None
