"""Measurements of different times made comparable: the machine's speed drifts in between.

Computing gets slower with the machine, waiting does not. What does not say how fast the machine was
when it was measured is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from chiron.profiler.periods import Piece, laid_out
from chiron.workflow.profile import FunctionProfile, Profile, in_a_row


def run_at(latency_ms: float, waiting_ms: float, then_ms: float | None, now_ms: float) -> float:
    """How long a run would take when the CPU-speed probe takes `now_ms`.

    Parameters
    ----------
    latency_ms, then_ms
        How long it took, and the probe beside it; None where that is not known.
    waiting_ms
        For how long of that it waited; it cannot have waited for longer than it took.
    """
    waited_ms = min(waiting_ms, latency_ms)
    return waited_ms + (latency_ms - waited_ms) * slower(then_ms, now_ms)


def latency_at(function: FunctionProfile, cpu_probe_ms: float) -> float:
    """How long `function` would take when the CPU-speed probe takes `cpu_probe_ms`."""
    waiting_ms = function.time_ms("block")
    return run_at(function.latency_ms, waiting_ms, function.cpu_probe_ms, cpu_probe_ms)


def profile_at(profile: Profile, cpu_probe_ms: float) -> Profile:
    """`profile` as it would be when the CPU-speed probe takes `cpu_probe_ms`."""
    payloads = tuple(
        each.model_copy(update={"functions": _all_at(each.functions, cpu_probe_ms)})
        for each in profile.payloads
    )
    functions = _all_at(profile.functions, cpu_probe_ms)
    return profile.model_copy(update={"functions": functions, "payloads": payloads})


def at_one_speed(
    profiles: Mapping[str, Sequence[FunctionProfile]],
) -> dict[str, list[FunctionProfile]]:
    """`profiles` of functions, with each payload, at the speed that the machine typically had.

    They are taken one after another, and the machine's speed changes in between. A plan runs the
    functions together.
    """
    every = [each.cpu_probe_ms for profiled in profiles.values() for each in profiled]
    known = [cpu_probe_ms for cpu_probe_ms in every if cpu_probe_ms]
    if not known:
        return {name: list(profiled) for name, profiled in profiles.items()}
    typical_ms = median(known)
    return {
        name: [_rounded(_function_at(each, typical_ms)) for each in profiled]
        for name, profiled in profiles.items()
    }


def _all_at(
    functions: Mapping[str, FunctionProfile], cpu_probe_ms: float
) -> dict[str, FunctionProfile]:
    return {name: _function_at(function, cpu_probe_ms) for name, function in functions.items()}


def _function_at(function: FunctionProfile, cpu_probe_ms: float) -> FunctionProfile:
    factor = slower(function.cpu_probe_ms, cpu_probe_ms)
    lengths = [
        period.duration_ms * (1.0 if period.kind == "block" else factor)
        for period in function.periods
    ]
    latency_ms = sum(lengths)
    periods = in_a_row(function.periods, lengths)
    times: dict[str, object] = {"periods": periods, "latency_ms": latency_ms}
    if function.cpu_probe_ms is not None:
        times["cpu_probe_ms"] = cpu_probe_ms
    if function.forked_ms is not None:
        times["forked_ms"] = latency_ms + function.further_ms * factor
    if function.spread_ms is not None and function.latency_ms > 0:
        low_ms, high_ms = function.spread_ms
        ratio = latency_ms / function.latency_ms
        times["spread_ms"] = (low_ms * ratio, high_ms * ratio)
    return function.model_copy(update=times)


def _rounded(function: FunctionProfile) -> FunctionProfile:
    """`function` with times in whole microseconds, as a profile has them."""
    latency_ms = round(function.latency_ms, 3)
    pieces = [Piece(p.kind, p.duration_ms, p.syscall, p.parallelism) for p in function.periods]
    times: dict[str, object] = {"latency_ms": latency_ms, "periods": laid_out(pieces, latency_ms)}
    if function.forked_ms is not None:
        times["forked_ms"] = round(function.forked_ms, 3)
    if function.spread_ms is not None:
        times["spread_ms"] = tuple(round(end_ms, 3) for end_ms in function.spread_ms)
    return function.model_copy(update=times)


def slower(then_ms: float | None, now_ms: float) -> float:
    """How many times as long computing takes now; 1 where it is not known how long it took then."""
    return now_ms / then_ms if then_ms else 1.0
