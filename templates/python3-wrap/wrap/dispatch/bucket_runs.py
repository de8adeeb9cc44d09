"""Buckets with what they hold, and what runs of them: performs what `wrap.core.buckets.flow` says.

Each firing is a run of one task: by the thread that takes it, or, where that is in a further
process, as an execution. Events that are held take no thread: as many as may run at once take what
has fired, one after another.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import count
from typing import Any

from wrap.cluster.durable import DurableBuckets, Held, Order
from wrap.core.buckets.contents import NOTHING_BYTES, field_of, is_nothing, items_of, most_items
from wrap.core.buckets.flow import RUN_BYTES, Firing, Flow, targets
from wrap.core.buckets.own import TriggerError
from wrap.core.buckets.triggers import Item, Number
from wrap.core.dag import Engine
from wrap.core.errors import TaskError, too_late
from wrap.core.program import MAIN, Key
from wrap.core.triggers import MOST_AT_ONCE
from wrap.dispatch.execution import Execution, Outcome
from wrap.dispatch.parallelism import Parallelism
from wrap.dispatch.results import all_results
from wrap.dispatch.runtime import Runtime
from wrap.event_loop.loop import Timer
from wrap.event_loop.threads import Run, own_run
from wrap.functions import runner as tasks
from wrap.functions.task_io import Access
from wrap.net.messages import UNWATCHED, Ident, Result, Watch
from wrap.observe.metrics import StreamMetrics
from wrap.observe.trace_context import TraceContext
from wrap.values.inputs import Inputs
from wrap.values.quota import GIVEN, Quota
from wrap.values.value import JSON, Object, quoted

#: What an object takes in memory beside its own bytes: what has it, its number, places in tables.
_OBJECT_BYTES = 500
#: What reading a list takes for each of its items, in bytes.
_READING_BYTES = 72
#: How often is looked whether all has ended, in seconds.
_LOOK_S = 0.01
#: Functions of buckets have no streams.
_NO_STREAMS = Access(0, None, Inputs({}).resolve)
#: What requests are numbered with where nothing of them is kept.
_NUMBERS = count(time.time_ns())
#: The code of errors of triggers that users wrote.
_TRIGGER_FAILED = "trigger-failed"
#: With so many firings in hand, what fires next is offered to other replicas too.
_AT_HAND = 4
#: Has as `serves` the stream for which a thread takes what has fired.
_own = threading.local()


class _Item(Object):
    """One of a JSON list, and so JSON itself."""

    __slots__ = ()


class _Objects:
    """What buckets have to know of objects."""

    def size(self, value: Object) -> int:
        return value.memory + _OBJECT_BYTES

    def field(self, value: Object, name: str) -> str:
        return field_of(value.view(), name)

    def items(self, value: Object) -> Sequence[Object]:
        found = items_of(value.view())
        return [value] if found is None else [_Item(item, JSON) for item in found]


class _Attempt:
    """One run of a firing, which ends once.

    Attributes
    ----------
    flow
        Whose firing it is.
    limit
        Until when it may run, in seconds of the monotonic clock.
    run
        The thread's work where it runs in this process.
    """

    def __init__(self, firing: Firing[str, Object], flow: Flow[str, Object], limit: float) -> None:
        self.firing = firing
        self.flow = flow
        self.over = False
        self.limit = limit
        self.run: Run | None = None


class BucketRuns:
    """Its methods may be called by any thread.

    Parameters
    ----------
    declared
        As `wrap.core.buckets.flow.Flow` has it.
    numbers
        The task of each name in it.
    clock
        Seconds, by which windows go.
    offset_s
        What `clock` is ahead of the monotonic clock; None where no time passes.
    deadline
        Until when all has to end, in seconds of the monotonic clock.
    watch
        What `results` tell.
    trace
        The trace that all runs are part of.
    metrics
        Where it is counted what becomes of events.
    keeper
        Keeps all until it has ended, where that is to outlive the process.

    quota
        What objects may take; this is one of its takers.

    Raises TaskError, ``trigger-failed``, where a trigger that a user wrote cannot be made.

    Attributes
    ----------
    quota
        What objects may take.
    results
        Of all runs, where they are watched; also of those that failed, where they are exported.
    error
        The first one of a firing that has been given up.
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
        keeper: DurableBuckets | None = None,
        trace: TraceContext | None = None,
        quota: Quota | None = None,
    ) -> None:
        self.quota = quota or Quota()
        self.results: list[Result] = []
        self.error: TaskError | None = None
        self._runtime = runtime
        self._numbers = numbers
        self._offset_s = offset_s
        self._deadline = deadline
        self._watch = watch
        self._trace = trace
        self._is_exported = trace is not None and trace.is_exported
        self._metrics = metrics
        self._keeper = keeper
        self._stopped = False
        self._objects = _Objects()
        self._declared = declared
        self._flow = self._new_flow()
        #: For which this is the evaluator; what has fired, and begins as soon as that is kept.
        self._term = b""
        self._promised = 0
        self._lock = threading.Lock()
        self._ready = deque[Firing[str, Object]]()
        #: Executions that run, and threads that are about to take what has fired.
        self._running = self._coming = 0
        self._parallelism = Parallelism(MOST_AT_ONCE)
        #: What runs in this process, and when is looked which of it takes too long.
        self._here = set[_Attempt]()
        self._look_at = math.inf
        self._looks: Timer | None = None
        self._answers: dict[str, list[Item[Object]]] = {
            task: [] for task in numbers if offset_s is None and self._flow.answers(task)
        }
        self._answered = 0
        self.quota.takers.add(self)
        self._then: Callable[[], None] | None = None
        self._timer: Timer | None = None
        self._due = math.inf

    @property
    def size(self) -> int:
        """Bytes of the objects that wait or are worked on."""
        with self._lock:
            return self._flow.size

    @property
    def taken(self) -> int:
        """The same, and what waits to be written; also for a thread that has this locked."""
        unwritten = self._keeper.size if self._keeper is not None else 0
        return self._flow.size + self._answered + unwritten

    def take(self, given: Object, then: Callable[[int], None]) -> None:
        """Hold events: the items of a JSON list, or what is none as one.

        `then` is called with their number when they are held. Raises TaskError, ``full`` or
        ``too-large``; nothing is held then.
        """
        content, flow, what = given.view(), self._flow, "what came in the request"
        copies = given.memory + (2 * len(content) if self._keeper is not None else 0)
        most, events = most_items(content), None
        cost = copies + flow.cost(flow.entry, len(content), most, _OBJECT_BYTES)
        if cost > self.quota.left:  # a list of few large items has many commas too
            least = flow.cost(flow.entry, len(content), 1, _OBJECT_BYTES)
            with self.quota.reserved(copies + max(least, most * _READING_BYTES), what):
                events = self._objects.items(given)
            cost = copies + flow.cost(flow.entry, len(content), len(events), _OBJECT_BYTES)
        with self.quota.reserved(cost, what):
            events = self._objects.items(given) if events is None else events
            self._hold(given, events, cost, then)
        self._have_worked()

    def _hold(
        self, given: Object, events: Sequence[Object], cost: int, then: Callable[[int], None]
    ) -> None:
        count = len(events)  # they are not to be kept for that

        def held() -> None:
            if self._metrics is not None:
                self._metrics.took(count)
            then(count)

        with self._lock:
            number = next(_NUMBERS if self._keeper is None else self._keeper.numbers)
            fired = self._flow.take(number, events, self._now())
            if self._keeper is not None:
                again = partial(self._take_again, given, cost, then)
                self._keeper.request(number, given, cost, held, again)
            self._follow(fired)
        if self._keeper is None:
            held()

    def _take_again(self, given: Object, cost: int, then: Callable[[int], None]) -> None:
        """Hold events that no replica has: this one was taken for dead before they were kept."""
        self._hold(given, self._objects.items(given), cost, then)
        self._have_worked()

    @property
    def term(self) -> bytes:
        """For which this is the evaluator of durable buckets; empty where it is not."""
        return self._term

    @property
    def may_evaluate(self) -> bool:
        """Whether it can become that."""
        return not self._stopped

    @property
    def room(self) -> int:
        """How many further sessions would begin here, of those that any replica can have."""
        with self._lock:
            return 0 if self._stopped else self._parallelism.most - self._in_hand

    @property
    def load(self) -> tuple[int, int, int]:
        """How many firings run, how many wait, and how many may run at once.

        What is offered to any replica waits where the evaluator is.
        """
        offered = self._keeper.offered if self._keeper is not None and self._term else 0
        with self._lock:
            return self._running, len(self._ready) + offered, self._parallelism.most

    def evaluate(self, term: bytes) -> None:
        """Be the evaluator, of the objects that are to come."""
        with self._lock:
            if not self._stopped:
                self._term = term
                self._flow.let_go()
                self._follow([])
            elif self._keeper is not None:
                self._keeper.resign(term)
        self._have_worked()

    def no_longer_evaluate(self, term: bytes) -> None:
        """Be it no longer, if it is for that term."""
        with self._lock:
            if term == self._term:
                self._term = b""
                self._flow.let_go()

    def arrived(self, term: bytes, items: Iterable[Held]) -> None:
        """Have buckets hold what came of sessions of others, if it is the evaluator for `term`."""
        with self._lock:
            if term == self._term:
                self._follow(self._flow.hold(self._known(items), self._now()))
        self._have_worked()

    def resume(
        self, requests: Iterable[tuple[int, Object]], fired: Iterable[Sequence[Held]]
    ) -> None:
        """Begin sessions that another replica has had, or has fired."""
        with self._lock:
            for batch in fired:
                for bucket, items in _by_bucket(self._known(batch)).items():
                    self._queue(self._flow.fired_before(bucket, items, self._now()))
            for number, given in requests:
                events = self._objects.items(given)
                self._follow(self._flow.take(number, events, self._now()))
        self._have_worked()

    def have_room(self) -> None:
        """Go on, and take what is offered or is to be held, if there is room for it."""
        self._have_worked()
        if self._keeper is not None:
            self._keeper.read_more()
            if self._keeper.offers and (room := self.room) > 0:
                self._keeper.claim(room)

    @property
    def bytes_left(self) -> int:
        """What sessions of others may take: all that there is where nothing is in hand."""
        return self.quota.left if self._in_hand else self.quota.most

    def begin_anew(self) -> list[Order]:
        """Have nothing any more, as others have it; what `DurableBuckets.forget` gives."""
        with self._lock:
            self._flow, self._term, self._promised = self._new_flow(), b"", 0
            self._ready.clear()
            return self._keeper.forget() if self._keeper is not None else []

    def stop(self, until: float) -> None:
        """Begin nothing more; returns when what runs has ended, or at that monotonic time."""
        self._stopped = True
        with self._lock:
            term, self._term = self._term, b""
            if term and self._keeper is not None:
                self._flow.let_go()
                self._keeper.resign(term)
        while self._running and time.monotonic() < until:
            time.sleep(_LOOK_S)

    def drain(self, then: Callable[[], None]) -> None:
        """Have all that waits fire as soon as nothing runs; call `then` when nothing is left."""
        with self._lock:
            self._then = then
        self._go_on()

    def answer(self) -> Object:
        """What no bucket takes, where no time passes: an object with a list for each function."""
        fields = []
        for name, items in self._answers.items():
            listed = _listed(sorted(items, key=lambda item: item.number))
            fields.append(f"{''.join(quoted(name))}:{listed.text()}")
        return Object("{" + ",".join(fields) + "}", JSON)

    def _new_flow(self) -> Flow[str, Object]:
        try:
            return Flow(self._declared, self._objects, in_sessions=self._keeper is not None)
        except TriggerError as error:
            raise TaskError(_TRIGGER_FAILED, str(error)) from error

    def _known(self, items: Iterable[Held]) -> Iterator[Held]:
        """Those of buckets that there are: another version may have had others."""
        for bucket, item in items:
            if bucket in self._declared["buckets"]:
                yield bucket, item
            else:
                print(f"an object of the bucket {bucket} is dropped, as there is none")

    @property
    def _waits_for_memory(self) -> bool:
        """Whether nothing more is to begin before what runs has ended, or has been written."""
        if self._keeper is not None and self._keeper.size > self.quota.most:
            return True
        return self._running > 0 and self.quota.is_slow

    @property
    def _in_hand(self) -> int:
        """Firings that run, are about to, or wait."""
        return self._running + len(self._ready) + self._promised

    def _now(self) -> float:
        return 0.0 if self._offset_s is None else time.monotonic() + self._offset_s

    def _follow(self, fired: Sequence[Firing[str, Object]]) -> None:
        """Have what has fired run, and be woken for what is due next; with the lock."""
        for fault in self._flow.faults():
            print(f"{_TRIGGER_FAILED}: {fault}")
            self.error = self.error or TaskError(_TRIGGER_FAILED, str(fault))
            if self._metrics is not None:
                self._metrics.failed(fault.bucket)
        if self._keeper is None:
            self._queue(fired)
        else:
            self._keep(self._keeper, fired)
        if self._offset_s is None:
            return
        due = self._flow.due_s
        if due < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = due
            self._timer = self._runtime.loop.call_at(due - self._offset_s, self._passed)

    def _queue(self, fired: Iterable[Firing[str, Object]]) -> None:
        """Have it run: windows and batches, which have waited, before what fires at once."""
        for firing in fired:
            if firing.begins_session:
                self._ready.appendleft(firing)
            else:
                self._ready.append(firing)

    def _keep(self, keeper: DurableBuckets, fired: Sequence[Firing[str, Object]]) -> None:
        """Have what begins a session run when that is kept, and what comes of one be held then."""
        sessions: dict[Number, list[Firing[str, Object]]] = {}
        for firing in fired:
            if firing.begins_session:
                sessions.setdefault(firing.session, []).append(firing)
            else:
                self._ready.append(firing)
        for session, firings in sessions.items():
            is_own = not keeper.others or self._in_hand < _AT_HAND
            if is_own:
                self._promised += len(firings)
            items = [(firings[0].bucket, item) for item in firings[0].items]
            then = partial(self._fired, firings, is_own)
            size = sum(map(_size, firings))
            keeper.fired(self._term, session, items, size, is_own, then)
        for settled in self._flow.settled():
            keeper.settled(self._term, settled, partial(self._settled, settled.given))

    def _fired(self, firings: Sequence[Firing[str, Object]], is_own: bool, begins: bool) -> None:
        """What has fired is kept, and begins here or elsewhere; or another one is the evaluator."""
        with self._lock:
            if is_own:
                self._promised -= len(firings)
            if begins:
                self._queue(firings)
            else:
                self._flow.withdraw(firings)
        self._have_worked()

    def _settled(self, given: Sequence[Held], is_to_hold: bool) -> None:
        """What came of a session is kept; the evaluator holds it."""
        with self._lock:
            if is_to_hold:
                self._follow(self._flow.commit(given, self._now()))
            else:
                self._flow.release(given)
        self._have_worked()

    def _passed(self) -> None:
        with self._lock:
            self._due, self._timer = math.inf, None
            self._follow(self._flow.passed(self._now()))
        self._have_worked()

    def _have_worked(self, goes_on: bool = False) -> None:
        """Have threads take what is ready; one that does that already, and not `goes_on`, does."""
        own = getattr(_own, "serves", None) is self and not goes_on
        with self._lock:
            room = min(len(self._ready), self._parallelism.most - self._running) - self._coming
            new = max(0, room - own)
            self._coming += new
        for _ in range(new):
            self._runtime.threads.start(self._work)

    def _work(self) -> None:
        _own.serves = self
        try:
            with self._lock:
                self._coming -= 1
            while (attempt := self._next()) is not None and self._run(attempt):
                pass
        finally:
            _own.serves = None

    def _next(self) -> _Attempt | None:
        with self._lock:
            self._parallelism.look()
            if not self._ready or self._running >= self._parallelism.most or self._stopped:
                return None
            if self._waits_for_memory:
                return None
            self._running += 1
            firing, wrap = self._ready.popleft(), self._runtime.wrap
            own_s = wrap.timeouts_s.get(wrap.tasks[self._numbers[firing.task]], wrap.timeout_s)
            limit = min(self._deadline, time.monotonic() + min(own_s, wrap.timeout_s))
            return _Attempt(firing, self._flow, limit)

    def _run(self, attempt: _Attempt) -> bool:
        """Run it; whether this thread may take another one: it may be about to be cancelled."""
        runtime = self._runtime
        task, run = self._numbers[attempt.firing.task], own_run()
        try:
            if runtime.wrap.process_of[task] == MAIN and not runtime.threads.too_many():
                return self._run_here(attempt, task, run)
            part = runtime.wrap.part_of((task,), frozenset((task,)))
            deadline = min(self._deadline, time.monotonic() + runtime.wrap.timeout_s)
            given, reply = partial(_objects, attempt.firing), partial(self._reply, attempt)
            ident = Ident(self._watch, trace=self._trace)
            execution = Execution(
                *(runtime, Engine(part), {}, ident, deadline, reply),
                prepare=given,
                into_buckets=partial(self._emitted, attempt),
            )
            execution.start(run)
        except TaskError as error:
            self._ended(attempt, error)
        except BaseException as error:  # its thread is given up, say
            self._ended(attempt, TaskError("wrap-failed", f"{type(error).__name__}: {error}"))
            raise
        return True

    def _run_here(self, attempt: _Attempt, task: int, run: Run | None) -> bool:
        """Run a task in this thread: an execution of its own would take as long again."""
        with self._lock:
            attempt.run = run
            self._here.add(attempt)
            self._look_later(attempt.limit)
        runtime, given = self._runtime, partial(_input, attempt.firing)

        def emitted(result: Result) -> None:
            with run.undisturbed() if run is not None else nullcontext():
                self._emitted(attempt, result)

        result = tasks.run(
            *(task, given, Ident(self._watch, trace=self._trace), MAIN, emitted),
            *(_NO_STREAMS, None, runtime.wrap, runtime.functions),
        )
        runtime.metrics.ran(result)
        if result.error is None:
            return self._ended(attempt, [result])
        if self._is_exported:
            self.results.append(result)
        return self._ended(attempt, TaskError.from_dict(result.error, status=500))

    def _emitted(self, attempt: _Attempt, result: Result) -> None:
        """Have buckets take in what a run has emitted, which goes on."""
        place, name, output = result.place, result.emitted, result.output
        if place is None or name is None:
            return
        with self._lock:
            if attempt.over or attempt.flow is not self._flow:  # another replica has it
                return
            firing, value, now_s = attempt.firing, _value(output), self._now()
            number, full = firing.number, None
            buckets, _ = targets(self._declared, firing.task, name)
            try:
                with self._given(firing, [(bucket, False) for bucket in buckets], value):
                    fired = self._flow.emitted(number, place, name, result.group, value, now_s)
                    self._follow(fired)
            except TaskError as error:
                full = error
        if full is not None:
            self._ended(attempt, full)
        self._have_worked(goes_on=True)

    def _given(
        self, firing: Firing[str, Object], gives: Sequence[tuple[str, bool]], value: Object | None
    ) -> AbstractContextManager[None]:
        """Memory for what a run gives. Raises TaskError, ``full`` or ``too-large``."""
        if value is None:
            return nullcontext()
        if not gives:
            cost = self._objects.size(value) if firing.task in self._answers else 0
            return self.quota.reserved(cost, f"what {firing.task} answers", GIVEN)
        what, content, each = f"what {firing.task} gives", value.view(), any(e for _, e in gives)
        most = most_items(content) if each else 1
        cost = self._flow.cost(gives, len(content), most, _OBJECT_BYTES)
        if each and cost > (GIVEN - 1) * self.quota.most + self.quota.left:
            with self.quota.reserved(most * _READING_BYTES, what, GIVEN):
                most = len(self._objects.items(value))
            cost = self._flow.cost(gives, len(content), most, _OBJECT_BYTES)
        return self.quota.reserved(cost, what, GIVEN)

    def _look_later(self, when: float) -> None:
        """Look then whether something takes too long, unless that is so before; with the lock."""
        if when < self._look_at:
            if self._looks is not None:
                self._looks.cancel()
            self._look_at = when
            self._looks = self._runtime.loop.call_at(when, self._look)

    def _look(self) -> None:
        """Give up what runs in this process and takes too long."""
        now, runtime = time.monotonic(), self._runtime
        with self._lock:
            self._look_at, self._looks = math.inf, None
            overdue = [each for each in self._here if each.limit <= now]
            self._look_later(min((e.limit for e in self._here if e.limit > now), default=math.inf))
        for attempt in overdue:
            function = runtime.wrap.tasks[self._numbers[attempt.firing.task]]
            error = too_late(function).located(function, runtime.wrap.name)
            if not self._ended(attempt, error):
                continue
            runtime.metrics.run_failed(function, error.code)
            if attempt.run is not None:
                runtime.threads.give_up(attempt.run)
                attempt.run.cancel()

    def _reply(self, attempt: _Attempt, execution: Execution, outcome: Outcome) -> None:
        if isinstance(outcome, TaskError) and execution.ident.is_exported:
            self.results += all_results(execution, outcome)
        self._ended(attempt, outcome)

    def _ended(self, attempt: _Attempt, outcome: Outcome) -> bool:
        """Take in how an attempt has ended; whether it had not before."""
        firing, number = attempt.firing, attempt.firing.number
        with self._lock:
            if attempt.over:
                return False
            attempt.over = True
            self._here.discard(attempt)
            self._running -= 1
            now_s, given_up = self._now(), False
            is_own = attempt.flow is self._flow  # else another replica has it
            if is_own and not isinstance(outcome, TaskError):
                if self._watch.traced or self._is_exported:
                    self.results += outcome
                try:
                    self._took(firing, outcome[0].output, now_s)
                except TaskError as full:
                    outcome = full
            if is_own and isinstance(outcome, TaskError):
                self._follow(self._flow.failed(number, now_s))
                given_up = not self._flow.runs(number)
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
        """Take in what a run has given; with the lock. Raises as `_given`."""
        value = _value(output)
        is_first = self._flow.runs(firing.number)
        with self._given(firing, self._flow.gives(firing.task), value if is_first else None):
            if value is not None and is_first and firing.task in self._answers:
                self._answers[firing.task].append(Item(firing.number, value))
                self._answered += self._objects.size(value)
            self._follow(self._flow.ended(firing.number, value, now_s))

    def _go_on(self) -> None:
        """Run what is ready; fire what waits, where all is to end and nothing runs."""
        then = None
        with self._lock:
            if self._then is not None and self._flow.idle:
                self._follow(self._flow.drain(self._now()))
                if self._flow.idle:
                    then, self._then = self._then, None
                    if self._looks is not None and not self._here:  # it would keep all objects
                        self._looks.cancel()
                        self._look_at, self._looks = math.inf, None
        if then is not None:
            then()
        else:
            self.have_room()


def _size(firing: Firing[str, Object]) -> int:
    """Bytes that it takes."""
    return RUN_BYTES + sum(item.size for item in firing.items)


def _input(firing: Firing[str, Object]) -> Object:
    """What a run is given."""
    return firing.items[0].value if firing.single else _listed(firing.items)


def _objects(firing: Firing[str, Object]) -> Mapping[Key, Object]:
    """The same for an execution, as its request."""
    return {None: _input(firing)}


def _value(output: Object | None) -> Object | None:
    """What a function has given, if that is an object."""
    if output is not None and output.size <= NOTHING_BYTES and is_nothing(output.view()):
        return None
    return output


def _by_bucket(items: Iterable[Held]) -> Mapping[str, Sequence[Item[Object]]]:
    found: dict[str, list[Item[Object]]] = {}
    for bucket, item in items:
        found.setdefault(bucket, []).append(item)
    return found


def _listed(items: Sequence[Item[Object]]) -> Object:
    """The JSON list of objects. Raises TaskError, ``not-text``, where one is no text."""
    if all(isinstance(item.value, _Item) for item in items):  # nothing is to be read again
        return Object(b"[" + b",".join(item.value.view() for item in items) + b"]", JSON)
    return Inputs(dict(enumerate(item.value for item in items))).resolve([*range(len(items))])
