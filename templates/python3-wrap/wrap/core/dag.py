"""What runs next in an execution: a pure state machine over buckets and their triggers.

Events go in (the execution began, a task ended), steps come out (these tasks begin, these places
are to be called). It knows no socket, clock or thread, and nothing of what the objects are.
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
from wrap.core.triggers import Bucket, Group, groups


class Graph:
    """The tasks that are known here.

    Args:
        buckets: ``(awaits, starts)``, each after those whose tasks it awaits.
        sources: for every task that a bucket starts, where its input comes from.
        instances: how many tasks the workflow has, where there are numbers of instances in place of
            tasks.
        components: task -> those that it is connected with by streams that are read while they are
            written.
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
        """Where the input of a task comes from, or that of an instance."""
        source = given_to(task) if self.instances else self.sources[task]
        return source.source if isinstance(source, Streamed) else source

    def part(self, place_of: Mapping[int, Place], gives: Collection[int]) -> Part:
        """What is to be run of the tasks in `place_of`, where objects of `gives` are wanted.

        What these need from other tasks is there from the beginning.

        Raises KeyError for a task that is not known.
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
        """As `part`, but what these need from other tasks comes while they run."""
        mine: list[Bucket[int]] = []
        for index in self._indices(place_of):
            bucket = self._buckets[index]
            starts = tuple(task for task in bucket.starts if task in place_of)
            # With stages, what is needed of an earlier one may come after all of the last one.
            keyed = (key for task in starts for key in keys(self.sources[task]))
            needed = (key for key in keyed if key is not None)
            mine.append(Bucket(tuple(dict.fromkeys([*bucket.awaits, *needed])), starts))
        return Part(mine, self._buckets, self.sources, place_of, frozenset(gives), self.components)

    def needs(self, task: int) -> set[int]:
        """The tasks that have to end before a task begins."""
        needed = {key for key in keys(self.sources[task]) if key is not None}
        return needed.union(self._buckets[self._bucket_of[task]].awaits)

    def _indices(self, tasks: Iterable[int]) -> list[int]:
        return sorted({self._bucket_of[task] for task in tasks})


class Part:
    """Some tasks that belong together, the same for every execution that runs them.

    Args:
        buckets: those that start its tasks.
        order: all buckets of the workflow that are known.
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
        """Whether some tasks read what others write at the same time."""
        return bool(self.components)

    @cached_property
    def calls_wraps(self) -> bool:
        """Whether some of its tasks run in other wraps."""
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
        """Whether its tasks wait for nothing but each other and the request."""
        return all(task in self.place_of for bucket in self.buckets for task in bucket.awaits)

    def tasks_at(self, place: Place) -> list[int]:
        """The tasks that run there."""
        return [task for task, where in self.place_of.items() if where == place]

    def tasks_to_come(self, process: int) -> int:
        """How many tasks a process will be called for."""
        return len(self.tasks_at(process))

    @cached_property
    def processes(self) -> frozenset[int]:
        """The further processes that run some of the tasks."""
        places = self.place_of.values()
        return frozenset(place for place in places if isinstance(place, int) and place != MAIN)

    @cached_property
    def in_order(self) -> frozenset[int]:
        """The processes no two of whose tasks can ever run at once."""
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
        """Which of its tasks need an object."""
        return users_among(self.place_of, self.sources)

    def _call(self, place: Place, tasks: list[int]) -> Call:
        """A process keeps what it gives for its own later calls; another wrap forgets it.

        What tasks need that may be repeated, or give, is not to be lost with a process.
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
        self._triggers = [bucket.trigger() for bucket in part.buckets]
        self._left = set(part.place_of)

    @property
    def part(self) -> Part:
        """The tasks that it runs."""
        return self._part

    @property
    def is_complete(self) -> bool:
        """Whether all its tasks have ended."""
        return not self._left

    @property
    def left(self) -> Set[int]:
        """The tasks that have not ended."""
        return self._left

    def unanswered(self, begun: Set[int]) -> Set[int]:
        """The tasks that have not ended, whether they have begun or not."""
        return self._left

    def start(self, _: object = None) -> Step:
        """What begins with the execution."""
        step = Step([], [])
        for index, trigger in enumerate(self._triggers):
            if not self._part.buckets[index].awaits and trigger.on_object(None):
                self._fire(index, step)
        return step

    def ended(self, task: int, _: object = None) -> Step:
        """What begins when `task` has ended, which it does once."""
        self._left.remove(task)
        return self.arrived([task])

    def arrived(self, tasks: Iterable[int]) -> Step:
        """What begins when the objects of tasks are here, or word that these have ended."""
        step = Step([], [])
        for task in tasks:
            for index in self._part.awaiting.get(task, ()):
                if self._triggers[index].on_object(task):
                    self._fire(index, step)
        return step

    def together(self, steps: Sequence[Step]) -> Step:
        """What events at once lead to."""
        begins = [number for step in steps for number in step.begins]
        return Step(begins, [call for step in steps for call in step.calls])

    def again(self, process: int, lost: Collection[int], held: Container[Key]) -> Call:
        """What a process in the place of one that ended is called for first.

        That is what it had not answered, and of what it had those tasks whose objects nobody else
        holds and that others in it still need.

        Args:
            lost: the tasks that it was called for and had not answered.
            held: the objects that are here.
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
        """What begins once more, all at once: tasks that live streams connect await no other."""
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
    """Which of `tasks` need an object."""
    users: dict[Key, list[int]] = {}
    for task in tasks:
        for key in keys(sources[task]):
            users.setdefault(key, []).append(task)
    return users


def _turn(place: Place) -> tuple[int, int]:
    """What is far away is called first; what is here begins last, as it keeps this process busy."""
    if isinstance(place, str):
        return 0, 0
    return (2, 0) if place == MAIN else (1, place)
