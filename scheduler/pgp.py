"""PGP: the fewest processes, then the fewest wraps, that the prediction says meet the SLO.

Chiron's Algorithm 2. The search runs on functions, not tasks: tasks of one function are alike,
so exchanging them changes nothing. Functions are numbered by falling solo latency, so that a
sorted process starts its longest function first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from predictor.equations import workflow_latency_ms
from predictor.predict import Predictor
from scheduler.kernighan_lin import Functions, kernighan_lin
from scheduler.layout import Layout, StageLayout
from workflow.model import Workflow
from workflow.plan import Mechanism
from workflow.platform import Platform
from workflow.profile import Profile

#: The functions of every process of one stage.
Partition = tuple[Functions, ...]


@dataclass(frozen=True)
class Search:
    """What a search for a workflow's partition needs to know."""

    workflow: Workflow
    predictor: Predictor
    mechanism: Mechanism
    functions: tuple[str, ...]

    @classmethod
    def of(
        cls, workflow: Workflow, profile: Profile, platform: Platform, mechanism: Mechanism
    ) -> Search:
        """The search with the functions in the order of falling solo latency."""
        latency = {name: profile.functions[name].latency_ms for name in workflow.functions}
        order = sorted(workflow.functions, key=lambda name: (-latency[name], name))
        return cls(workflow, Predictor(profile, platform), mechanism, tuple(order))

    def numbers(self, stage: Sequence[str]) -> Functions:
        """The functions of a stage's tasks, sorted."""
        return tuple(sorted(self.functions.index(self.workflow.function_of(t)) for t in stage))

    def stage_ms(self, partition: Partition, sizes: Sequence[int]) -> float:
        """Equation (2) where wrap k runs the next ``sizes[k]`` processes, a CPU for each."""
        wraps, start = [], 0
        for size in sizes:
            processes = partition[start : start + size]
            names = tuple(tuple(self.functions[f] for f in process) for process in processes)
            wraps.append((names, size))
            start += size
        return self.predictor.stage_ms(wraps, self.mechanism, local=True)

    def total_ms(self, stages_ms: Sequence[float]) -> float:
        """Equation (1)."""
        return workflow_latency_ms(stages_ms, self.predictor.platform.request_ms)


def pgp(search: Search, slo_ms: float) -> Layout:
    """The layout with the fewest processes whose predicted latency is within `slo_ms`.

    Where none is, the layout with the lowest latency that was found.

    References
    ----------
    Chiron (SC'23), Algorithm 2.
    """
    stages = [search.numbers(stage) for stage in search.workflow.stages]
    partitions: dict[tuple[Functions, int], tuple[float, Partition]] = {}
    best_ms, best = math.inf, list[Partition]()
    for count in range(1, max(map(len, stages)) + 1):
        solution = []
        for stage in stages:
            key = (stage, min(count, len(stage)))
            if key not in partitions:
                partitions[key] = partition_stage(search, *key)
            solution.append(partitions[key])
        total_ms = search.total_ms([latency for latency, _ in solution])
        if total_ms < best_ms:
            best_ms, best = total_ms, [partition for _, partition in solution]
        if total_ms <= slo_ms:
            break
    return _with_tasks(search, pack(search, best, max(slo_ms, best_ms)))


def partition_stage(search: Search, stage: Functions, count: int) -> tuple[float, Partition]:
    """The predicted latency of a stage in `count` processes, and which functions share one.

    Starts from the functions dealt out in turn and runs Kernighan-Lin over every pair of
    processes until none of them gains.
    """
    sizes = initial_sizes(count, search.predictor.platform, search.mechanism)
    partition: Partition = tuple(stage[i::count] for i in range(count))
    latency_ms = search.stage_ms(partition, sizes)
    improved = True
    while improved:
        improved = False
        for i, j in combinations(range(count), 2):
            steps = kernighan_lin(
                partition[i], partition[j], _PairCost(search, partition, i, j, sizes)
            )
            lowest_ms, a, b = min(steps)
            if lowest_ms < latency_ms:
                latency_ms, partition, improved = lowest_ms, _with(partition, i, a, j, b), True
    return latency_ms, partition


def initial_sizes(count: int, platform: Platform, mechanism: Mechanism) -> list[int]:
    """How many processes each wrap has at first: as many in wrap 1 as a remote call outlasts.

    Forking ⌊T_RPC / T_Block⌋ processes takes no longer than calling another wrap, so up to there
    wrap 1 is the better place; each further process gets a wrap of its own (Algorithm 2, lines
    6-7). Workers of a pool are not forked, so all of them stay in wrap 1 (§4).
    """
    if mechanism == "pool" or platform.process_block_ms == 0:
        return [count]
    local = max(1, int(min(count, platform.rpc_ms / platform.process_block_ms)))
    return [local] + [1] * (count - local)


def pack(
    search: Search, partitions: Sequence[Partition], limit_ms: float
) -> list[tuple[Partition, list[int]]]:
    """Each stage's processes in as few wraps as `limit_ms` allows, with the wraps' sizes.

    Algorithm 2, lines 13-16: as many processes in each wrap as the SLO bears.
    """
    platform = search.predictor.platform
    most = max(map(len, partitions))
    initial = [initial_sizes(len(p), platform, search.mechanism) for p in partitions]
    for wraps in range(1, max(map(len, initial))):
        sizes = [_shares(len(p), wraps, -(-most // wraps)) for p in partitions]
        stages_ms = [search.stage_ms(p, s) for p, s in zip(partitions, sizes, strict=True)]
        if search.total_ms(stages_ms) <= limit_ms:
            return list(zip(partitions, sizes, strict=True))
    return list(zip(partitions, initial, strict=True))


def _shares(processes: int, wraps: int, most: int) -> list[int]:
    """`processes` in at most `wraps` wraps of at most `most` each, the first ones filled first."""
    shares = list[int]()
    while processes > 0 and len(shares) < wraps:
        shares.append(min(most, processes))
        processes -= shares[-1]
    return shares


@dataclass(frozen=True)
class _PairCost:
    """The latency of a stage as a function of what processes i and j run."""

    search: Search
    partition: Partition
    i: int
    j: int
    sizes: Sequence[int]

    def __call__(self, a: Functions, b: Functions) -> float:
        changed = _with(self.partition, self.i, a, self.j, b)
        return self.search.stage_ms(changed, self.sizes)


def _with(partition: Partition, i: int, a: Functions, j: int, b: Functions) -> Partition:
    changed = list(partition)
    changed[i], changed[j] = a, b
    return tuple(changed)


def _with_tasks(search: Search, stages: list[tuple[Partition, list[int]]]) -> Layout:
    """The layout in which every function of the partitions is one task of that function."""
    return tuple(
        _stage_with_tasks(search, tasks, partition, sizes)
        for tasks, (partition, sizes) in zip(search.workflow.stages, stages, strict=True)
    )


def _stage_with_tasks(
    search: Search, tasks: Sequence[str], partition: Partition, sizes: Sequence[int]
) -> StageLayout:
    waiting: dict[str, list[str]] = {}
    for task in reversed(tasks):
        waiting.setdefault(search.workflow.function_of(task), []).append(task)
    processes = [
        tuple(waiting[search.functions[function]].pop() for function in process)
        for process in partition
    ]
    wraps, start = [], 0
    for size in sizes:
        wraps.append(tuple(processes[start : start + size]))
        start += size
    return tuple(wraps)
