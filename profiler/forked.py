"""How much longer a function takes in a process that was forked for the request."""

from __future__ import annotations

from statistics import median

from profiler.drift import latency_at
from profiler.invocation import Solo
from profiler.reference_loop import reference_ms
from workflow.profile import FunctionProfile

_WARM_UP = 2
#: Runs in forked processes, each of which serves one request.
_RUNS = 12
#: What they may take in all, in milliseconds, if more than the fewest.
_BUDGET_MS = 2_000.0
_FEWEST = 3


def with_forks(function: FunctionProfile, solo: Solo) -> FunctionProfile:
    """`function` with its latency in forked processes, in which `solo` runs it.

    The machine may be faster or slower now than when the function was profiled: what counts is
    how much longer it takes than it would in a main process now.
    """
    for _ in range(_WARM_UP):
        solo.invoke()
    affordable = int(_BUDGET_MS / function.latency_ms) if function.latency_ms else _RUNS
    taken, references = [], []
    for number in range(max(_FEWEST, min(_RUNS, affordable))):
        references.append(reference_ms())
        taken.append(solo.invoke(number).latency_ms)
    further_ms = median(taken) - latency_at(function, median(references))
    forked_ms = round(max(0.0, function.latency_ms + further_ms), 3)
    return function.model_copy(update={"forked_ms": forked_ms})
