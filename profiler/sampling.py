"""Solo runs of one function: untraced, traced and probed in turn, so that all see one machine.

The speed of a machine, or of a disk, drifts by more than tracing costs. So each untraced run has a
traced and a probed one beside it, and a reference loop on its core right before and after.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median, median_low, quantiles
from typing import NamedTuple

from profiler.drift import run_at
from profiler.invocation import Invocation, Solo
from profiler.probe_run import ProbeRun
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


class Untraced(NamedTuple):
    """A run without strace and probe: how long it took, and the reference loop beside it."""

    latency_ms: float
    reference_ms: float


@dataclass(frozen=True)
class Samples:
    """What was seen of one function.

    Attributes
    ----------
    untraced
        Its runs without strace and probe.
    traced, probed
        Its runs under strace, none where there is no strace; and those with the probe, without
        the time in which they had no core.
    memory_mib
        Peak of resident memory over the idle process.
    input_bytes, output_bytes
        The size of its requests and answers, typically.
    """

    untraced: tuple[Untraced, ...]
    traced: tuple[TracedHandler, ...]
    probed: tuple[ProbeRun, ...]
    memory_mib: float
    input_bytes: int
    output_bytes: int

    @property
    def reference_ms(self) -> float:
        """What the reference loop took, typically."""
        return median(run.reference_ms for run in self.untraced)

    def latency_ms(self, waiting_ms: float) -> float:
        """The median latency of a function that waits for `waiting_ms`.

        It is taken at one speed: all that a run did but wait is the longer, the longer the loop
        beside it took.
        """
        pace_ms = self.reference_ms
        return median(
            run_at(run.latency_ms, waiting_ms, run.reference_ms, pace_ms) for run in self.untraced
        )


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
    untraced: list[Untraced] = []
    outputs: list[int] = []
    traced: list[TracedHandler | None] = []
    probed: list[ProbeRun | None] = []

    def run_untraced() -> None:
        run = solo.invoke(len(untraced), paced=True)
        untraced.append(Untraced(run.latency_ms, run.reference_ms))
        outputs.append(len(run.output.encode()))
        if beside:
            beside(solo, run)

    rounds = max(_rounds(count, median(run.latency_ms for run in warm)), len(solo.requests))
    for number in range(rounds):
        run_untraced()
        traced += [tracer.run(number)] if tracer else []
        probed.append(solo.invoke(number, probed=True).probed)
    deadline = time.monotonic() + _FURTHER_S
    while len(untraced) < _MOST_TIMES * rounds and time.monotonic() < deadline:
        if _uncertainty(untraced) <= _UNCERTAIN:
            break
        run_untraced()
    whole = tuple(run for run in traced if run)
    if tracer and not whole:
        message = f"strace saw no run of function {solo.function}: does its process restart?"
        raise ChironError("no-trace", message, functions=[solo.function])
    return Samples(
        untraced=tuple(untraced),
        traced=whole,
        probed=tuple(run for run in probed if run),
        memory_mib=memory_mib,
        input_bytes=median_low(map(len, solo.requests)),
        output_bytes=median_low(outputs),
    )


def _uncertainty(runs: Sequence[Untraced]) -> float:
    """The standard error of the median as a share of it: of the latencies, or if that is less
    uncertain, of how often the reference loop fits into them.
    """
    paced = [run.latency_ms / run.reference_ms for run in runs]
    return min(_relative_error([run.latency_ms for run in runs]), _relative_error(paced))


def _relative_error(latencies_ms: Sequence[float]) -> float:
    """The standard error of their median as a share of it, from their quartiles.

    Of a normal distribution, that error is 1.2533 s / sqrt(n), and the quartiles are 1.349 s apart.
    """
    low, middle, high = quantiles(latencies_ms, n=4, method="inclusive")
    error = 1.2533 / 1.349 * (high - low) / sqrt(len(latencies_ms))
    return error / middle if middle else 0.0


def _rounds(count: int, latency_ms: float) -> int:
    affordable = int(_BUDGET_MS / latency_ms) if latency_ms else count
    return max(min(count, _FEWEST_ROUNDS), min(count, affordable))
