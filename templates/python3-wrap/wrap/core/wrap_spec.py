"""The declaration of a wrap, made by its generated ``function/handler.py``: what runs where."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from itertools import chain

from wrap.core.dag import Graph, Part
from wrap.core.declaration import EntryDeclaration, WrapDeclaration
from wrap.core.program import Component, Key, Place, Source, Streamed, keys
from wrap.core.recovery import connected

#: How many different requests of other wraps are cached.
_PARTS = 256
#: The longest timeout of a request: above 24.8 days sockets raise OverflowError.
_LONGEST_S = 21 * 24 * 3600.0
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True)
class Entry(EntryDeclaration):
    @cached_property
    def names(self) -> dict[int, str]:
        """Task -> its name in `states`."""
        return {number: name for name, number in self.states.items()}

    @property
    def is_durable(self) -> bool:
        """Whether the contents of its buckets outlive its process."""
        return self.buckets is not None and bool(self.buckets["durable"])


class Seen(Enum):
    """Who gets the status and the headers of a task's answer.

    If a state machine decides while it runs, any task may turn out to be the last.
    """

    BY_NOBODY, PERHAPS, BY_CLIENT = range(3)


@dataclass(frozen=True)
class Wrap(WrapDeclaration):
    """One wrap: functions, tasks and processes. Raises ValueError if they contradict each other."""

    entry: Entry | None = None

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(f"wrap {self.name}: {problem}")

    def names(self, tasks: Iterable[int]) -> str:
        """Return the functions of some tasks, its own or remote ones, in one word of an error."""
        known = self.tasks | self._remote_tasks
        own = map(self.task_of, tasks)
        return ", ".join(sorted({known[task] for task in own if task in known}))

    def task_of(self, number: int) -> int:
        """Return the task of a number, which may be that of an instance."""
        return number % self.instances if self.instances else number

    def function_of(self, number: int) -> str:
        return self.tasks[self.task_of(number)]

    def name_of(self, number: int) -> str:
        task = self.task_of(number)
        return self.task_names.get(task) or self.tasks.get(task) or self._remote_tasks[task]

    def runs(self, number: int) -> bool:
        return self.task_of(number) in self.tasks

    def run_for(self, numbers: list[int]) -> list[int]:
        """Return the tasks to run when `numbers` begin, in the order of the plan.

        The number of an emitted output stands for the task that emits it.
        """
        if self.emits:
            numbers = list(dict.fromkeys(self.emits.get(each, (each,))[0] for each in numbers))
        if len(numbers) < 2:
            return numbers
        return sorted(numbers, key=lambda number: self._ranks[self.task_of(number)])

    @cached_property
    def _ranks(self) -> dict[int, int]:
        """The positions of tasks in their processes."""
        return {task: rank for tasks in self.processes for rank, task in enumerate(tasks)}

    @cached_property
    def outputs_of(self) -> dict[int, dict[str, int]]:
        """Task -> the outputs that it emits, by name."""
        found: dict[int, dict[str, int]] = {}
        for number, (task, name) in self.emits.items():
            found.setdefault(task, {})[name] = number
        return found

    def giver_of(self, output: int) -> int:
        return self.emits.get(output, (output,))[0]

    @cached_property
    def _remote_tasks(self) -> dict[int, str]:
        each = self.remotes.values()
        return {task: function for tasks in each for task, function in tasks.items()}

    @cached_property
    def graph(self) -> Graph:
        """The graph of all tasks that it knows; each task follows those whose outputs it needs."""
        return Graph(self.buckets, _sources(self, {}), self.instances)

    @cached_property
    def live_graph(self) -> Graph:
        """The same graph if streams are read while they are written."""
        if not self.live:
            return self.graph
        sources = _sources(self, self.live)
        return Graph(self.live_buckets, sources, components=self.components)

    @cached_property
    def components(self) -> dict[int, Component]:
        """Task -> the tasks, in any wrap, that live streams connect it with, and itself."""
        return connected(self.live, self.giver_of, self.emits)

    @cached_property
    def part_of(self) -> Callable[[tuple[int, ...], frozenset[int]], Part]:
        """Returns the part that consists of its given tasks, of which some give outputs; cached."""

        @lru_cache(_PARTS)
        def part(tasks: tuple[int, ...], gives: frozenset[int]) -> Part:
            return self.graph.part({task: self.process_of[task] for task in tasks}, gives)

        return part

    @cached_property
    def share_of(self) -> Callable[[frozenset[int], frozenset[int]], Part]:
        """Returns the part of its own tasks, by the tasks whose objects the coordinator wants.

        Objects from other wraps arrive during the execution.
        """

        @lru_cache(_PARTS)
        def share(tasks: frozenset[int], wanted: frozenset[int]) -> Part:
            gives = {task for task in tasks if any(self.takers[task].values())} | wanted
            return self.live_graph.share({task: self.process_of[task] for task in tasks}, gives)

        return share

    @cached_property
    def process_of(self) -> dict[int, Place]:
        """Its own tasks -> the numbers of their processes."""
        return {task: number for number, tasks in enumerate(self.processes) for task in tasks}

    @cached_property
    def place_of(self) -> dict[int, Place]:
        """All tasks of the workflow -> process or wrap, as this wrap knows them."""
        remotes = self.remotes.items()
        return self.process_of | {task: name for name, its in remotes for task in its}

    @cached_property
    def wrap_of(self) -> dict[int, str]:
        """Task -> the wrap that runs it."""
        return dict.fromkeys(self.tasks, self.name) | {
            task: name for name, its in self.remotes.items() for task in its
        }

    @cached_property
    def takers(self) -> dict[int, dict[str, bool]]:
        """Task -> the other wraps that wait for its end, each with whether it needs the object."""
        found: dict[int, dict[str, bool]] = {task: {} for task in self.wrap_of}
        sources = self.live_graph.sources
        for awaits, starts in self.live_buckets or self.buckets:
            for task in starts:
                taker, needed = self.wrap_of[task], keys(sources[task])
                for key in {*awaits, *needed}:
                    if key is not None and self.wrap_of[key] != taker:
                        found[key][taker] = found[key].get(taker, False) or key in needed
        return found

    @cached_property
    def needed(self) -> set[Key]:
        """The tasks whose objects are needed here: by its own tasks, or for the output."""
        sources = [self.graph.sources[task] for task in self.tasks]
        sources += [self.entry.output] if self.entry is not None else []
        return {key for source in sources for key in keys(source)}

    @cached_property
    def crossing(self) -> set[Key]:
        """The objects that cross wraps if this is the coordinator; None is the request's."""
        found: set[Key] = {task for task, to in self.takers.items() if any(to.values())}
        found |= self.needed - self.tasks.keys() - {None}
        remote = (task for its in self.remotes.values() for task in its)
        return found | {None for task in remote if None in keys(self.inputs[task])}

    @cached_property
    def places_of(self) -> dict[int, list[Place]]:
        """Task -> the processes and wraps where it may run, as the entry wrap knows them."""
        found: dict[int, list[Place]] = {}
        everywhere: list[tuple[Place, Iterable[int]]]
        everywhere = [*enumerate(self.processes), *self.remotes.items()]
        for place, tasks in everywhere:
            for task in tasks:
                found.setdefault(task, []).append(place)
        return found

    @cached_property
    def forked(self) -> list[str]:
        """The functions that worker processes run."""
        further = chain(*self.processes[1:])
        return list(dict.fromkeys(self.tasks[task] for task in further))

    @property
    def slots(self) -> int:
        """The number of worker processes in the plan."""
        return len(self.processes) - 1


def _sources(wrap: Wrap, live: Mapping[int, Collection[int]]) -> Mapping[int, Source | Streamed]:
    found: dict[int, Source | Streamed] = dict(wrap.inputs)
    for task, streams in wrap.streams.items():
        awaited = tuple(each for each in streams.values() if task not in live.get(each, ()))
        found[task] = Streamed(wrap.inputs[task], awaited)
    return found


def _problems(wrap: Wrap) -> Iterator[str]:
    for function in wrap.functions:
        if not is_name(function):
            yield f"{function!r} is not a function's name"
    for task, function in wrap.tasks.items():
        if function not in wrap.functions:
            yield f"task {task}: function {function!r} is not declared"
    placed = [task for tasks in wrap.processes for task in tasks]
    if sorted(set(placed) if wrap.instances else placed) != sorted(wrap.tasks):
        yield "every task has to be in exactly one process"
    if not wrap.processes:
        yield "there is no main process"
    if wrap.attempts < 1:
        yield f"attempts are {wrap.attempts}, but have to be at least 1"
    if not all(seconds > 0 for seconds in (wrap.timeout_s, *wrap.timeouts_s.values())):
        yield f"timeouts are {wrap.timeout_s}, {wrap.timeouts_s}, but have to be above 0"
    if wrap.timeout_s > _LONGEST_S:
        yield f"timeout_s is {wrap.timeout_s}, but may be {_LONGEST_S:.0f} at most"
    if wrap.instances:
        return
    if wrap.inputs.keys() != wrap.place_of.keys():
        yield "the inputs are not those of the tasks that run here or are called"
    yield from _order_problems(wrap)


def _order_problems(wrap: Wrap) -> Iterator[str]:
    before: set[Key] = {None}
    started: list[int] = []
    for awaits, starts in wrap.buckets:
        if not before.issuperset(awaits):
            yield f"tasks {starts} await {awaits}, of which some do not run before"
        before.update(starts)
        started += starts
    if sorted(started) != sorted(wrap.inputs):
        yield "every task has to be started by exactly one bucket"
    if wrap.entry is not None:
        yield from _source_problems(wrap, wrap.entry)


def _source_problems(wrap: Wrap, entry: Entry) -> Iterator[str]:
    before: dict[int, set[int]] = {}
    for awaits, starts in wrap.buckets:
        known = set(awaits).union(*(before.get(task, ()) for task in awaits))
        before |= dict.fromkeys(starts, known)
    for task, source in wrap.graph.sources.items():
        for needed in keys(source):
            if needed is not None and needed >= 0 and needed not in before.get(task, ()):
                yield f"task {task} needs task {needed}, which it does not await"
    for needed in keys(entry.output):
        if needed is not None and needed not in wrap.inputs:
            yield f"the output needs task {needed}, which nothing runs"
