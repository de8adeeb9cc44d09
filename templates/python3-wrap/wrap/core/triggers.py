"""Which tasks run when, and which of them one call runs: buckets, their triggers, and groups.

A bucket holds back tasks until its trigger fires, which decides by the objects that have come; an
object is what a task gives, and goes by the task's name. This module is pure and knows no other:
wraps execute by it, and the predictor simulates by it.

References
----------
Pheromone (NSDI'23): buckets and triggers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar

Task = TypeVar("Task", bound=Hashable)
Place = TypeVar("Place", bound=Hashable)

#: What tasks wait for: all of the stage before theirs, or the objects that they need.
TriggerKind = Literal["stage", "data"]
#: So many instances of tasks are in a process, or at a wrap that is called, at once; others wait.
#: Step Functions runs as many items of a Map at once.
MOST_AT_ONCE = 40


class Bucket(NamedTuple, Generic[Task]):
    """Tasks that start together: with the objects of all that it `awaits`, or the request."""

    awaits: tuple[Task, ...]
    starts: tuple[Task, ...]

    def trigger(self) -> Trigger[Task]:
        """A new trigger of this bucket, for one execution."""
        return BySet(self.awaits) if self.awaits else Immediate()


class Group(NamedTuple, Generic[Place]):
    """The tasks that one call has a place run: when the bucket of that index has fired."""

    bucket: int
    place: Place


def buckets(
    predecessors: Mapping[Task, Iterable[Task]],
    stages: Sequence[Sequence[Task]],
    trigger: TriggerKind,
) -> list[Bucket[Task]]:
    """The buckets of a workflow, each after those whose tasks it awaits.

    Args:
        predecessors: for every task those whose objects it needs.
        stages: the topological generations of the tasks.
        trigger: with ``stage`` there is one bucket for each stage; with ``data`` one for all tasks
            that have the same predecessors.

    >>> needs = {"a": (), "b": (), "c": ("a",), "d": ("a", "b"), "e": ("b", "a")}
    >>> for bucket in buckets(needs, ["ab", "cde"], "data"):
    ...     print(bucket.awaits, bucket.starts)
    () ('a', 'b')
    ('a',) ('c',)
    ('a', 'b') ('d', 'e')
    """
    return TASK_TRIGGERS[trigger].buckets(predecessors, stages)


def _by_stage(
    predecessors: Mapping[Task, Iterable[Task]], stages: Sequence[Sequence[Task]]
) -> list[Bucket[Task]]:
    return [Bucket(*map(tuple, pair)) for pair in zip(((), *stages), stages, strict=False)]


def _by_data(
    predecessors: Mapping[Task, Iterable[Task]], stages: Sequence[Sequence[Task]]
) -> list[Bucket[Task]]:
    together: dict[frozenset[Task], list[Task]] = {}
    for stage in stages:
        for task in stage:
            together.setdefault(frozenset(predecessors[task]), []).append(task)
    return [
        Bucket(tuple(dict.fromkeys(predecessors[starts[0]])), tuple(starts))
        for starts in together.values()
    ]


class TaskTrigger(NamedTuple):
    """What tasks wait for."""

    #: The buckets of a workflow, as `buckets` returns them.
    buckets: Callable[[Mapping[Any, Iterable[Any]], Sequence[Sequence[Any]]], list[Bucket[Any]]]
    #: Whether a stage begins when the stage before has ended, so that their latencies add up.
    in_stages: bool = False
    #: Whether tasks may read streams while these are written.
    streams: bool = False


TASK_TRIGGERS: Mapping[TriggerKind, TaskTrigger] = {
    "stage": TaskTrigger(_by_stage, in_stages=True),
    "data": TaskTrigger(_by_data, streams=True),
}


def groups(
    buckets: Sequence[Bucket[Task]], place_of: Mapping[Task, Place], repeated: Container[Task] = ()
) -> dict[Task, Group[Place]]:
    """The group of every task that has a place.

    A task is of the group of those that its bucket awaits, if all of these are of one group, in
    its place: that place sees for itself when the bucket fires. Else its place has to be called
    when its bucket fires.

    Args:
        buckets: each after those whose tasks it awaits.
        place_of: where tasks run. Those that are not here run elsewhere.
        repeated: tasks that may be called for once more, which what follows them is not to be.

    Only c needs what another place gives:

    >>> chain = [Bucket((), ("a",)), Bucket(("a",), ("b",)), Bucket(("b",), ("c",))]
    >>> for task, group in groups(chain, {"a": 0, "b": 0, "c": 1}).items():
    ...     print(task, group.bucket, group.place)
    a 0 0
    b 0 0
    c 2 1
    """
    found: dict[Task, Group[Place]] = {}
    for index, bucket in enumerate(buckets):
        awaited = {None if task in repeated else found.get(task) for task in bucket.awaits}
        before = awaited.pop() if len(awaited) == 1 else None
        for task in bucket.starts:
            if task in place_of:
                place = place_of[task]
                joins = before is not None and before.place == place
                found[task] = before if before and joins else Group(index, place)
    return found


class Trigger(ABC, Generic[Task]):
    """Decides when a bucket fires, once in an execution, by the events that it is told of.

    It has no clock and starts nothing: the same events make every instance decide the same.
    """

    @abstractmethod
    def on_object(self, task: Task | None) -> bool:
        """Take in the object of `task`, None for the request; whether the bucket fires now.

        An object that has come before, or that nobody awaits, changes nothing.
        """

    def on_source_started(self, task: Task, now_s: float) -> None:
        """Take note that `task`, whose object is awaited, was started."""

    def due_for_rerun(self, now_s: float) -> tuple[Task, ...]:
        """The tasks whose objects are overdue, and which are to be run again."""
        return ()


class Immediate(Trigger[Task]):
    """Fires with the first object."""

    def __init__(self) -> None:
        self._fired = False

    def on_object(self, task: Task | None) -> bool:
        fires, self._fired = not self._fired, True
        return fires


class BySet(Trigger[Task]):
    """Fires when the objects of all of some tasks have come."""

    def __init__(self, awaits: Iterable[Task]) -> None:
        self._missing: set[Task | None] = set(awaits)

    def on_object(self, task: Task | None) -> bool:
        if task not in self._missing:
            return False
        self._missing.remove(task)
        return not self._missing
