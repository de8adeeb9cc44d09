"""PGP: partitions of a workflow into processes and wraps, from few CPUs to many.

Chiron's Algorithm 2, with slack shared between stages. A plan with n CPUs may run up to n processes
in each stage; every stage runs the fastest number. The search compares sums over stages, although
stages may overlap. A simulation of a whole request judges the plans found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from heapq import heapify, heappop, heappush, nsmallest
from itertools import compress

from chiron.scheduler.fill import fill
from chiron.scheduler.kernighan_lin import Functions
from chiron.scheduler.layout import Layout, StageLayout
from chiron.scheduler.limits import Limits
from chiron.scheduler.partition import SMALL, Partition, partition
from chiron.scheduler.problem import Problem
from chiron.scheduler.shapes import Shape, bounds_ms, least_cpus, shapes, slots_of
from chiron.scheduler.slots import Slots, by_wrap, water_level_ms
from chiron.workflow.plan import Processes
from chiron.wrap.core.triggers import TASK_TRIGGERS, TriggerKind

#: How many process counts are considered in a stage that may have more, evenly spaced. Partitions
#: are searched for the SEARCHED most promising counts.
COUNTS = 24
SEARCHED = 3
#: How far a search may beat the estimate of a large stage. With many functions, a partition is
#: seldom faster than a greedy partition whose threads never wait for the GIL.
ESTIMATE_MARGIN = 1.02
#: The largest rounding error of a prediction.
ROUNDING_MS = 0.001

#: The latency of a stage's functions, a lower bound or an estimate, in milliseconds, and the slots.
BoundedSlots = tuple[float, Slots]


@dataclass(frozen=True)
class Candidate:
    """A shape, with a lower bound and an estimate of the latency of its fastest layout."""

    shape: Shape
    bound_ms: float
    search: Search

    @cached_property
    def stages_ms(self) -> tuple[float, ...]:
        """The latencies of greedy partitions of the stages, without waiting for the GIL."""
        return self.search.estimates_ms(self.shape)

    @property
    def estimate_ms(self) -> float:
        """The estimated latency of the whole workflow."""
        return self.search.total_ms(self.stages_ms)

    def may_reach(self, latency_ms: float) -> bool:
        """Return whether a search may find a layout of this shape within `latency_ms`."""
        if self.bound_ms > latency_ms:
            return False
        return self.estimate_ms <= self.search.margin * latency_ms

    def layout(self, below_ms: float = math.inf) -> Layout | None:
        """Return the fastest layout found; None as soon as it is sure to exceed `below_ms`."""
        return self.search.layout(self.shape, self.stages_ms, below_ms)


def by_estimate(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield `candidates` by rising estimate; estimate each only when its bound comes up."""
    waiting = [(candidate.bound_ms, place, False) for place, candidate in enumerate(candidates)]
    heapify(waiting)
    while waiting:
        _, place, estimated = heappop(waiting)
        if estimated:
            yield candidates[place]
        else:
            heappush(waiting, (candidates[place].estimate_ms, place, True))


@dataclass(frozen=True)
class Search:
    """The candidates of one problem, with a cache of the partitions found."""

    problem: Problem
    stages: tuple[tuple[Functions, ...], ...]
    trigger: TriggerKind

    @classmethod
    def of(cls, problem: Problem, trigger: TriggerKind) -> Search:
        """Return the search over all stages of the workflow, whose tasks wait for `trigger`."""
        groups = range(1 + max(kind.group for kind in problem.kinds))
        stages = tuple(
            tuple(problem.numbers(stage, group) for group in groups)
            for stage in problem.workflow.stages
        )
        return cls(problem, stages, trigger)

    @cached_property
    def margin(self) -> float:
        """How far a layout may beat its estimate: seldom do all large stages beat theirs."""
        return 1 + (ESTIMATE_MARGIN - 1) / max(1, self.large)

    @cached_property
    def large(self) -> int:
        """The number of stages with a group of more than SMALL functions."""
        return sum(max(map(len, stage)) > SMALL for stage in self.stages)

    @property
    def most_cpus(self) -> int:
        """The number of CPUs beyond which no stage has functions to use more."""
        groups = range(len(self.stages[0]))
        return sum(max(len(stage[group]) for stage in self.stages) for group in groups)

    def candidates(self, cpus: int, limits: Limits) -> Iterator[Candidate]:
        """Yield the candidates with `cpus` CPUs, few wraps first, within `limits`."""
        for shape in shapes(self.problem, self.stages, cpus, limits):
            bounds = self._stages_ms(shape, lambda _, options: min(bound for bound, _ in options))
            yield Candidate(shape, self.total_ms(bounds), self)

    def estimates_ms(self, shape: Shape) -> tuple[float, ...]:
        """Return the latency of a greedy partition of each stage, of small stages the bound."""
        return self._stages_ms(shape, self._guess_ms)

    def floor_ms(self, cpus: int) -> float:
        """Return a lower bound of the latency of any layout with `cpus` CPUs."""
        return self.total_ms([self._stage_floor_ms(stage, cpus) for stage in self.stages])

    @property
    def least_cpus(self) -> int:
        """The number of CPUs that every layout needs."""
        return sum(least_cpus(self.problem, self.stages))

    def layout(self, shape: Shape, estimates_ms: Sequence[float], below_ms: float) -> Layout | None:
        """Return the fastest layout found of `shape`; None if it is sure to exceed `below_ms`.

        The check adds the latencies found so far to the estimates of the other stages.
        """
        stages = list[StageLayout]()
        stages_ms = [estimate_ms / self.margin for estimate_ms in estimates_ms]
        for number, (tasks, stage) in enumerate(
            zip(self.problem.workflow.stages, self.stages, strict=True)
        ):
            stages_ms[number], found = self._stage_layout(tasks, stage, shape)
            if self.total_ms(stages_ms) > below_ms + ROUNDING_MS:
                return None
            stages.append(found)
        used = [any(wrap) for wrap in zip(*stages, strict=True)]
        return tuple(tuple(compress(stage, used)) for stage in stages)

    def total_ms(self, stages_ms: Sequence[float]) -> float:
        """Return the workflow's latency by equation (1), scaled by `overlapping`."""
        platform = self.problem.platform
        following_ms = platform.stage_ms * (len(stages_ms) - 1)
        added_up_ms = sum(stages_ms) + following_ms
        return platform.request_ms + self.overlapping * added_up_ms

    @cached_property
    def overlapping(self) -> float:
        """The longest path over the sum of the stages' longest tasks; 1 if stages are barriers."""
        if TASK_TRIGGERS[self.trigger].in_stages:
            return 1.0
        workflow, path_ms, added_up_ms = self.problem.workflow, dict[str, float](), 0.0
        for stage in workflow.stages:
            longest_ms = 0.0
            for task in stage:
                kind = self.problem.number_of[workflow.function_of(task)]
                own_ms = self.problem.kinds[kind].latency_ms
                before = workflow.by_name[task].predecessors
                path_ms[task] = own_ms + max(map(path_ms.__getitem__, before), default=0.0)
                longest_ms = max(longest_ms, own_ms)
            added_up_ms += longest_ms
        return max(path_ms.values()) / added_up_ms if added_up_ms else 1.0

    def _stage_floor_ms(self, stage: Sequence[Functions], cpus: int) -> float:
        kinds = self.problem.kinds
        longest_ms = max(kinds[functions[0]].latency_ms for functions in stage if functions)
        platform = self.problem.platform
        cores = min(cpus, platform.cpus) if platform.one_node else cpus
        return max(longest_ms, sum(map(self.problem.core_ms, stage)) / cores)

    def _stages_ms(
        self, shape: Shape, least_ms: Callable[[Functions, list[BoundedSlots]], float]
    ) -> tuple[float, ...]:
        """Return the latency of each stage's slowest group; `least_ms` computes a group's."""
        return tuple(
            max(
                least_ms(functions, self._options(functions, group, shape))
                for group, functions in enumerate(stage)
                if functions
            )
            for stage in self.stages
        )

    def _guess_ms(self, functions: Functions, options: list[BoundedSlots]) -> float:
        if len(functions) <= SMALL:
            return min(bound for bound, _ in options)
        least_ms = math.inf
        for bound, places in options:
            if bound < least_ms:
                guess_ms = fill(self.problem, functions, places.offsets_ms)[0]
                least_ms = min(least_ms, max(bound, guess_ms))
        return least_ms

    def _options(self, functions: Functions, group: int, shape: Shape) -> list[BoundedSlots]:
        """Return slots for 1, 2, 3, ... processes of a group; the promising if it is large."""
        most = min(len(functions), sum(shape.groups[group]))
        least = len(self.problem.separated(functions))
        step = max(1, -(-(most - least) // COUNTS))
        counts = sorted({*range(least, most, step), most})
        every = [slots_of(self.problem, shape, group, count) for count in counts]
        bounds = list(zip(bounds_ms(self.problem, functions, every), every, strict=True))
        if len(functions) <= SMALL:
            return sorted(bounds, key=lambda o: (o[0], len(o[1].offsets_ms)))
        work_ms = self.problem.core_ms(functions)
        return nsmallest(
            SEARCHED, bounds, key=lambda o: max(o[0], water_level_ms(work_ms, o[1].by_offset_ms))
        )

    def _fastest(
        self, functions: Functions, group: int, shape: Shape
    ) -> tuple[float, Slots, Partition]:
        """Return the fastest partition over any number of processes; of equals, the smallest."""
        found = list[tuple[float, int, Slots, Partition]]()
        margin = 1.0 if len(functions) <= SMALL else ESTIMATE_MARGIN
        for guess_ms, places in self._promising(functions, group, shape):
            if not found or guess_ms <= margin * min(f[0] for f in found):
                latency_ms, processes = self._partition(functions, places)
                found.append((latency_ms, len(processes), places, processes))
        latency_ms, _, places, processes = min(found, key=lambda f: f[:2])
        return latency_ms, places, processes

    def _promising(self, functions: Functions, group: int, shape: Shape) -> list[BoundedSlots]:
        """Return the options of a group and their estimates, the least first.

        A small group is estimated by its bounds; a large one keeps only options near the least.
        """
        options = self._options(functions, group, shape)
        if len(functions) <= SMALL:
            return options
        guesses = [
            (max(bound, fill(self.problem, functions, p.offsets_ms)[0]), p) for bound, p in options
        ]
        guesses.sort(key=lambda guess: guess[0])
        return [guess for guess in guesses if guess[0] <= ESTIMATE_MARGIN * guesses[0][0]]

    @cached_property
    def _partition(self) -> Callable[[Functions, Slots], tuple[float, Partition]]:
        return cache(partial(partition, self.problem))

    def _stage_layout(
        self, tasks: Sequence[str], stage: Sequence[Functions], shape: Shape
    ) -> tuple[float, StageLayout]:
        waiting = _tasks_by_function(self.problem, tasks)
        wraps, latest_ms = list[Processes](), 0.0
        for group, functions in enumerate(stage):
            present: list[Processes] = []
            if functions:
                latency_ms, places, processes = self._fastest(functions, group, shape)
                latest_ms = max(latest_ms, latency_ms)
                for content in by_wrap(processes, places.sizes):
                    ordered = map(self.problem.in_order, content)
                    present.append(tuple(tuple(waiting[n].pop() for n in p) for p in ordered))
            absent: list[Processes] = [()] * (len(shape.groups[group]) - len(present))
            wraps += present + absent
        return latest_ms, tuple(wraps)


def _tasks_by_function(problem: Problem, tasks: Sequence[str]) -> dict[int, list[str]]:
    """Return the tasks of every function in reverse order, so that `pop` returns the first."""
    waiting: dict[int, list[str]] = {}
    for task in reversed(tasks):
        number = problem.number_of[problem.workflow.function_of(task)]
        waiting.setdefault(number, []).append(task)
    return waiting
