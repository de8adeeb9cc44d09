"""Which of the plans that meet an SLO is best: the cheapest, the fastest, or in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from scheduler.options import Option, Options, may_reach
from workflow.plan import Plan

Strategy = Literal["cost", "balanced", "latency"]


def choose(options: Options, strategy: Strategy, slo_ms: float) -> Option:
    """The best option by `strategy`; the fastest found where none meets the SLO.

    - ``cost``: the fewest CPUs, then the fewest wraps (Algorithm 2, lines 13-16); but no slower
      than a fixed model with as many CPUs.
    - ``balanced``: the least CPUs x latency, which is what a request holds and pays for.
    - ``latency``: the fastest.
    """
    if strategy == "cost":
        return cheapest(options, slo_ms) or fastest(options)
    if strategy == "latency":
        return fastest(options)
    within = [option for option in every(options) if option.judged_ms <= slo_ms]
    return min(within, key=_held, default=None) or fastest(options)


def cheapest(options: Options, slo_ms: float) -> Option | None:
    """The option with the fewest CPUs, then wraps, that meets the SLO, if any does."""
    for cpus in options.cpus:
        rival = min(options.rivals_at(cpus), key=_speed, default=None)
        limit_ms = min(slo_ms, rival.judged_ms) if rival else slo_ms
        for option in options.at(cpus, limit_ms):
            if option.judged_ms <= limit_ms:
                return option
        if rival is not None and rival.judged_ms <= slo_ms:
            return rival
    return None


def fastest(options: Options) -> Option:
    """The option with the lowest latency that the search finds, of equal ones the cheapest."""
    best = min(map(options.judged, options.rivals), key=_speed, default=None)
    for candidate in sorted(options.candidates(), key=lambda c: c.estimate_ms):
        if best is None or may_reach(candidate, best.judged_ms):
            option = options.made(candidate)
            best = min(best or option, option, key=_speed)
    if best is None:
        raise ValueError("a workflow without a plan")
    return best


def every(options: Options) -> Iterator[Option]:
    """Every option that none with as few CPUs and wraps is sure to beat."""
    yield from map(options.judged, options.rivals)
    made: list[Option] = []
    for candidate in options.candidates():
        if all(
            len(option.plan.wraps) > candidate.shape.wraps or may_reach(candidate, option.judged_ms)
            for option in made
        ):
            made.append(options.made(candidate))
            yield made[-1]


def better(strategy: Strategy, slo_ms: float) -> Callable[[Option], tuple[float, ...]]:
    """A key by which the better of two options under `strategy` is the smaller one."""

    def key(option: Option) -> tuple[float, ...]:
        if option.judged_ms > slo_ms or strategy == "latency":
            return (option.judged_ms > slo_ms, *_speed(option))
        if strategy == "balanced":
            return (False, *_held(option))
        return (False, option.plan.cpus, len(option.plan.wraps), option.judged_ms)

    return key


def memory_mib(plan: Plan) -> int:
    """The memory of all wraps."""
    return sum(wrap.memory_mib for wrap in plan.wraps)


def _speed(option: Option) -> tuple[float, ...]:
    return option.judged_ms, option.plan.cpus, len(option.plan.wraps), memory_mib(option.plan)


def _held(option: Option) -> tuple[float, ...]:
    return option.plan.cpus * option.judged_ms, *_speed(option)
