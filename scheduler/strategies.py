"""The strategies to choose among plans that meet an SLO: cheapest, fastest, or in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from chiron.scheduler.choices import Strategy
from chiron.scheduler.options import Option, Options
from chiron.scheduler.pgp import by_estimate
from chiron.workflow.plan import Plan

#: If stages are large, the search ends after this many candidates, by rising estimate or CPUs,
#: without a gain.
PATIENCE = 12


def choose(options: Options, strategy: Strategy, slo_ms: float) -> Option:
    """Return the best option by `strategy`; the fastest found if no option meets the SLO.

    An option that exceeds a limit is only chosen if all options do.

    - ``cost``: the fewest CPUs, then the fewest wraps (Algorithm 2, lines 13-16); but no slower
      than a fixed layout with as many CPUs.
    - ``balanced``: the least CPUs x latency, the resources that a request holds and pays for.
    - ``latency``: the fastest.
    """
    if options.search.large:
        best = _best_found(options, strategy, slo_ms)
    else:
        best = _best_of_all(options, strategy, slo_ms)
    if best is not None:
        return best
    if options.beyond_limits:
        raise ValueError("a workflow without a plan")
    return choose(replace(options, beyond_limits=True), strategy, slo_ms)


def _best_found(options: Options, strategy: Strategy, slo_ms: float) -> Option | None:
    """Return the best option by `strategy` of a search that ends before all are judged."""
    best = None
    if strategy == "cost":
        best = cheapest(options, slo_ms)
    elif strategy == "balanced":
        within = [option for option in every(options) if option.judged_ms <= slo_ms]
        best = min(within, key=_held, default=None)
    return best or fastest(options)


def _best_of_all(options: Options, strategy: Strategy, slo_ms: float) -> Option | None:
    """Return the best option by `strategy`, or the fastest if no option meets the SLO.

    Bounds of stages do not hold for layouts with aligned tasks, so all options are judged.
    """
    found = every(options)
    if strategy == "cost":
        found = (
            option
            for option in found
            if all(option.judged_ms <= b.judged_ms for b in options.baselines_at(option.plan.cpus))
        )
    return min(found, key=better(strategy, slo_ms), default=None)


def cheapest(options: Options, slo_ms: float) -> Option | None:
    """Return the option with the fewest CPUs, then wraps, that meets the SLO, or None."""
    for cpus in options.cpus:
        baseline = min(options.baselines_at(cpus), key=_speed, default=None)
        limit_ms = min(slo_ms, baseline.judged_ms) if baseline else slo_ms
        for option in options.at(cpus, limit_ms):
            if option.judged_ms <= limit_ms and options.counts(option):
                return option
        if baseline is not None and baseline.judged_ms <= slo_ms:
            return baseline
    return None


def fastest(options: Options) -> Option | None:
    """Return the option with the lowest latency that the search finds; of equals the cheapest.

    The search ends when it finds no faster options. For small stages `every` yields the fastest.
    """
    best = min(filter(options.counts, options.baselines), key=_speed, default=None)
    since = 0
    for candidate in by_estimate(options.candidates()):
        below_ms = math.inf if best is None else options.bound_ms(best.judged_ms)
        if candidate.estimate_ms > options.search.margin * below_ms or since == PATIENCE:
            break
        option = options.made(candidate, below_ms) if candidate.may_reach(below_ms) else None
        since += 1
        if option is not None and options.counts(option):
            since = 0 if best is None or option.judged_ms < best.judged_ms else since
            best = min(best or option, option, key=_speed)
    return best


def every(options: Options) -> Iterator[Option]:
    """Yield every option that no option with as few CPUs and wraps is sure to beat.

    For large stages, end after several CPU counts in a row without a faster option.
    """
    yield from filter(options.counts, options.baselines)
    made: list[Option] = []
    fastest_ms, no_faster = math.inf, set[int]()
    for candidate in options.candidates():
        no_faster.add(candidate.shape.cpus)
        if options.search.large and len(no_faster) > PATIENCE:
            return
        if all(
            len(option.plan.wraps) > candidate.shape.wraps
            or candidate.may_reach(options.bound_ms(option.judged_ms))
            for option in made
        ):
            option = options.made(candidate)
            if option is not None and options.counts(option):
                made.append(option)
                yield option
                if option.judged_ms < fastest_ms:
                    fastest_ms = option.judged_ms
                    no_faster.clear()


def better(strategy: Strategy, slo_ms: float) -> Callable[[Option], tuple[float, ...]]:
    """Return a key under which the better of two options by `strategy` is the smaller."""

    def key(option: Option) -> tuple[float, ...]:
        missed = option.judged_ms > slo_ms
        if missed or strategy == "latency":
            return (not option.fits, missed, *_speed(option))
        if strategy == "balanced":
            return (not option.fits, missed, *_held(option))
        return (not option.fits, missed, *_cost(option))

    return key


def memory_mib(plan: Plan) -> int:
    """Return the memory of all replicas of all wraps."""
    return sum(wrap.replicas * wrap.memory_mib for wrap in plan.wraps)


def _speed(option: Option) -> tuple[float, ...]:
    return (
        option.judged_ms,
        option.plan.allocated_cpus,
        len(option.plan.wraps),
        memory_mib(option.plan),
    )


def _cost(option: Option) -> tuple[float, ...]:
    return option.plan.allocated_cpus, len(option.plan.wraps), option.judged_ms


def _held(option: Option) -> tuple[float, ...]:
    return option.plan.allocated_cpus * option.judged_ms, *_speed(option)
