"""Make functions that were profiled one after another comparable: the machine's speed drifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from chiron.predictor.speed import function_at
from chiron.profiler.periods import Piece, laid_out
from chiron.workflow.profile import FunctionProfile


def at_one_speed(
    profiles: Mapping[str, Sequence[FunctionProfile]],
) -> dict[str, list[FunctionProfile]]:
    """Convert `profiles` of functions, with each payload, to the median speed of the machine.

    They are measured one after another, and the machine's speed changes in between. A plan runs the
    functions together.
    """
    every = [each.cpu_probe_ms for profiled in profiles.values() for each in profiled]
    known = [cpu_probe_ms for cpu_probe_ms in every if cpu_probe_ms]
    if not known:
        return {name: list(profiled) for name, profiled in profiles.items()}
    typical_ms = median(known)
    return {
        name: [_rounded(function_at(each, typical_ms)) for each in profiled]
        for name, profiled in profiles.items()
    }


def _rounded(function: FunctionProfile) -> FunctionProfile:
    """Round the times of `function` to whole microseconds, as in a profile."""
    latency_ms = round(function.latency_ms, 3)
    pieces = [Piece(p.kind, p.duration_ms, p.syscall, p.parallelism) for p in function.periods]
    times: dict[str, object] = {"latency_ms": latency_ms, "periods": laid_out(pieces, latency_ms)}
    if function.forked_ms is not None:
        times["forked_ms"] = round(function.forked_ms, 3)
    if function.spread_ms is not None:
        times["spread_ms"] = tuple(round(end_ms, 3) for end_ms in function.spread_ms)
    return function.model_copy(update=times)
