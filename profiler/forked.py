"""How much longer a function takes in a process that was forked for the request."""

from __future__ import annotations

from statistics import median

from profiler.drift import latency_at, slower
from profiler.invocation import Invocation, Solo
from workflow.profile import FunctionProfile

_WARM_UP = 2
#: Runs in forked processes, each of which serves one request.
_RUNS = 12
#: What they may take in all, in milliseconds, if more than the fewest.
_BUDGET_MS = 2_000.0
_FEWEST = 3


def with_forks(function: FunctionProfile, solo: Solo) -> FunctionProfile:
    """`function` with its latency in forked processes, in which `solo` runs it.

    The machine may be faster or slower in each run than when the function was profiled: what counts
    is how much longer it takes than it would in a main process at that speed.
    """
    for _ in range(_WARM_UP):
        solo.invoke()
    affordable = int(_BUDGET_MS / function.latency_ms) if function.latency_ms else _RUNS
    rounds = range(max(_FEWEST, min(_RUNS, affordable)))
    further_ms = median(_further_ms(function, solo.invoke(number, paced=True)) for number in rounds)
    forked_ms = round(max(0.0, function.latency_ms + further_ms), 3)
    return function.model_copy(update={"forked_ms": forked_ms})


def _further_ms(function: FunctionProfile, run: Invocation) -> float:
    """How much longer `run` took, as it would be at the speed of the profile."""
    further_ms = run.latency_ms - latency_at(function, run.pace.loop_ms)
    return further_ms / slower(function.reference_ms, run.pace.loop_ms)
