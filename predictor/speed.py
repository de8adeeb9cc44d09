"""Profiles and platforms at other speeds of the machine, which drifts between measurements.

Computing gets slower with the machine, waiting does not. The CPU-speed probe measures the speed: a
fixed loop that wraps run beside their functions. Measurements without a probe stay unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

from chiron.workflow.platform import PathCost, Platform
from chiron.workflow.profile import FunctionProfile, Profile, in_a_row

#: Constants that do not depend on the machine's speed, and the probe itself.
_SET = {"switch_interval_ms", "short_release_ms", "cpu_probe_ms"}
#: The variation of a request's own way, all of which is computing.
_WAYS = ("request_variation", "idle_variation")


def slower(then_ms: float | None, now_ms: float | None) -> float:
    """Return the factor of computing times from then to now; 1 if a probe is unknown."""
    return now_ms / then_ms if then_ms and now_ms else 1.0


def run_at(latency_ms: float, waiting_ms: float, then_ms: float | None, now_ms: float) -> float:
    """Return the latency of a run when the CPU-speed probe takes `now_ms`.

    Args:
        latency_ms, then_ms: its latency, and the probe beside it; None if unknown.
        waiting_ms: the time of that spent waiting, at most the latency.
    """
    waited_ms = min(waiting_ms, latency_ms)
    return waited_ms + (latency_ms - waited_ms) * slower(then_ms, now_ms)


def latency_at(function: FunctionProfile, cpu_probe_ms: float) -> float:
    """Return the latency of `function` when the CPU-speed probe takes `cpu_probe_ms`."""
    waiting_ms = function.time_ms("block")
    return run_at(function.latency_ms, waiting_ms, function.cpu_probe_ms, cpu_probe_ms)


def profile_at(profile: Profile, cpu_probe_ms: float | None) -> Profile:
    """Return `profile` as it would be when the CPU-speed probe takes `cpu_probe_ms`, if known.

    A plan runs on the platform, so predictions use the platform's probe, not the speed at which the
    functions were profiled.
    """
    if cpu_probe_ms is None:
        return profile
    payloads = tuple(
        each.model_copy(update={"functions": _all_at(each.functions, cpu_probe_ms)})
        for each in profile.payloads
    )
    functions = _all_at(profile.functions, cpu_probe_ms)
    return profile.model_copy(update={"functions": functions, "payloads": payloads})


def platform_at(platform: Platform, cpu_probe_ms: float) -> Platform:
    """Return `platform` as it would be when the CPU-speed probe takes `cpu_probe_ms`."""
    at_speed = platform_slower(platform, slower(platform.cpu_probe_ms, cpu_probe_ms))
    return at_speed.model_copy(update={"cpu_probe_ms": round(cpu_probe_ms, 4)})


def platform_slower(platform: Platform, factor: float) -> Platform:
    """Return `platform` with all measured times multiplied by `factor`.

    Constants without a spread were given, not measured.
    """
    timed = _timed(platform)
    constants = {name: factor * getattr(platform, name) for name in timed}
    spread = {name: _times(platform.spread[name], factor) for name in timed & {*platform.spread}}
    paths = {path: _path_slower(cost, factor) for path, cost in platform.paths.items()}
    idle = {name: factor * more_ms for name, more_ms in platform.idle.items()}
    ways = {name: _times(getattr(platform, name), factor) for name in _WAYS}
    update = {**constants, **ways, "idle": idle, "paths": paths, "spread": platform.spread | spread}
    return platform.model_copy(update=update)


def at_any_speed(platform: Platform) -> dict[str, object]:
    """Return the part of a calibration that does not depend on the machine's speed."""
    return platform.model_dump(
        exclude={*_timed(platform), *_WAYS, "spread", "idle", "paths", "cpu_probe_ms"}, mode="json"
    )


def function_at(function: FunctionProfile, cpu_probe_ms: float) -> FunctionProfile:
    """Return `function` as it would be when the CPU-speed probe takes `cpu_probe_ms`."""
    factor = slower(function.cpu_probe_ms, cpu_probe_ms)
    if factor == 1.0:
        return function
    lengths = [
        period.duration_ms * (1.0 if period.kind == "block" else factor)
        for period in function.periods
    ]
    latency_ms = sum(lengths)
    periods = in_a_row(function.periods, lengths)
    times: dict[str, object] = {
        "periods": periods,
        "latency_ms": latency_ms,
        "cpu_probe_ms": cpu_probe_ms,
    }
    if function.forked_ms is not None:
        times["forked_ms"] = latency_ms + function.further_ms * factor
    if function.spread_ms is not None and function.latency_ms > 0:
        low_ms, high_ms = function.spread_ms
        ratio = latency_ms / function.latency_ms
        times["spread_ms"] = (low_ms * ratio, high_ms * ratio)
    return function.model_copy(update=times)


def _timed(platform: Platform) -> set[str]:
    """Return the constants that grow with all computing times."""
    if not platform.spread:
        return set()
    constants = {name for name in Platform.model_fields if name.endswith(("_ms", "_ms_per_mb"))}
    return {name for name in constants - _SET if getattr(platform, name) is not None}


def _path_slower(cost: PathCost, factor: float) -> PathCost:
    spread = {name: _times(ends, factor) for name, ends in cost.spread.items()}
    times = {"ms": factor * cost.ms, "ms_per_mb": factor * cost.ms_per_mb}
    return cost.model_copy(update={**times, "spread": spread})


def _times(values: tuple[float, ...], factor: float) -> tuple[float, ...]:
    return tuple(factor * each for each in values)


def _all_at(
    functions: Mapping[str, FunctionProfile], cpu_probe_ms: float
) -> dict[str, FunctionProfile]:
    return {name: function_at(function, cpu_probe_ms) for name, function in functions.items()}
