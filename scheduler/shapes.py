"""Shapes: how many processes each wrap of a plan may run at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chiron.predictor.mechanisms import mechanism_of
from chiron.scheduler.kernighan_lin import Functions
from chiron.scheduler.limits import Limits
from chiron.scheduler.problem import Problem
from chiron.scheduler.slots import Slots, water_level_ms


@dataclass(frozen=True)
class Shape:
    """The CPUs of every wrap of a plan, by group; wraps are numbered from group to group."""

    groups: tuple[tuple[int, ...], ...]

    @property
    def cpus(self) -> int:
        return sum(map(sum, self.groups))

    @property
    def wraps(self) -> int:
        return sum(map(len, self.groups))

    def part(self, group: int, count: int) -> tuple[int, ...]:
        """Return how many processes of `group` each wrap runs if `count` fill its first wraps."""
        sizes = list[int]()
        for size in self.groups[group]:
            if count > 0:
                sizes.append(min(size, count))
                count -= sizes[-1]
        return tuple(sizes)


def shapes(
    problem: Problem, stages: Sequence[Sequence[Functions]], cpus: int, limits: Limits
) -> Iterator[Shape]:
    """Yield shapes with `cpus` CPUs, fewest wraps first, one for 1, 2, 3, 4, 6, 9, ... wraps.

    A wrap has at most as many processes as the platform CPUs. Exceptions are conflicting functions
    that have to share a wrap, and the limit on wraps. That limit is exceeded only if too many
    functions must not share a wrap. If processes start without waiting for each other, more wraps
    bring only memory, and are skipped.

    `stages` has for every stage the functions of each group.
    """
    shares = _shares(problem, stages, cpus)
    if shares is None:
        return
    alone_will_do = _stagger_ms(problem) is None and limits.node_memory_mib is None
    most_wraps = max(limits.wraps, len(shares))
    wraps = _fewest_wraps(problem, shares, most_wraps)
    while sum(wraps) <= most_wraps:
        yield Shape(
            tuple(
                _sizes(problem, [stage[g] for stage in stages], share, count, sum(wraps[:g]))
                for g, (share, count) in enumerate(zip(shares, wraps, strict=True))
            )
        )
        for _ in range(max(1, sum(wraps) // 2)):
            splittable = [
                g for g in range(len(wraps)) if wraps[g] < shares[g] and g not in problem.single
            ]
            if alone_will_do or not splittable:
                return
            wraps[max(splittable, key=lambda g: (shares[g] / wraps[g], -g))] += 1


def least_cpus(problem: Problem, stages: Sequence[Sequence[Functions]]) -> list[int]:
    """Return the fewest CPUs of each group with which no conflicting functions share a process."""
    groups = range(len(stages[0]))
    return [max(1, *(len(problem.separated(stage[group])) for stage in stages)) for group in groups]


def slots_of(problem: Problem, shape: Shape, group: int, count: int) -> Slots:
    """Return the slots of `count` processes of `group` if the groups before use all their wraps."""
    before = sum(map(len, shape.groups[:group]))
    return problem.slots(shape.part(group, count), before)


def bounds_ms(problem: Problem, functions: Functions, every: Sequence[Slots]) -> list[float]:
    """Return lower bounds of the latency of `functions` over each of some slots.

    A bound is the largest of three: the longest solo latency, the time that processes hold their
    GILs, and the core time of functions and process starts.
    """
    if not functions:
        return [0.0] * len(every)
    longest_ms, gil_ms = problem.kinds[functions[0]].latency_ms, problem.gil_ms(functions)
    return [
        max(
            places.by_offset_ms[0] + longest_ms,
            water_level_ms(gil_ms, places.by_offset_ms),
            problem.busy_ms(functions, places),
        )
        for places in every
    ]


def _fewest_wraps(problem: Problem, shares: Sequence[int], most_wraps: int) -> list[int]:
    """Return the fewest wraps of each group with a CPU for every process, as far as allowed."""
    limit = problem.platform.cpus
    wraps = [1 if g in problem.single else -(-share // limit) for g, share in enumerate(shares)]
    while sum(wraps) > most_wraps:
        wraps[wraps.index(max(wraps))] -= 1
    return wraps


def _shares(problem: Problem, stages: Sequence[Sequence[Functions]], cpus: int) -> list[int] | None:
    """Return the CPUs of each group: each next CPU goes to the group with most work per CPU."""
    groups = range(len(stages[0]))
    shares = least_cpus(problem, stages)
    widths = [max(len(stage[group]) for stage in stages) for group in groups]
    widths = [
        min(width, problem.platform.cpus) if group in problem.single else width
        for group, width in enumerate(widths)
    ]
    work_ms = [sum(problem.gil_ms(stage[group]) for stage in stages) for group in groups]
    while sum(shares) < cpus:
        growing = [g for g in groups if shares[g] < widths[g]]
        if not growing:
            return None
        shares[max(growing, key=lambda g: (work_ms[g] / shares[g], -g))] += 1
    return shares if sum(shares) == cpus else None


def _sizes(
    problem: Problem, stages: Sequence[Functions], cpus: int, wraps: int, before: int
) -> tuple[int, ...]:
    """Distribute `cpus` over `wraps` wraps so that the bound of the stages' latency is least.

    The first wrap may differ from the others, which are equal: it alone is not called, but its main
    process waits for its forks. Or the first wraps are full, as later wraps are called later.
    """
    if wraps == 1:
        return (cpus,)
    platform = problem.platform
    even = -(-cpus // wraps)
    limit = max(platform.cpus, even)
    most = min(limit, cpus - wraps + 1)
    outlasted = int(min(most, platform.rpc_ms / (_stagger_ms(problem) or platform.rpc_ms or 1)))
    firsts = {n for base in (even, outlasted) for n in (base - 1, base, base + 1)} | {most}
    options = {_filled(cpus, wraps, limit)}
    for first in firsts:
        rest = cpus - first
        others = [rest // (wraps - 1) + (k < rest % (wraps - 1)) for k in range(wraps - 1)]
        if 1 <= first <= most and others[0] <= limit and others[-1] >= 1:
            options.add((first, *others))
    ordered = sorted(options)
    bounds = [_least_bounds_ms(problem, stage, ordered, before) for stage in stages]
    return min(zip(map(sum, zip(*bounds, strict=True)), ordered, strict=True))[1]


def _stagger_ms(problem: Problem) -> float | None:
    """Return how much each further process of a wrap delays the next; None for no delay."""
    return mechanism_of(problem.mechanism).stagger_ms(problem.platform)


def _filled(cpus: int, wraps: int, limit: int) -> tuple[int, ...]:
    """Return `limit` CPUs for each wrap, as long as a CPU is left for each further wrap."""
    sizes = list[int]()
    for further in reversed(range(wraps)):
        sizes.append(min(limit, cpus - sum(sizes) - further))
    return tuple(sizes)


def _least_bounds_ms(
    problem: Problem, functions: Functions, options: Sequence[tuple[int, ...]], before: int
) -> list[float]:
    """Return the bound for each of some sizes, with as many processes as possible."""
    parts = (Shape((sizes,)).part(0, min(len(functions), sum(sizes))) for sizes in options)
    return bounds_ms(problem, functions, [problem.slots(part, before) for part in parts])
