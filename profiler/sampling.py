"""Solo runs of one function: untraced, traced and probed in turn, so that all see one machine.

The speed of a machine, or of a disk, drifts by more than tracing costs. So each untraced run has a
traced and a probed one beside it, and a reference loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median, median_low, quantiles

from profiler.invocation import Invocation, Solo
from profiler.probe_run import ProbeRun
from profiler.reference_loop import reference_ms
from profiler.sandbox import Sandbox
from profiler.traced_runs import TracedHandler, Tracer
from workflow.errors import ChironError

#: Called with what was run, and with the run.
Beside = Callable[[Solo, Invocation], None]

_WARM_UP = 3
#: What the untraced runs of one function may take in all, in milliseconds, if more than the least.
_BUDGET_MS = 8_000.0
_FEWEST_ROUNDS = 6
#: Where the latency is less certain than that, as a share of it, there are more untraced runs,
#: up to so many times as many, for so long in seconds.
_UNCERTAIN = 0.01
_MOST_TIMES = 5
_FURTHER_S = 2.0


@dataclass(frozen=True)
class Samples:
    """What was seen of one function.

    Attributes
    ----------
    untraced_ms
        Latencies without strace and probe.
    traced, probed
        Its runs under strace, none where there is no strace; and those with the probe, without
        the time in which they had no core.
    reference_ms
        What the reference loop took, typically.
    memory_mib
        Peak of resident memory over the idle process.
    input_bytes, output_bytes
        The size of its requests and answers, typically.
    """

    untraced_ms: tuple[float, ...]
    traced: tuple[TracedHandler, ...]
    probed: tuple[ProbeRun, ...]
    reference_ms: float
    memory_mib: float
    input_bytes: int
    output_bytes: int


def sample(
    solo: Solo,
    sandbox: Sandbox,
    tracer: Tracer | None,
    count: int,
    *,
    beside: Beside | None = None,
) -> Samples:
    """Runs of a function: `count` rounds, fewer if it is slow; more untraced ones if it varies.

    Parameters
    ----------
    tracer
        Runs it under strace; None where only the probe is used.
    beside
        Called after every untraced run.

    Raises
    ------
    ChironError
        ``function-failed`` where the function fails; ``no-trace`` where its runs are not to be
        found in what strace wrote.
    """
    idle_mib = sandbox.resident_mib()
    sandbox.forget_peak()
    warm = [solo.invoke(number) for number in range(max(_WARM_UP, len(solo.requests)))]
    memory_mib = max(0.0, sandbox.peak_mib() - idle_mib)
    if tracer:
        tracer.run(0)
    untraced: list[Invocation] = []
    traced: list[TracedHandler | None] = []
    probed: list[ProbeRun | None] = []
    references: list[float] = []

    def run_untraced() -> None:
        references.append(reference_ms())
        untraced.append(solo.invoke(len(untraced)))
        if beside:
            beside(solo, untraced[-1])

    rounds = max(_rounds(count, median(run.latency_ms for run in warm)), len(solo.requests))
    for number in range(rounds):
        run_untraced()
        traced += [tracer.run(number)] if tracer else []
        probed.append(solo.invoke(number, probed=True).probed)
    deadline = time.monotonic() + _FURTHER_S
    while len(untraced) < _MOST_TIMES * rounds and time.monotonic() < deadline:
        if _uncertainty([run.latency_ms for run in untraced]) <= _UNCERTAIN:
            break
        run_untraced()
    whole = tuple(run for run in traced if run)
    if tracer and not whole:
        message = f"strace saw no run of function {solo.function}: does its process restart?"
        raise ChironError("no-trace", message, functions=[solo.function])
    return Samples(
        untraced_ms=tuple(run.latency_ms for run in untraced),
        traced=whole,
        probed=tuple(run for run in probed if run),
        reference_ms=median(references),
        memory_mib=memory_mib,
        input_bytes=median_low(map(len, solo.requests)),
        output_bytes=median_low(len(run.output.encode()) for run in untraced),
    )


def _uncertainty(latencies_ms: Sequence[float]) -> float:
    """The standard error of their median as a share of it, from their quartiles.

    Of a normal distribution, that error is 1.2533 s / sqrt(n), and the quartiles are 1.349 s apart.
    """
    low, middle, high = quantiles(latencies_ms, n=4, method="inclusive")
    error = 1.2533 / 1.349 * (high - low) / sqrt(len(latencies_ms))
    return error / middle if middle else 0.0


def _rounds(count: int, latency_ms: float) -> int:
    affordable = int(_BUDGET_MS / latency_ms) if latency_ms else count
    return max(min(count, _FEWEST_ROUNDS), min(count, affordable))
