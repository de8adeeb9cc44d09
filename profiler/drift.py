"""Latencies of different times made comparable: the machine's speed drifts in between."""

from __future__ import annotations

from workflow.profile import FunctionProfile


def latency_at(function: FunctionProfile, reference_ms: float) -> float:
    """How long `function` would take when the reference loop takes `reference_ms`.

    Computing gets slower with the machine, waiting does not. A profile that does not say how fast
    the machine was is taken as it is.
    """
    if not function.reference_ms:
        return function.latency_ms
    waiting = function.time_ms("block")
    computing = function.latency_ms - waiting
    return waiting + computing * reference_ms / function.reference_ms
