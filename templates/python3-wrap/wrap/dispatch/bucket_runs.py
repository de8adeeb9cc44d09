"""Buckets with what they hold, and what runs of them: performs what `wrap.core.buckets.flow` says.

Each firing is a run of one task: by the thread that takes it, or, where that is in a further
process, as an execution. Events that are held take no thread: as many as may run at once take what
has fired, one after another.
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
from wrap.core.buckets.ready import Ready
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

#: How often is looked whether all has ended, in seconds.
_LOOK_S = 0.01
#: What requests are numbered with where nothing of them is kept.
_NUMBERS = count(time.time_ns())
#: The code of errors of triggers that users wrote.
_TRIGGER_FAILED = "trigger-failed"
#: How often a request is there beside its events while it is written.
_WRITTEN_COPIES = 2
#: Has as `serves` the buckets for which a thread takes what has fired.
_own = threading.local()


class BucketRuns:
    """Its methods may be called by any thread.

    Args:
        declared: as `wrap.core.buckets.flow.Flow` has it.
        numbers: the task of each name in it.
        clock: seconds, by which windows go.
        offset_s: what `clock` is ahead of the monotonic clock; None where no time passes.
        deadline: until when all has to end, in seconds of the monotonic clock.
        watch: what `results` tell.
        trace: the trace that all runs are part of.
        metrics: where it is counted what becomes of events.
        durable: keeps all until it has ended, where that is to outlive the process.
        quota: what objects may take; this is one of its takers.

    Raises TaskError, ``trigger-failed``, where a trigger that a user wrote cannot be made.

    Attributes:
        quota: what objects may take.
        results: of all runs, where they are watched; also of those that failed, where they are
            exported.
        error: the first one of a firing that has been given up.
        flow, ready: what the buckets hold, and the firings that wait or run.
        objects: what buckets have to know of objects.
        lock: held while either changes.
        replica: of durable buckets.
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
        self.ready = Ready[str, Object]()
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
        """Bytes of the objects that wait or are worked on."""
        with self.lock:
            return self.flow.size

    @property
    def taken(self) -> int:
        """The same, and what waits to be written; also for a thread that has this locked."""
        return self.flow.size + self._answered + self._unwritten

    @property
    def _unwritten(self) -> int:
        """Bytes that wait to be written to the store."""
        return self.replica.durable.size if self.replica is not None else 0

    @property
    def most(self) -> int:
        """How many firings may run at once."""
        return self._parallelism.most

    @property
    def load(self) -> tuple[int, int, int]:
        """How many firings run, how many wait, and how many may run at once.

        What is offered to any replica waits where the evaluator is.
        """
        offered = self.replica.offered if self.replica is not None else 0
        with self.lock:
            return self.ready.running, len(self.ready) + offered, self.most

    def take(self, given: Object, then: Callable[[int], None]) -> None:
        """Hold events: the items of a JSON list, or what is none as one.

        `then` is called with their number when they are held. Raises TaskError, ``full`` or
        ``too-large``; nothing is held then.
        """
        with self._memory.events(given) as (events, cost):
            self._hold(given, events, cost, then)
        self.work()

    def _hold(
        self, given: Object, events: Sequence[Object], cost: int, then: Callable[[int], None]
    ) -> None:
        count = len(events)  # they are not to be kept for that
        durable = self.replica.durable if self.replica is not None else None

        def held() -> None:
            if self._metrics is not None:
                self._metrics.took(count)
            then(count)

        with self.lock:
            number = next(_NUMBERS if durable is None else durable.numbers)
            fired = self.flow.take(number, events, self.now())
            if durable is not None:
                again = partial(self._take_again, given, cost, then)
                durable.request(number, given, cost, held, again)
            self.follow(fired)
        if durable is None:
            held()

    def _take_again(self, given: Object, cost: int, then: Callable[[int], None]) -> None:
        """Hold events that no replica has: this one was taken for dead before they were kept."""
        self._hold(given, self.objects.items(given), cost, then)
        self.work()

    def begin_anew(self) -> None:
        """Hold nothing, and have nothing wait; with the lock."""
        self.flow = self._new_flow()
        self.ready.forget()

    def stop(self, until: float) -> None:
        """Begin nothing more; returns when what runs has ended, or at that monotonic time."""
        self.ready.stopped = True
        if self.replica is not None:
            with self.lock:
                self.replica.resign()
        while self.ready.running and time.monotonic() < until:
            time.sleep(_LOOK_S)

    def drain(self, then: Callable[[], None]) -> None:
        """Have all that waits fire as soon as nothing runs; call `then` when nothing is left."""
        with self.lock:
            self._then = then
        self._go_on()

    def answer(self) -> Object:
        """What no bucket takes, where no time passes: an object with a list for each function."""
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
        """Seconds of the clock by which windows go."""
        return 0.0 if self._offset_s is None else time.monotonic() + self._offset_s

    def follow(self, fired: Sequence[Firing[str, Object]]) -> None:
        """Have what has fired run, and be woken for what is due next; with the lock."""
        for fault in self.flow.faults():
            print(f"{_TRIGGER_FAILED}: {fault}")
            self.error = self.error or TaskError(_TRIGGER_FAILED, str(fault))
            if self._metrics is not None:
                self._metrics.failed(fault.bucket)
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
        self.work()

    def work(self, goes_on: bool = False) -> None:
        """Have threads take what is ready; one that does that already, and not `goes_on`, does."""
        own = getattr(_own, "serves", None) is self and not goes_on
        with self.lock:
            new = self.ready.call(self.most, own)
        for _ in range(new):
            self._runtime.threads.start(self._work)

    def _work(self) -> None:
        _own.serves = self
        try:
            with self.lock:
                self.ready.came()
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
        """Have buckets take in what a run has emitted, which goes on."""
        place, name = result.place, result.emitted
        if place is None or name is None:
            return
        with self.lock:
            if run.over or run.flow is not self.flow:  # another replica has it
                return
            firing, value, now_s, full = run.firing, given_by(result.output), self.now(), None
            buckets, _ = self.flow.routes.targets(firing.task, name)
            gives = [(bucket, False) for bucket in buckets]
            try:
                with self._memory.given(firing.task, gives, value, firing.task in self._answers):
                    self.follow(
                        self.flow.emitted(firing.number, place, name, result.group, value, now_s)
                    )
            except TaskError as error:
                full = error
        if full is not None:
            self.ended(run, full)
        self.work(goes_on=True)

    def ended(self, run: FiringRun, outcome: Outcome, of_failed: Sequence[Result] = ()) -> bool:
        """Take in how a run has ended; whether it had not before."""
        firing, number = run.firing, run.firing.number
        self.results += of_failed
        with self.lock:
            if run.over:
                return False
            run.over = True
            self._runs.forget(run)
            self.ready.ended()
            now_s, given_up = self.now(), False
            is_own = run.flow is self.flow  # else another replica has it
            if is_own and not isinstance(outcome, TaskError):
                if self._keeps_results:
                    self.results += outcome
                try:
                    self._took(firing, outcome[0].output, now_s)
                except TaskError as full:
                    outcome = full
            if is_own and isinstance(outcome, TaskError):
                self.follow(self.flow.failed(number, now_s))
                given_up = not self.flow.runs(number)
                if given_up:
                    self.error = self.error or outcome
        if isinstance(outcome, TaskError):
            what = "it is given up" if given_up else "another run of it goes on"
            print(f"bucket {firing.bucket}: {firing.task}: {outcome.code}: {outcome}: {what}")
        if self._metrics is not None:
            if isinstance(outcome, TaskError):
                self._metrics.failed(firing.bucket)
            else:
                self._metrics.ended(firing.bucket, now_s - firing.due_s)
        self._go_on()
        return True

    def _took(self, firing: Firing[str, Object], output: Object | None, now_s: float) -> None:
        """Take in what a run has given; with the lock. Raises as `EventMemory.given`."""
        value, task = given_by(output), firing.task
        is_first, answers = self.flow.runs(firing.number), task in self._answers
        gives = self.flow.routes.gives(task)
        with self._memory.given(task, gives, value if is_first else None, answers):
            if value is not None and is_first and answers:
                self._answers[task].append(Item(firing.number, value))
                self._answered += self.objects.size(value)
            self.follow(self.flow.ended(firing.number, value, now_s))

    def _go_on(self) -> None:
        """Run what is ready; fire what waits, where all is to end and nothing runs."""
        then = None
        with self.lock:
            if self._then is not None and self.flow.idle:
                self.follow(self.flow.drain(self.now()))
                if self.flow.idle:
                    then, self._then = self._then, None
                    self._runs.rest()
        if then is not None:
            then()
            return
        self.work()
        if self.replica is not None:
            self.replica.take_more()
