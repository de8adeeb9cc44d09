"""What rounds of plans of no-ops show: what is typical of each plan, whatever made a round slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from chiron.predictor.spread import evenly
from chiron.profiler.constants import Seen
from chiron.profiler.cpu_speed import CpuSpeed
from chiron.profiler.self_check import FEWEST_VARIED, QUANTILES
from chiron.profiler.typical_run import medians

#: Plan -> what was seen of it.
Round = dict[str, Seen]
#: Plan -> by how many milliseconds a request takes longer than one to a single no-op in each round,
#: and the CPU's speed beside it.
Longer = Mapping[str, Sequence[tuple[float, CpuSpeed]]]


def numerous_seen(longer: Longer, one: Seen, probe_ms: float) -> Round:
    """What was seen of the numerous no-ops, where the CPU-speed probe takes `probe_ms`."""
    return {
        name: replace(
            one,
            brief_ms=one.brief_ms
            + median(more_ms * probe_ms / speed.probe_ms for more_ms, speed in rounds),
        )
        for name, rounds in longer.items()
    }


def request_variation(latencies_ms: Sequence[float]) -> tuple[float, ...]:
    """`Platform.request_variation`, from requests to one plan; none of too few."""
    if len(latencies_ms) < FEWEST_VARIED:
        return ()
    middle_ms = median(latencies_ms)
    quantiles = evenly(latencies_ms, min(QUANTILES, len(latencies_ms)))
    return tuple(round(each - middle_ms, 4) for each in quantiles)


def typical(rounds: Sequence[Round]) -> Round:
    """What is typical of every plan.

    That is the median of the first plan's, and for the others, the median of how much longer they
    took than the first in the same round: what made a round slow has no part in that.
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
