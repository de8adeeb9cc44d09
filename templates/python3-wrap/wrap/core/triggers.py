"""Buckets, their triggers, and groups: when tasks run, and which of them one call runs.

A bucket holds back tasks until its trigger fires. The trigger decides by the objects that have
arrived. An object has the name of the task that returns it. This module is pure and imports no
other module of the project: wraps execute by it, and the predictor simulates by it.

References
----------
Pheromone (NSDI'23): buckets and triggers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar

Task = TypeVar("Task", bound=Hashable)
Place = TypeVar("Place", bound=Hashable)

#: The kind of trigger: tasks wait for the whole stage before theirs, or for the objects they need.
TriggerKind = Literal["stage", "data"]
#: The most instances that run at once in a process or at a called wrap; others wait. Step Functions
#: runs as many items of a Map at once.
MOST_AT_ONCE = 40


class Bucket(NamedTuple, Generic[Task]):
    """Tasks that start together: with the objects of all tasks in `awaits`, or with the request."""

    awaits: tuple[Task, ...]
    starts: tuple[Task, ...]


class Group(NamedTuple, Generic[Place]):
    """The tasks that one call starts at a place, when the bucket with that index has fired."""

    bucket: int
    place: Place


def buckets(
    predecessors: Mapping[Task, Iterable[Task]],
    stages: Sequence[Sequence[Task]],
    trigger: TriggerKind,
) -> list[Bucket[Task]]:
    """Return the buckets of a workflow, each after the buckets whose tasks it awaits.

    Args:
        predecessors: task -> the tasks whose objects it needs.
        stages: the topological generations of the tasks.
        trigger: ``stage`` makes one bucket per stage, ``data`` one per set of predecessors.

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
    """The rules of a trigger kind."""

    #: The buckets of a workflow, as `buckets` returns them.
    buckets: Callable[[Mapping[Any, Iterable[Any]], Sequence[Sequence[Any]]], list[Bucket[Any]]]
    #: Whether a stage begins when the stage before has ended, so that their latencies add up.
    in_stages: bool = False
    #: Whether tasks may read streams while other tasks write them.
    streams: bool = False


TASK_TRIGGERS: Mapping[TriggerKind, TaskTrigger] = {
    "stage": TaskTrigger(_by_stage, in_stages=True),
    "data": TaskTrigger(_by_data, streams=True),
}


def groups(
    buckets: Sequence[Bucket[Task]], place_of: Mapping[Task, Place], repeated: Container[Task] = ()
) -> dict[Task, Group[Place]]:
    """Return the group of every task that has a place.

    A task joins the group of the tasks that its bucket awaits, if these share one group at its
    place. That place then decides itself when the bucket fires. Otherwise the place is called when
    the bucket fires.

    Args:
        buckets: each after the buckets whose tasks it awaits.
        place_of: task -> its place. Tasks that are missing run elsewhere.
        repeated: tasks that may be called again; their successors must not be called again with
            them.

    Only c needs an object from another place:

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


class BySet(Generic[Task]):
    """Fires once in an execution, when the objects of all awaited tasks have arrived."""

    def __init__(self, awaits: Iterable[Task]) -> None:
        self._missing = set(awaits)

    def on_object(self, task: Task) -> bool:
        """Process the object of `task`; return whether the bucket fires now.

        Duplicates and objects that the bucket does not await are ignored.
        """
        if task not in self._missing:
            return False
        self._missing.remove(task)
        return not self._missing
