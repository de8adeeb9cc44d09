"""A workflow of buckets: objects and ends of runs go in, runs of functions come out.

A pure state machine, as the engine of an execution is; but this state machine never ends. A wrap
performs the runs with a clock and threads. The reference executor performs them sequentially.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol

from .own import OwnTrigger, TriggerError
from .routes import RUN_BYTES, Routes, Task
from .triggers import TRIGGERS, Batch, Item, Number, StreamTrigger, Value

#: The maximum bytes of a character of a name or group.
_CHARACTER_BYTES = 4
#: Emitted objects sort before returned objects, in a number range of their own.
_EMITTED = -(1 << 32)


class Values(Protocol[Value]):
    """The operations on objects, which are opaque here."""

    def size(self, value: Value) -> int:
        """Return the size of the object in bytes."""

    def field(self, value: Value, name: str) -> str:
        """Return a field of a JSON object as a text; empty if it has no such field."""

    def items(self, value: Value) -> Sequence[Value]:
        """Return the items of a JSON list; another value is its own only item."""


class Firing(NamedTuple, Generic[Task, Value]):
    """A run of a function on the only object of `items`, or on the list of them.

    Its outputs carry its `number`, also if it runs again.
    """

    number: Number
    task: Task
    items: Sequence[Item[Value]]
    single: bool
    session: Number
    due_s: float
    bucket: str

    @property
    def begins_session(self) -> bool:
        """Whether this firing begins a session, with the other firings of the same objects."""
        return self.session == self.number[:-1]

    @property
    def size(self) -> int:
        """The bytes of memory that the firing takes."""
        return RUN_BYTES + sum(item.size for item in self.items)


class Settled(NamedTuple, Generic[Value]):
    """A session that has ended, and its objects for buckets that fire across sessions.

    These buckets get the objects at `Flow.hold`. Until then the whole session can run again.
    """

    session: Number
    given: Sequence[tuple[str, Item[Value]]]


class _Bucket(Generic[Task, Value]):
    def __init__(
        self, name: str, declared: Mapping[str, Any], place: int, faults: list[TriggerError]
    ) -> None:
        self.name = name
        self.place = place
        self._declared = declared
        self._faults = faults
        self.trigger = self._new_trigger()
        self.starts: Sequence[Task] = declared["starts"]
        self.attempts: int = declared["attempts"]
        self.name_from: str = declared.get("name_from", "")
        self.group_from: str = declared.get("group_from", "")

    def _new_trigger(self) -> StreamTrigger[Value]:
        declared = self._declared
        kind, options = declared.get("class"), declared["options"]
        trigger: StreamTrigger[Value] = (
            TRIGGERS[declared["trigger"]](**options)
            if kind is None
            else OwnTrigger(self.name, kind, options, self._faults)
        )
        trigger.rerun_after_s = declared.get("rerun_after_s", math.inf)
        return trigger

    def let_go(self) -> None:
        """Forget all objects, including which objects have arrived before."""
        self.trigger = self._new_trigger()


class _Run(Generic[Task, Value]):
    """A firing that has not ended, with its remaining attempts and the attempts that still run."""

    def __init__(self, firing: Firing[Task, Value], attempts: int) -> None:
        self.firing = firing
        self.left = attempts - 1
        self.running = 1
        #: The number of objects it has emitted. A retry emits the same objects.
        self.emitted = 0


class Flow(Generic[Task, Value]):
    """The buckets of a workflow, and the runs that have fired and not ended.

    Args:
        declared: ``entry``: the buckets that events go to. ``gives``: task -> pairs of a bucket and
            whether each item of a list is an object there. ``emits``: task -> names of objects that
            it emits. ``buckets``: name -> ``trigger`` and its ``options``, the tasks that it
            ``starts``, ``attempts``; each bucket after those whose tasks give to it.
            ``workflow.buckets`` makes it of a document, and `own.loaded` adds the ``class`` of a
            user's trigger. ``durable`` is for wraps.
        in_sessions: whether buckets across sessions get no object of a session before `release` and
            `hold`, which follow `settled`.

    Raises TriggerError if a user's trigger cannot be made.
    """

    def __init__(
        self, declared: Mapping[str, Any], values: Values[Value], *, in_sessions: bool = False
    ) -> None:
        self.routes = Routes[Task](declared)
        self._values = values
        self._in_sessions = in_sessions
        self._given: dict[Number, list[tuple[str, Item[Value]]]] = {}
        self._settled: list[Settled[Value]] = []
        self._faults: list[TriggerError] = []
        self._buckets: dict[str, _Bucket[Task, Value]] = {
            name: _Bucket(name, bucket, place, self._faults)
            for place, (name, bucket) in enumerate(declared["buckets"].items())
        }
        self._runs: dict[Number, _Run[Task, Value]] = {}
        self._running_size = 0
        buckets = self._buckets.values()
        upstream = self.routes.upstream({each.name: each.trigger.keeps_session for each in buckets})
        #: The buckets that wait for the end of tasks, with these tasks.
        self._waiting = [
            (each, upstream[each.name]) for each in buckets if each.trigger.waits_for_end
        ]
        self._with_reruns = _with_reruns(buckets)
        self._live: dict[Number, Counter[Task]] = {}

    @property
    def due_s(self) -> float:
        """The time of the next call of `passed`; infinite if none is due."""
        due_s = min(bucket.trigger.due_s for bucket in self._buckets.values())
        return min([due_s, *(trigger.rerun_due_s for trigger in self._with_reruns)])

    @property
    def size(self) -> int:
        """Bytes of the objects that wait or belong to runs."""
        waiting = sum(bucket.trigger.size for bucket in self._buckets.values())
        return waiting + self._running_size

    @property
    def idle(self) -> bool:
        """Whether no object of a current run can change anything."""
        for run in self._runs.values():
            gives = self.routes.gives(run.firing.task)
            takers = [self._buckets[name].trigger for name, _ in gives]
            if not takers or any(taker.wants(run.firing.session) for taker in takers):
                return False
        return True

    def take(self, number: int, events: Sequence[Value], now_s: float) -> list[Firing[Task, Value]]:
        """Process the events of a request, as a session; return what fires."""
        fired: list[Firing[Task, Value]] = []
        session = (number,)
        for place, value in enumerate(events):
            for name, _ in self.routes.entry:
                self._put(self._buckets[name], (number, place), value, session, "", now_s, fired)
        self._end_sources(session, now_s, fired)
        return fired

    def settled(self) -> list[Settled[Value]]:
        """Return the sessions that have ended since the last call."""
        found, self._settled = self._settled, []
        return found

    def faults(self) -> list[TriggerError]:
        """Return the errors of users' triggers since the last call."""
        found = self._faults[:]
        self._faults.clear()
        return found

    def release(self, given: Iterable[tuple[str, Item[Value]]]) -> None:
        """Stop counting the objects of an ended session: they are held elsewhere."""
        self._running_size -= sum(item.size for _, item in given)

    def let_go(self) -> None:
        """Empty the buckets that fire across sessions: another replica holds their objects now."""
        for bucket in self._buckets.values():
            if not bucket.trigger.keeps_session:
                bucket.let_go()
        self._with_reruns = _with_reruns(self._buckets.values())

    def withdraw(self, firings: Iterable[Firing[Task, Value]]) -> None:
        """Remove all first firings of a session: another replica runs the session."""
        for firing in firings:
            if self._runs.pop(firing.number, None) is not None:
                self._running_size -= firing.size
                self._live.pop(firing.session, None)

    def hold(
        self, given: Iterable[tuple[str, Item[Value]]], now_s: float
    ) -> list[Firing[Task, Value]]:
        fired: list[Firing[Task, Value]] = []
        for name, item in given:
            bucket = self._buckets[name]
            self._fire(bucket, bucket.trigger.on_object(item, now_s), now_s, fired)
        return fired

    def fired_before(
        self, bucket: str, items: Iterable[Item[Value]], now_s: float
    ) -> list[Firing[Task, Value]]:
        """Return the firings of a batch, in any order, that a bucket fired before this flow."""
        fired: list[Firing[Task, Value]] = []
        batch = Batch(sorted(items, key=lambda item: item.number), now_s)
        self._fire(self._buckets[bucket], [batch], now_s, fired)
        return fired

    def emitted(
        self,
        number: Number,
        place: int,
        name: str,
        group: str | None,
        value: Value | None,
        now_s: float,
    ) -> list[Firing[Task, Value]]:
        """Process an object that a run emitted before its end (None: nothing); return what fires.

        `place` counts the run's earlier emissions. Duplicates from other attempts, and emissions
        after the end, are ignored.

        Raises as `emission_targets`.
        """
        fired: list[Firing[Task, Value]] = []
        run = self._runs.get(number)
        if run is None or place < run.emitted:
            return fired
        run.emitted = place + 1
        session, own = run.firing.session, (*number, _EMITTED + place)
        buckets, called = self.routes.emission_targets(run.firing.task, name)
        if value is not None:
            for bucket in buckets:
                self._put(self._buckets[bucket], own, value, session, called, now_s, fired, group)
        return fired

    def ended(self, number: Number, value: Value | None, now_s: float) -> list[Firing[Task, Value]]:
        """Process the output of a run, which may be None; return what fires.

        If several attempts of a firing run, the first end counts.
        """
        fired: list[Firing[Task, Value]] = []
        run = self._runs.pop(number, None)
        if run is None:
            return fired
        firing = run.firing
        self._running_size -= firing.size
        if value is not None:
            self._give(firing, value, now_s, fired)
        if self._waiting or self._in_sessions:
            live = self._live[firing.session]
            live[firing.task] -= 1
            if not live[firing.task]:
                del live[firing.task]
                self._end_sources(firing.session, now_s, fired)
        return fired

    def failed(self, number: Number, now_s: float) -> list[Firing[Task, Value]]:
        """Return the retry of a failed run. After its last attempt it ends without an output."""
        run = self._runs.get(number)
        if run is None:
            return []
        run.running -= 1
        if run.left:
            return [self._again(run, now_s)]
        return self.ended(number, None, now_s) if not run.running else []

    def runs(self, number: Number) -> bool:
        return number in self._runs

    def passed(self, now_s: float) -> list[Firing[Task, Value]]:
        """Return what fires at this time, and the overdue runs to start again."""
        fired: list[Firing[Task, Value]] = []
        for bucket in self._buckets.values():
            self._fire(bucket, bucket.trigger.on_time(now_s), now_s, fired)
            for number in bucket.trigger.due_for_rerun(now_s):
                run = self._runs.get(number)
                if run is not None and run.left:
                    fired.append(self._again(run, now_s))
        return fired

    def drain(self, now_s: float) -> list[Firing[Task, Value]]:
        """Fire what waits for a time or for objects, in the first bucket that holds something."""
        fired: list[Firing[Task, Value]] = []
        for bucket in self._buckets.values():
            self._fire(bucket, bucket.trigger.drain(now_s), now_s, fired)
            if fired:
                break
        return fired

    def _put(
        self,
        bucket: _Bucket[Task, Value],
        number: Number,
        value: Value,
        session: Number,
        called: str,
        now_s: float,
        fired: list[Firing[Task, Value]],
        group: str | None = None,
    ) -> None:
        values = self._values
        name = values.field(value, bucket.name_from) if bucket.name_from else called
        if group is None:
            group = values.field(value, bucket.group_from) if bucket.group_from else ""
        size = values.size(value)
        if name is not called or group:  # texts of its own
            size += _CHARACTER_BYTES * (len(name) + len(group))
        item = Item(number, value, session, name, group, size)
        if self._in_sessions and not bucket.trigger.keeps_session:
            self._given.setdefault(session, []).append((bucket.name, item))
            self._running_size += item.size
            return
        batches = bucket.trigger.on_object(item, now_s)
        if batches:
            self._fire(bucket, batches, now_s, fired)

    def _fire(
        self,
        bucket: _Bucket[Task, Value],
        batches: Sequence[Batch[Value]],
        now_s: float,
        fired: list[Firing[Task, Value]],
    ) -> None:
        trigger = bucket.trigger
        for items, due_s in batches:
            number = (*items[0].number, bucket.place)
            session = items[0].session if trigger.keeps_session else number
            for place, task in enumerate(bucket.starts):
                firing = Firing(
                    (*number, place), task, items, trigger.single, session, due_s, bucket.name
                )
                self._runs[firing.number] = _Run(firing, bucket.attempts)
                self._running_size += firing.size
                if self._waiting or self._in_sessions:
                    self._live.setdefault(session, Counter())[task] += 1
                self._note_start(firing, now_s)
                fired.append(firing)

    def _note_start(self, firing: Firing[Task, Value], now_s: float) -> None:
        for name, _ in self.routes.gives(firing.task):
            self._buckets[name].trigger.on_source_started(firing.number, now_s)

    def _again(self, run: _Run[Task, Value], now_s: float) -> Firing[Task, Value]:
        run.left -= 1
        run.running += 1
        self._note_start(run.firing, now_s)
        return run.firing

    def _give(
        self,
        firing: Firing[Task, Value],
        value: Value,
        now_s: float,
        fired: list[Firing[Task, Value]],
    ) -> None:
        for name, each in self.routes.gives(firing.task):
            bucket, giver = self._buckets[name], str(firing.task)
            for place, own in enumerate(self._values.items(value) if each else (value,)):
                number = (*firing.number, place)
                self._put(bucket, number, own, firing.session, giver, now_s, fired)

    def _end_sources(self, session: Number, now_s: float, fired: list[Firing[Task, Value]]) -> None:
        """Tell the waiting buckets, in order of dependence, that a session sends no more."""
        for bucket, upstream in self._waiting:
            if upstream.isdisjoint(self._live.get(session, ())):
                found = bucket.trigger.on_sources_ended(session, now_s)
                self._fire(bucket, found, now_s, fired)
        if not self._live.get(session):
            self._live.pop(session, None)
            if self._in_sessions:
                self._settled.append(Settled(session, self._given.pop(session, ())))


def _with_reruns(buckets: Iterable[_Bucket[Any, Value]]) -> list[StreamTrigger[Value]]:
    triggers = (bucket.trigger for bucket in buckets)
    return [each for each in triggers if each.rerun_after_s < math.inf]
