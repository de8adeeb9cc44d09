"""Summarise rounds of no-op plans: the typical times of each plan, despite slow rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from chiron.predictor.spread import evenly
from chiron.profiler.constants import Seen
from chiron.profiler.cpu_speed import CpuSpeed
from chiron.profiler.self_check import FEWEST_VARIED, QUANTILES
from chiron.profiler.typical_run import medians

#: The measurements of each plan.
Round = dict[str, Seen]
#: By plan, the extra time of a request over a single no-op in each round, in milliseconds, and the
#: CPU's speed beside it.
Longer = Mapping[str, Sequence[tuple[float, CpuSpeed]]]


def numerous_seen(longer: Longer, one: Seen, probe_ms: float) -> Round:
    """Return the measurements of the numerous no-ops, at a CPU-speed probe of `probe_ms`."""
    return {
        name: replace(
            one,
            brief_ms=one.brief_ms
            + median(more_ms * probe_ms / speed.probe_ms for more_ms, speed in rounds),
        )
        for name, rounds in longer.items()
    }


def request_variation(latencies_ms: Sequence[float]) -> tuple[float, ...]:
    """Return `Platform.request_variation`, from requests to one plan; empty for too few."""
    if len(latencies_ms) < FEWEST_VARIED:
        return ()
    middle_ms = median(latencies_ms)
    quantiles = evenly(latencies_ms, min(QUANTILES, len(latencies_ms)))
    return tuple(round(each - middle_ms, 4) for each in quantiles)


def typical(rounds: Sequence[Round]) -> Round:
    """Return the typical times of every plan.

    For the first plan these are medians. For other plans they add the median difference from the
    first plan in the same round, which cancels slow rounds.
    """
    first = next(iter(rounds[0]))

    def of(plan: str, time_ms: Callable[[Seen], float]) -> float:
        base = median(time_ms(one[first]) for one in rounds)
        return base + median(time_ms(one[plan]) - time_ms(one[first]) for one in rounds)

    return {
        plan: Seen(
            latency_ms=of(plan, lambda seen: seen.latency_ms),
            brief_ms=of(plan, lambda seen: seen.brief_ms),
            begins_ms=medians([one[plan].begins_ms for one in rounds]),
            working_begins_ms=medians([one[plan].working_begins_ms for one in rounds]),
            last_ms=of(plan, lambda seen: seen.last_ms),
            tail_ms=of(plan, lambda seen: seen.tail_ms),
        )
        for plan in rounds[0]
    }
