"""Transfers between tasks and their times: the graph that FaaSFlow partitions.

A task is one node for all its instances, like the items of a foreach in FaaSFlow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import mul
from statistics import fmean
from typing import NamedTuple

from chiron.predictor.spread import percentile_ms
from chiron.predictor.unrolling import Run
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Share
from chiron.workflow.trace import is_wait

#: The percentile of the transfer times of all requests that an edge weighs (FaaSFlow, DAG parser).
PERCENT = 99.0

#: Two tasks, of which the second consumes the first's output.
Edge = tuple[str, str]
GroupOf = Mapping[str, Hashable]


class Weight(NamedTuple):
    """The transfer over an edge between two groups: its time, in milliseconds, and its size."""

    ms: float
    size_bytes: int


class Step(NamedTuple):
    """An instance of a task, which starts when its predecessors have ended.

    ``awaits`` has their positions, counted from 1 as 0 is the request, and the wait after each, in
    milliseconds.
    """

    task: str
    latency_ms: float
    awaits: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Traffic:
    """The transfers of a workflow with its payloads."""

    #: The edges of all payloads. Instances of one task are in one group, so no edge is a loop.
    weights: Mapping[Edge, Weight]
    #: The output of all instances of a task, with the payload for which it is largest.
    given_bytes: Mapping[str, int]
    #: Map(v): the mean number of instances of a task over the requests.
    instances: Mapping[str, float]
    #: The instances of every payload, in topological order.
    runs: tuple[tuple[Step, ...], ...]

    @classmethod
    def of(cls, runs: Sequence[Run], mix: Sequence[Share], platform: Platform) -> Traffic:
        """Return the transfers of `runs`, one for each of `mix`."""
        every = tuple(map(_steps, runs))
        sizes = list(map(_output_bytes, runs))
        shares = [share.weight for share in mix]
        counts = [Counter(step.task for step in steps) for steps in every]
        times_ms = dict[Edge, list[float]]()
        for number, steps in enumerate(every):
            for edge in _edges(steps):
                each_ms = times_ms.setdefault(edge, [0.0] * len(every))
                each_ms[number] = transfer_ms(sizes[number][edge[0]], platform)
        weights = {
            edge: Weight(
                percentile_ms(zip(shares, ([ms] for ms in each_ms), strict=True), PERCENT),
                max(size.get(edge[0], 0) for size in sizes),
            )
            for edge, each_ms in times_ms.items()
        }
        given_bytes, instances = dict[str, int](), dict[str, float]()
        for task in dict.fromkeys(chain(*counts)):
            each = [count[task] for count in counts]
            gives = [size.get(task, 0) for size in sizes]
            given_bytes[task] = max(map(mul, each, gives))
            instances[task] = fmean(each, shares)
        return cls(weights, given_bytes, instances, every)

    @cached_property
    def takers(self) -> Mapping[str, tuple[str, ...]]:
        """By task, the tasks that consume its output."""
        found: dict[str, list[str]] = {}
        for before, after in self.weights:
            found.setdefault(before, []).append(after)
        return {task: tuple(takers) for task, takers in found.items()}

    @cached_property
    def partners_ms(self) -> Mapping[str, Mapping[str, float]]:
        """By task, the tasks with which it exchanges objects, and the weights of the edges."""
        found: dict[str, dict[str, float]] = {}
        for edge, weight in self.weights.items():
            for one, other in (edge, edge[::-1]):
                partners = found.setdefault(one, {})
                partners[other] = partners.get(other, 0.0) + weight.ms
        return found

    def critical_path(self, group_of: GroupOf) -> tuple[float, list[Edge]]:
        """Return the latency of the longest path, and its edges between groups, the heaviest first.

        It is the longest path over all payloads, by tasks and by edges between groups: within a
        group objects cost nothing. Of equally long paths it is the first.
        """
        longest_ms, path = -1.0, list[Edge]()
        for steps, arcs in zip(self.runs, self._arcs, strict=True):
            ends_ms, before = [0.0], [0]
            for step, awaited in zip(steps, arcs, strict=True):
                group, start_ms, last = group_of[step.task], -1.0, 0
                for place, task, wait_ms, weight_ms in awaited:
                    at_ms = ends_ms[place] + wait_ms
                    if weight_ms and group_of[task] != group:
                        at_ms += weight_ms
                    if at_ms > start_ms:
                        start_ms, last = at_ms, place
                ends_ms.append(start_ms + step.latency_ms)
                before.append(last)
            if max(ends_ms) > longest_ms:
                longest_ms = max(ends_ms)
                path = _followed(steps, before, ends_ms.index(longest_ms))
        crossing = [edge for edge in path if group_of[edge[0]] != group_of[edge[1]]]
        return longest_ms, sorted(crossing, key=self.weights.__getitem__, reverse=True)

    @cached_property
    def _arcs(self) -> list[list[list[tuple[int, str, float, float]]]]:
        """For every step of every run: position, task, wait and weight of its predecessors."""
        return [[self._awaited(step, steps) for step in steps] for steps in self.runs]

    def _awaited(self, step: Step, steps: Sequence[Step]) -> list[tuple[int, str, float, float]]:
        awaited = []
        for place, wait_ms in step.awaits:
            task = steps[place - 1].task if place else step.task
            weight = self.weights.get((task, step.task))
            awaited.append((place, task, wait_ms, weight.ms if weight else 0.0))
        return awaited


def transfer_ms(size_bytes: int, platform: Platform) -> float:
    """Return the time of sending an object to a task of another group, in milliseconds.

    FaaSFlow uses a store. If no store was measured, the cost of the gateway counts. If no path was
    measured, the cost of a call counts.
    """
    cost = platform.paths.get("store") or platform.paths.get("gateway")
    return cost.ms + size_bytes / 1e6 * cost.ms_per_mb if cost else platform.rpc_ms


def _steps(run: Run) -> tuple[Step, ...]:
    """Return the instances of a run; a wait is a part of its followers' waits."""
    static, uses = run.workflow, run.profile.functions
    steps, place_of = list[Step](), dict[str, int]()
    waits = dict[str, dict[int, float]]()
    for name in chain.from_iterable(static.stages):
        task, awaits = static.by_name[name], dict[int, float]()
        for needed in task.predecessors:
            for place, wait_ms in (waits.get(needed) or {place_of[needed]: 0.0}).items():
                awaits[place] = max(wait_ms, awaits.get(place, 0.0))
        awaits = awaits or {0: 0.0}
        latency_ms = uses[run.own.get(name, task.function)].latency_ms
        if is_wait(task.function):
            waits[name] = {place: wait_ms + latency_ms for place, wait_ms in awaits.items()}
        else:
            steps.append(Step(run.task_of(name), latency_ms, tuple(awaits.items())))
            place_of[name] = len(steps)
    return tuple(steps)


def _output_bytes(run: Run) -> dict[str, int]:
    """Return the output size of an instance of each task."""
    uses = run.profile.functions
    return {run.task_of(task.name): uses[task.function].given_bytes for task in run.workflow.tasks}


def _edges(steps: Sequence[Step]) -> dict[Edge, None]:
    """Return each edge between two tasks, once."""
    edges = (
        (steps[place - 1].task, step.task) for step in steps for place, _ in step.awaits if place
    )
    return dict.fromkeys((before, after) for before, after in edges if before != after)


def _followed(steps: Sequence[Step], before: Sequence[int], place: int) -> list[Edge]:
    """Return the edges of the path that ends with the step at `place`, the last first."""
    edges = list[Edge]()
    while before[place]:
        edges.append((steps[before[place] - 1].task, steps[place - 1].task))
        place = before[place]
    return edges
