"""Measurements of different times made comparable: the machine's speed drifts in between.

Computing gets slower with the machine, waiting does not, unless it is known how long it was. What
does not say how fast the machine was when it was measured is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from types import MappingProxyType

from workflow.platform import Platform
from workflow.profile import FunctionProfile, Profile

#: Times that no machine's speed changes.
_BY_CLOCK = {"switch_interval_ms", "reference_ms"}


def run_at(latency_ms: float, waiting_ms: float, then_ms: float | None, now_ms: float) -> float:
    """How long a run would take when the reference loop takes `now_ms`.

    Parameters
    ----------
    latency_ms, then_ms
        How long it took, and the loop beside it; None where that is not known.
    waiting_ms
        For how long of that it waited; it cannot have waited for longer than it took.
    """
    waited_ms = min(waiting_ms, latency_ms)
    return waited_ms + (latency_ms - waited_ms) * slower(then_ms, now_ms)


def latency_at(function: FunctionProfile, reference_ms: float) -> float:
    """How long `function` would take when the reference loop takes `reference_ms`."""
    waiting_ms = function.time_ms("block")
    return run_at(function.latency_ms, waiting_ms, function.reference_ms, reference_ms)


def waiting_in(function: FunctionProfile, latency_ms: float, reference_ms: float) -> float:
    """For how long `function` waited when it took `latency_ms`, and the loop `reference_ms`."""
    computing_ms = function.latency_ms - function.time_ms("block")
    return max(0.0, latency_ms - computing_ms * slower(function.reference_ms, reference_ms))


def profile_at(
    profile: Profile, reference_ms: float, waiting_ms: Mapping[str, float] = MappingProxyType({})
) -> Profile:
    """`profile` as it would be when the reference loop takes `reference_ms`.

    Parameters
    ----------
    waiting_ms
        For how long functions wait then, of those of which it is known; each of their waits takes
        its share of that.
    """
    functions = {
        name: _function_at(function, reference_ms, waiting_ms.get(name))
        for name, function in profile.functions.items()
    }
    return profile.model_copy(update={"functions": functions})


def platform_at(platform: Platform, reference_ms: float) -> Platform:
    """`platform` as it would be when the reference loop takes `reference_ms`."""
    return platform_slower(platform, slower(platform.reference_ms, reference_ms))


def platform_slower(platform: Platform, factor: float) -> Platform:
    """`platform` where all that it costs takes `factor` times as long."""
    constants = {
        name: value * factor
        for name, value in platform
        if name.endswith("_ms") and name not in _BY_CLOCK and value is not None
    }
    spread = {
        name: (low_ms * factor, high_ms * factor) if name in constants else (low_ms, high_ms)
        for name, (low_ms, high_ms) in platform.spread.items()
    }
    return platform.model_copy(update={**constants, "spread": spread})


def _function_at(
    function: FunctionProfile, reference_ms: float, waiting_ms: float | None
) -> FunctionProfile:
    factor = slower(function.reference_ms, reference_ms)
    waited_ms = function.time_ms("block")
    longer = waiting_ms / waited_ms if waiting_ms is not None and waited_ms else 1.0
    lengths = [
        period.duration_ms * (longer if period.kind == "block" else factor)
        for period in function.periods
    ]
    starts = accumulate(lengths, initial=0.0)
    periods = tuple(
        period.model_copy(update={"start_ms": start, "duration_ms": length})
        for period, start, length in zip(function.periods, starts, lengths, strict=False)
    )
    latency_ms = sum(lengths)
    times: dict[str, object] = {"periods": periods, "latency_ms": latency_ms}
    if function.forked_ms is not None:
        further_ms = max(0.0, function.forked_ms - function.latency_ms)
        times["forked_ms"] = latency_ms + further_ms * factor
    if function.spread_ms is not None and function.latency_ms > 0:
        low_ms, high_ms = function.spread_ms
        ratio = latency_ms / function.latency_ms
        times["spread_ms"] = (low_ms * ratio, high_ms * ratio)
    return function.model_copy(update=times)


def slower(then_ms: float | None, now_ms: float) -> float:
    """How many times as long computing takes now; 1 where it is not known how long it took then."""
    return now_ms / then_ms if then_ms else 1.0
