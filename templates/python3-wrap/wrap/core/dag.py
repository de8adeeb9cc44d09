"""Graphs of tasks: a pure state machine over buckets and their triggers.

Events go in (the execution began, a task ended). Steps come out (tasks to begin, places to call).
The module has no socket, clock or thread, and never reads the objects.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence, Set
from functools import cached_property

from wrap.core.program import (
    MAIN,
    Call,
    Component,
    Key,
    Place,
    Program,
    Source,
    Step,
    Streamed,
    given_to,
    keys,
)
from wrap.core.triggers import Bucket, BySet, Group, groups


class Graph:
    """The known tasks of a workflow.

    Args:
        buckets: ``(awaits, starts)``, each after the buckets whose tasks it awaits.
        sources: task -> where its input comes from, for every task that a bucket starts.
        instances: how many tasks the workflow has if the numbers are those of instances; else 0.
        components: task -> the tasks that live streams connect it with.
    """

    def __init__(
        self,
        buckets: Iterable[tuple[Iterable[int], Iterable[int]]],
        sources: Mapping[int, Source | Streamed],
        instances: int = 0,
        components: Mapping[int, Component] = {},
    ) -> None:
        self.instances = instances
        self.components = components
        self._buckets = [Bucket(tuple(awaits), tuple(starts)) for awaits, starts in buckets]
        self._bucket_of = {
            task: index for index, bucket in enumerate(self._buckets) for task in bucket.starts
        }
        self.sources = sources

    def source_of(self, task: int) -> Source:
        """Return where the input of a task or an instance comes from."""
        source = given_to(task) if self.instances else self.sources[task]
        return source.source if isinstance(source, Streamed) else source

    def part(self, place_of: Mapping[int, Place], gives: Collection[int]) -> Part:
        """Return the part of the tasks in `place_of`, if objects of `gives` are wanted elsewhere.

        The objects of tasks outside the part have to be there when it begins.

        Raises KeyError for an unknown task.
        """
        mine = [
            Bucket(
                tuple(task for task in self._buckets[index].awaits if task in place_of),
                tuple(task for task in self._buckets[index].starts if task in place_of),
            )
            for index in self._indices(place_of)
        ]
        return Part(mine, self._buckets, self.sources, place_of, frozenset(gives), self.components)

    def share(self, place_of: Mapping[int, Place], gives: Collection[int]) -> Part:
        """Return the part as `part` does, but objects from outside arrive while it runs."""
        mine: list[Bucket[int]] = []
        for index in self._indices(place_of):
            bucket = self._buckets[index]
            starts = tuple(task for task in bucket.starts if task in place_of)
            # With stages, the object of an earlier stage may arrive after the end of the last
            # stage.
            keyed = (key for task in starts for key in keys(self.sources[task]))
            needed = (key for key in keyed if key is not None)
            mine.append(Bucket(tuple(dict.fromkeys([*bucket.awaits, *needed])), starts))
        return Part(mine, self._buckets, self.sources, place_of, frozenset(gives), self.components)

    def needs(self, task: int) -> set[int]:
        """Return the tasks that have to end before a task begins."""
        needed = {key for key in keys(self.sources[task]) if key is not None}
        return needed.union(self._buckets[self._bucket_of[task]].awaits)

    def _indices(self, tasks: Iterable[int]) -> list[int]:
        return sorted({self._bucket_of[task] for task in tasks})


class Part:
    """Some tasks of a workflow, shared by all executions that run them.

    Args:
        buckets: the buckets that start these tasks.
        order: all known buckets of the workflow.
    """

    def __init__(
        self,
        buckets: Sequence[Bucket[int]],
        order: Sequence[Bucket[int]],
        sources: Mapping[int, Source | Streamed],
        place_of: Mapping[int, Place],
        gives: frozenset[int],
        components: Mapping[int, Component] = {},
    ) -> None:
        self.buckets = buckets
        self.components = components
        self._order = order
        self.place_of = place_of
        self.gives = gives
        self.sources = sources
        self._group_of = groups(buckets, place_of, components)
        self.awaiting: dict[int, list[int]] = {}
        for index, bucket in enumerate(buckets):
            for task in bucket.awaits:
                self.awaiting.setdefault(task, []).append(index)

    @property
    def live(self) -> bool:
        return bool(self.components)

    @cached_property
    def calls_wraps(self) -> bool:
        return any(isinstance(place, str) for place in self.place_of.values())

    @cached_property
    def calls(self) -> Mapping[int, list[Call]]:
        """Bucket -> the calls that it makes: other wraps first, the main process last."""
        members: dict[Group[Place], list[int]] = {}
        for task, group in self._group_of.items():
            members.setdefault(group, []).append(task)
        found: dict[int, list[Call]] = {}
        for group, tasks in members.items():
            found.setdefault(group.bucket, []).append(self._call(group.place, tasks))
        for calls in found.values():
            calls.sort(key=lambda call: _turn(call.place))
        return found

    @cached_property
    def is_whole(self) -> bool:
        return all(task in self.place_of for bucket in self.buckets for task in bucket.awaits)

    def tasks_at(self, place: Place) -> list[int]:
        return [task for task, where in self.place_of.items() if where == place]

    @cached_property
    def processes(self) -> frozenset[int]:
        places = self.place_of.values()
        return frozenset(place for place in places if isinstance(place, int) and place != MAIN)

    @cached_property
    def in_order(self) -> frozenset[int]:
        last: dict[int, dict[Place, int]] = {}
        counts: dict[Place, int] = {}
        unordered: set[Place] = set()
        for bucket in self._order:
            before: dict[Place, int] = {}
            for task in bucket.awaits:
                for place, number in last[task].items():
                    before[place] = max(number, before.get(place, 0))
            last |= dict.fromkeys(bucket.starts, before)
            for task in filter(self.place_of.__contains__, bucket.starts):
                place = self.place_of[task]
                counts[place] = number = counts.get(place, 0) + 1
                if before.get(place, 0) < number - 1:
                    unordered.add(place)
                last[task] = before | {place: number}
        return self.processes - unordered

    @cached_property
    def users(self) -> Mapping[Key, list[int]]:
        return users_among(self.place_of, self.sources)

    def _call(self, place: Place, tasks: list[int]) -> Call:
        """Return the call of a place for `tasks`.

        A worker keeps its outputs for its own later calls; another wrap forgets them. Objects from
        or to tasks of components are given: they have to survive the loss of a process.
        """
        inside = frozenset(tasks)
        needed = dict.fromkeys(key for task in tasks for key in keys(self.sources[task]))
        gives = frozenset(
            task
            for task in tasks
            if task in self.gives
            or any(
                (user not in inside and (isinstance(place, str) or self.place_of[user] != place))
                or not self.components.keys().isdisjoint((task, user))
                for user in self.users.get(task, ())
            )
        )
        return Call(place, tuple(tasks), tuple(key for key in needed if key not in inside), gives)


class Engine(Program):
    """One execution of a part."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._triggers = [BySet(bucket.awaits) for bucket in part.buckets]
        self._left = set(part.place_of)

    @property
    def part(self) -> Part:
        return self._part

    @property
    def is_complete(self) -> bool:
        return not self._left

    def unanswered(self, begun: Set[int]) -> Set[int]:
        """Return the tasks that have not ended, whether they have begun or not."""
        return self._left

    def start(self, _: object = None) -> Step:
        step = Step([], [])
        for index, bucket in enumerate(self._part.buckets):
            if not bucket.awaits:
                self._fire(index, step)
        return step

    def ended(self, task: int, _: object = None) -> Step:
        self._left.remove(task)
        return self.arrived([task])

    def arrived(self, tasks: Iterable[int]) -> Step:
        """Return the step after objects of tasks, or notices of their end, have arrived."""
        step = Step([], [])
        for task in tasks:
            for index in self._part.awaiting.get(task, ()):
                if self._triggers[index].on_object(task):
                    self._fire(index, step)
        return step

    def together(self, steps: Sequence[Step]) -> Step:
        begins = [number for step in steps for number in step.begins]
        return Step(begins, [call for step in steps for call in step.calls])

    def again(self, process: int, lost: Collection[int], held: Container[Key]) -> Call:
        """Repeat the unanswered tasks.

        Also repeat ended tasks of the lost worker if their objects are not held here and its
        unfinished tasks need them.
        """
        part = self._part
        needed = [task for task in part.tasks_at(process) if task in self._left]
        found = set(lost)
        while needed:
            for key in keys(part.sources[needed.pop()]):
                if key is None or part.place_of.get(key) != process:
                    continue
                if key not in self._left and key not in held and key not in found:
                    found.add(key)
                    needed.append(key)
        tasks = tuple(task for task in part.place_of if task in found)
        needs = dict.fromkeys(key for task in tasks for key in keys(part.sources[task]))
        outside = tuple(key for key in needs if key not in found)
        return Call(process, tasks, outside, self._given_by(process) & found)

    def repeat(self, tasks: Collection[int]) -> Step:
        part = self._part
        begins = [task for task in part.place_of if task in tasks]
        calls: list[Call] = []
        for place in dict.fromkeys(part.place_of[task] for task in begins):
            its = tuple(task for task in begins if part.place_of[task] == place)
            needs = dict.fromkeys(key for task in its for key in keys(part.sources[task]))
            gives = self._given_by(place).intersection(its)
            calls.append(Call(place, its, tuple(needs), gives, repeated=True))
        return Step(begins, calls)

    def _given_by(self, place: Place) -> frozenset[int]:
        calls = (call for calls in self._part.calls.values() for call in calls)
        return frozenset().union(*(call.gives for call in calls if call.place == place))

    def _fire(self, bucket: int, step: Step) -> None:
        step.begins.extend(self._part.buckets[bucket].starts)
        step.calls.extend(self._part.calls.get(bucket, ()))


def users_among(
    tasks: Iterable[int], sources: Mapping[int, Source | Streamed]
) -> dict[Key, list[int]]:
    """Return object -> those of `tasks` that need it."""
    users: dict[Key, list[int]] = {}
    for task in tasks:
        for key in keys(sources[task]):
            users.setdefault(key, []).append(task)
    return users


def _turn(place: Place) -> tuple[int, int]:
    """Return the order of calls: other wraps, workers, then the main process, which gets busy."""
    if isinstance(place, str):
        return 0, 0
    return (2, 0) if place == MAIN else (1, place)
