"""Solo runs of one function: traced, probed and neither in turn, so that all see one machine.

The speed of a machine drifts by more than tracing costs. So the samples are not taken in blocks:
each round attaches strace, runs a few times, detaches, runs with the probe, and then without
anything, with a reference loop timed beside each of those.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median, median_low

from profiler.handler_run import HandlerRun, handler_runs
from profiler.invocation import Invocation, Solo
from profiler.probe_run import ProbeRun
from profiler.reference_loop import reference_ms
from profiler.sandbox import Sandbox
from profiler.tracer import tracing
from workflow.errors import ChironError

_WARM_UP = 3
#: Runs of a round: between attaching and detaching, with the probe, and without anything.
_TRACED_PER_ROUND = 3
_PROBED_PER_ROUND = 3
_UNTRACED_PER_ROUND = 4
#: What the untraced runs of one function may take in all, in milliseconds, if more than the least.
_BUDGET_MS = 8_000.0
_FEWEST_ROUNDS = 2


@dataclass(frozen=True)
class TracedHandler:
    """A run under strace, and for how long its thread had no core."""

    run: HandlerRun
    delayed_ms: float


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


def sample(solo: Solo, sandbox: Sandbox, strace: str | None, count: int) -> Samples:
    """About `count` untraced runs of a function, fewer if it is slow, and half as many others.

    Parameters
    ----------
    strace
        The program; without it only the probe is used.

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
    untraced: list[Invocation] = []
    traced: list[TracedHandler] = []
    probed: list[ProbeRun] = []
    references: list[float] = []
    rounds = _rounds(count, median(run.latency_ms for run in warm))
    for number in range(max(rounds, len(solo.requests))):
        if strace:
            traced += _traced(solo, sandbox, strace, number)
        for _ in range(_PROBED_PER_ROUND):
            one = solo.invoke(number, probed=True)
            probed += [one.probed.without_delay(one.delayed_ms)] if one.probed else []
        for _ in range(_UNTRACED_PER_ROUND):
            references.append(reference_ms())
            untraced.append(solo.invoke(number))
    if strace and not traced:
        message = f"strace saw no run of function {solo.function}: does its process restart?"
        raise ChironError("no-trace", message, functions=[solo.function])
    return Samples(
        untraced_ms=tuple(run.latency_ms for run in untraced),
        traced=tuple(traced),
        probed=tuple(probed),
        reference_ms=median(references),
        memory_mib=memory_mib,
        input_bytes=median_low(map(len, solo.requests)),
        output_bytes=median_low(len(run.output.encode()) for run in untraced),
    )


def _traced(solo: Solo, sandbox: Sandbox, strace: str, number: int) -> list[TracedHandler]:
    """Runs under strace, without those that it did not see whole."""
    with tracing(strace, sandbox.pid) as tracer:
        done = [solo.invoke(number) for _ in range(_TRACED_PER_ROUND)]
    runs = handler_runs(tracer.trace)
    return [TracedHandler(seen, run.delayed_ms) for run, seen in zip(done, runs, strict=False)]


def _rounds(count: int, latency_ms: float) -> int:
    wanted = -(-count // _UNTRACED_PER_ROUND)
    affordable = int(_BUDGET_MS / (latency_ms * _UNTRACED_PER_ROUND)) if latency_ms else wanted
    return max(_FEWEST_ROUNDS, min(wanted, affordable))
