"""Solo runs of one function, traced and untraced in turn, so that both see the same machine.

The speed of a machine drifts by more than tracing costs. So the samples are not taken in two
blocks: each round attaches strace, runs a few times, detaches, and runs a few times without.
"""

from __future__ import annotations

from dataclasses import dataclass

from profiler.handler_run import HandlerRun, handler_runs
from profiler.invocation import Invocation, Solo
from profiler.sandbox import Sandbox
from profiler.tracer import tracing
from workflow.errors import ChironError

_WARM_UP = 3
#: Runs between attaching and detaching, and untraced runs after it.
_TRACED_PER_ROUND = 2
_UNTRACED_PER_ROUND = 4
#: What the untraced runs of one function may take in all, in milliseconds, if more than the least.
_BUDGET_MS = 10_000.0
_FEWEST_ROUNDS = 2


@dataclass(frozen=True)
class Samples:
    """What was seen of one function.

    Attributes
    ----------
    untraced_ms
        Latencies without strace.
    runs
        Its runs under strace.
    memory_mib
        Peak of resident memory over the idle process.
    """

    output: str
    untraced_ms: tuple[float, ...]
    runs: tuple[HandlerRun, ...]
    memory_mib: float


def sample(solo: Solo, sandbox: Sandbox, strace: str, count: int) -> Samples:
    """About `count` untraced runs of a function, fewer if it is slow, and half as many traced.

    Raises
    ------
    ChironError
        ``function-failed`` where the function fails; ``no-trace`` where its runs are not to be
        found in what strace wrote.
    """
    idle_mib = sandbox.resident_mib()
    sandbox.forget_peak()
    warm = [solo.invoke() for _ in range(_WARM_UP)]
    untraced: list[Invocation] = []
    runs: list[HandlerRun] = []
    for _ in range(_rounds(count, min(run.latency_ms for run in warm))):
        with tracing(strace, sandbox.pid) as traced:
            for _ in range(_TRACED_PER_ROUND):
                solo.invoke()
        runs += handler_runs(traced.trace)
        untraced += [solo.invoke() for _ in range(_UNTRACED_PER_ROUND)]
    if not runs:
        raise ChironError(
            "no-trace",
            f"strace saw no run of function {solo.function}: does its process restart?",
            functions=[solo.function],
        )
    return Samples(
        output=untraced[-1].output,
        untraced_ms=tuple(run.latency_ms for run in untraced),
        runs=tuple(runs),
        memory_mib=max(0.0, sandbox.peak_mib() - idle_mib),
    )


def _rounds(count: int, latency_ms: float) -> int:
    wanted = -(-count // _UNTRACED_PER_ROUND)
    affordable = int(_BUDGET_MS / (latency_ms * _UNTRACED_PER_ROUND)) if latency_ms else wanted
    return max(_FEWEST_ROUNDS, min(wanted, affordable))
