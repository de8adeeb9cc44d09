"""Algorithm 2 of Chiron (SC'23) as published, at a given number of processes, to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product

from scheduler.kernighan_lin import Functions, exchanged
from scheduler.layout import StageLayout
from scheduler.partition import Costs, Partition
from scheduler.problem import Problem
from scheduler.shapes import Shape, slots_of
from scheduler.slots import by_wrap

Latency = Callable[[Functions, Functions], float]


def published_stage(
    problem: Problem, tasks: tuple[str, ...], sizes: tuple[int, ...]
) -> StageLayout:
    """The tasks of one stage as lines 8-11 put them into processes, `sizes` for each wrap."""
    shape = Shape((sizes,))
    slots = slots_of(problem, shape, 0, min(len(tasks), shape.cpus))
    numbers = [problem.number_of[problem.workflow.function_of(task)] for task in tasks]
    processes = published_partition(Costs(problem, slots, together=False), numbers)
    waiting: dict[int, list[str]] = {}
    for number, task in zip(numbers, tasks, strict=True):
        waiting.setdefault(number, []).append(task)
    return tuple(
        tuple(tuple(waiting[n].pop() for n in problem.in_order(process)) for process in wrap)
        for wrap in by_wrap(processes, slots.sizes)
    )


def published_partition(costs: Costs, functions: list[int]) -> Partition:
    """Functions dealt out in turn, then Kernighan-Lin once between every two processes."""
    count = len(costs.slots.offsets_ms)
    processes = [tuple(sorted(functions[start::count])) for start in range(count)]
    for i, j in combinations(range(count), 2):

        def latency_ms(a: Functions, b: Functions, i: int = i, j: int = j) -> float:
            changed = {i: a, j: b}
            return costs.latency_ms(
                tuple(changed.get(k, process) for k, process in enumerate(processes))
            )

        steps = _swaps(processes[i], processes[j], latency_ms)
        _, processes[i], processes[j] = min(steps, key=lambda step: step[0])
    return tuple(processes)


def _swaps(
    a: Functions, b: Functions, latency_ms: Latency
) -> Iterator[tuple[float, Functions, Functions]]:
    """Lines 19-23: nothing yet, then the best swap of what is left, and so on until all moved."""
    yield latency_ms(a, b), a, b
    free_a, free_b = list(a), list(b)
    while free_a and free_b:
        pairs = product(sorted(set(free_a)), sorted(set(free_b)))
        swaps = [(exchanged(a, x, y), exchanged(b, y, x), x, y) for x, y in pairs]
        stage_ms, a, b, x, y = min((latency_ms(*swap[:2]), *swap) for swap in swaps)
        free_a.remove(x)
        free_b.remove(y)
        yield stage_ms, a, b
