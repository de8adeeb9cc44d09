"""Partitions of a stage's functions into processes, with low latency for given slots."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from chiron.scheduler.fill import fill
from chiron.scheduler.kernighan_lin import Estimate, Exchange, Functions, exchanged, kernighan_lin
from chiron.scheduler.problem import Problem
from chiron.scheduler.slots import Slots, by_wrap, pair_latency

#: The functions of each process of one stage and group, in the order of the slots.
Partition = tuple[Functions, ...]

#: Steps of Kernighan-Lin without a gain after which a pass stops.
PATIENCE = 3
#: The number of processes with which the last process exchanges functions: those that end first.
PARTNERS = 6
#: The least relative gain in latency for which the search of a large partition goes on.
WORTHWHILE = 0.001
#: Up to this number of functions every start is improved, and processes that compete for cores are
#: simulated together at every step.
SMALL = 10


@dataclass(frozen=True)
class Costs:
    """The cost of a partition of `problem`'s functions over `slots`.

    ``together`` simulates all processes of a wrap at once, competing for cores; else each is alone.
    """

    problem: Problem
    slots: Slots
    together: bool

    def arranged(self, processes: Sequence[Functions]) -> Partition:
        """Assign `processes` to the slots: the longest to the earliest slot, which is optimal.

        If the mechanism refuses such a process, those that it refuses come first: the earliest slot
        is a main process.
        """
        refused, offsets_ms = self.problem.is_refused, self.slots.offsets_ms
        by_time = sorted(processes, key=lambda p: (-self.problem.alone_ms(p), p))
        by_offset = sorted(range(len(processes)), key=lambda s: (offsets_ms[s], s))
        for order in (by_time, sorted(by_time, key=lambda p: not refused(p))):
            partition = dict(zip(by_offset, order, strict=True))
            if not any(self.slots.further[slot] and refused(partition[slot]) for slot in by_offset):
                break
        return tuple(partition[slot] for slot in range(len(processes)))

    def ends_ms(self, partition: Partition) -> list[float]:
        """Return the end of each process, from the start of the stage."""
        if not self.together:
            return [
                offset
                + self.problem.alone_ms(functions)
                + further * self.problem.further_ms(functions)
                for functions, offset, further in zip(
                    partition, self.slots.offsets_ms, self.slots.further, strict=True
                )
            ]
        wraps = by_wrap(partition, self.slots.sizes)
        return [
            arrival + end
            for arrival, processes in zip(self.slots.arrivals_ms, wraps, strict=True)
            for end in self.problem.wrap_ends_ms(processes)
        ]

    def latency_ms(self, partition: Partition) -> float:
        """Return when the last process ends; infinite if a process contains a conflict."""
        if not all(map(self.problem.can_share, partition)):
            return math.inf
        return max(self.ends_ms(partition))


def partition(problem: Problem, functions: Functions, slots: Slots) -> tuple[float, Partition]:
    """Return the best partition found of `functions` over `slots`, after its latency.

    Kernighan-Lin improves round-robin and greedy starts, between the process that ends last and the
    others.

    Raises ValueError if there are more slots than functions.
    """
    if len(functions) < len(slots.offsets_ms):
        raise ValueError("more slots than functions")
    alone = Costs(problem, slots, together=False)
    starts = sorted(
        (alone.latency_ms(p), p) for p in {alone.arranged(s) for s in _starts(alone, functions)}
    )
    small = len(functions) <= SMALL
    found = sorted(_improved(alone, start) for _, start in starts[: None if small else 1])
    if not compete(problem, found[0][1], slots):
        return found[0]
    joint = Costs(problem, slots, together=True)
    found = [(joint.latency_ms(p), p) for p in dict.fromkeys(p for _, p in [*found, *starts])]
    return min([*found, *(_improved(joint, p) for _, p in found if small)])


def compete(problem: Problem, partition: Partition, slots: Slots) -> bool:
    """Return whether the processes of a wrap may need more cores than one for each process.

    Only one thread of a process computes at a time, except for threads that release the GIL and
    helpers that functions start. With contention overhead, threads that wait for the GIL count too.
    """
    if max(slots.sizes) > problem.platform.cpus:
        return True
    return len(partition) > 1 and any(
        any(problem.kinds[n].parallel for n in process)
        or (
            len(process) > 1
            and (
                problem.platform.contention_overhead > 0
                or any(problem.kinds[n].core_ms > problem.kinds[n].gil_ms for n in process)
            )
        )
        for process in partition
    )


def _improved(costs: Costs, partition: Partition) -> tuple[float, Partition]:
    """Exchange functions between the last process and other processes until no exchange gains."""
    latency_ms = costs.latency_ms(partition)
    least = 0.0 if sum(map(len, partition)) <= SMALL else WORTHWHILE * latency_ms
    while True:
        ends = costs.ends_ms(partition)
        if latency_ms - fmean(ends) < least:
            return latency_ms, partition
        order = sorted(range(len(ends)), key=lambda i: (ends[i], i))
        last = order.pop()
        for other in order[:PARTNERS]:
            better = _exchanged(costs, partition, latency_ms, last, other)
            if better is not None:
                latency_ms, partition = better
                break
        else:
            return latency_ms, partition


def _exchanged(
    costs: Costs, partition: Partition, latency_ms: float, i: int, j: int
) -> tuple[float, Partition] | None:
    """Return the best prefix of Kernighan-Lin between processes i and j; None without a gain.

    Of equal stage latencies, the lower latencies of the two processes win. A third process may be
    as late as they are, and be improved next.
    """
    problem = costs.problem
    others = tuple(p for k, p in enumerate(partition) if k not in (i, j))
    apart_ms = pair_latency(list(map(problem.alone_ms, others)), costs.slots.offsets_ms)

    def cost(a: Functions, b: Functions) -> tuple[float, float, float]:
        faster_ms, slower_ms = sorted((problem.alone_ms(a), problem.alone_ms(b)))
        if costs.together:
            stage_ms = costs.latency_ms(costs.arranged((*others, a, b)))
        elif problem.can_share(a) and problem.can_share(b):
            stage_ms = apart_ms(slower_ms, faster_ms)
        else:
            stage_ms = math.inf
        return stage_ms, slower_ms, faster_ms

    a, b = partition[i], partition[j]
    faster_ms, slower_ms = sorted((problem.alone_ms(a), problem.alone_ms(b)))
    before = (latency_ms, slower_ms, faster_ms)
    offsets = costs.slots.offsets_ms[i], costs.slots.offsets_ms[j]
    steps = kernighan_lin(a, b, cost, _estimate(problem, offsets))
    best, a, b = _best_prefix(steps, (before, a, b))
    if best < before and _worthwhile(before, best, sum(map(len, partition))):
        return best[0], costs.arranged((*others, a, b))
    return None


def _worthwhile(before: Sequence[float], after: Sequence[float], functions: int) -> bool:
    """Return whether the stage's latency or that of the slower process gains enough to go on."""
    least = 0.0 if functions <= SMALL else WORTHWHILE
    return any(old - new > least * old for old, new in zip(before[:2], after[:2], strict=True))


Step = tuple[tuple[float, ...], Functions, Functions]


def _best_prefix(steps: Iterator[Step], best: Step) -> Step:
    since = 0
    for step in steps:
        since += 1
        if step[0] < best[0]:
            best, since = step, 0
        if since == PATIENCE:
            break
    return best


def _estimate(problem: Problem, offsets_ms: tuple[float, float]) -> Estimate:
    """Return a function that estimates when two processes end after an exchange."""
    low, high = sorted(offsets_ms)

    def estimate(a: Functions, b: Functions) -> Callable[[Exchange], float]:
        after_a, after_b = _after(problem, a), _after(problem, b)

        def cost(exchange: Exchange) -> float:
            x, y = exchange
            one, other = after_a(x, y), after_b(y, x)
            return max(max(one, other) + low, min(one, other) + high)

        return cost

    return estimate


def _after(problem: Problem, functions: Functions) -> Callable[[int | None, int | None], float]:
    """Return an estimate of a process's latency after one function left and another joined."""
    kinds = problem.kinds
    core_ms = problem.core_ms(functions)
    longest, second = functions[0], functions[min(1, len(functions) - 1)]
    over_ms = problem.alone_ms(functions) - max(core_ms, kinds[longest].latency_ms)

    def cost(out: int | None, into: int | None) -> float:
        left = kinds[second if out == longest else longest].latency_ms
        total = core_ms - (0.0 if out is None else kinds[out].core_ms)
        if into is None:
            return over_ms + max(total, left)
        if into in problem.apart and not problem.gets_on(into, _without(functions, out)):
            return math.inf
        return over_ms + max(total + kinds[into].core_ms, left, kinds[into].latency_ms)

    return cost


def _without(functions: Functions, out: int | None) -> Functions:
    return functions if out is None else exchanged(functions, out, None)


def _starts(costs: Costs, functions: Functions) -> Iterator[Partition]:
    """Yield the starts: functions in turn (Algorithm 2, line 9), then greedy partitions."""
    count, kinds = len(costs.slots.offsets_ms), costs.problem.kinds
    if costs.problem.apart:
        yield _split(costs.problem.separated(functions), count)
    else:
        yield tuple(functions[start::count] for start in range(count))
    by_work = sorted(functions, key=lambda n: (-kinds[n].core_ms, n))
    for order in (functions, tuple(by_work)):
        yield fill(costs.problem, order, costs.slots.offsets_ms)[1]


def _split(whole: Sequence[Functions], count: int) -> Partition:
    """Cut the fullest process of `whole` in two until there are `count` processes."""
    processes = list(whole)
    while len(processes) < count:
        fullest = max(processes, key=len)
        processes.remove(fullest)
        processes += [fullest[::2], fullest[1::2]]
    return tuple(processes)
