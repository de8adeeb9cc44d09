"""Solves the predictor's equations for its constants, given the latencies of no-op plans.

Each constant is a difference of latencies, so whatever all plans have in common drops out, and
what a no-op plan is predicted to take is what it took.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles

from profiler.noop_shapes import PROCESSES, REMOTES, THREADS
from workflow.platform import Platform


@dataclass(frozen=True)
class Interpreter:
    """The GIL of the functions' CPython, and how long a no-op handler runs in it."""

    switch_interval_ms: float
    switch_cost_ms: float
    noop_ms: float


def platform(
    latency_ms: Mapping[str, float], interpreter: Interpreter, *, name: str, cpus: int
) -> Platform:
    """The platform on which no-op plans have these latencies.

    Parameters
    ----------
    latency_ms
        Typical latency, seen by the client, of each plan of `profiler.noop_shapes`.

    References
    ----------
    Chiron (SC'23), equations (1)-(4).
    """
    one = latency_ms["one"]
    # Equation (3), workers that wait already: each further process costs T_IPC.
    ipc = _slope(latency_ms["pool-few"], latency_ms["pool-many"], PROCESSES - 2)
    # Equation (4): each further process that is forked costs T_Block as well.
    fork_step = _slope(latency_ms["fork-few"], latency_ms["fork-many"], PROCESSES - 2)
    # Equation (2): remote wrap k comes (k - 1) T_INV late and costs T_RPC.
    invoke = _slope(latency_ms["remote-few"], latency_ms["remote-many"], REMOTES - 1)
    switch_cost, thread_startup = _threads(latency_ms["threads"] - one, interpreter)
    return Platform(
        format=1,
        name=name,
        cpus=cpus,
        request_ms=_rounded(one - thread_startup - switch_cost - interpreter.noop_ms),
        rpc_ms=_rounded(latency_ms["remote-few"] - one - invoke),
        invoke_ms=_rounded(invoke),
        ipc_ms=_rounded(ipc),
        process_startup_ms=_rounded(latency_ms["fork-few"] - one - ipc),
        process_block_ms=_rounded(fork_step - ipc),
        pool_dispatch_ms=_rounded(latency_ms["pool-few"] - one - ipc),
        thread_startup_ms=_rounded(thread_startup),
        switch_interval_ms=interpreter.switch_interval_ms,
        switch_cost_ms=_rounded(switch_cost),
    )


def spread(parts: Sequence[Platform]) -> dict[str, tuple[float, float]]:
    """The quartiles of every constant that differs between `parts`, measurements of one place."""
    found = {}
    for constant in (name for name in Platform.model_fields if name.endswith("_ms")):
        values = [value for part in parts if (value := getattr(part, constant)) is not None]
        if len({*values}) > 1:
            low, _, high = quantiles(values, n=4, method="inclusive")
            found[constant] = (round(low, 4), round(high, 4))
    return found


def _threads(further_ms: float, interpreter: Interpreter) -> tuple[float, float]:
    """What one change of the GIL's holder and the start of one thread cost.

    Of the time by which `THREADS` no-op threads take longer than one, each but the first has its
    no-op, its start and the GIL's change to it. The change cannot cost more than leaves nothing
    for the start.
    """
    each_ms = max(0.0, further_ms / (THREADS - 1) - interpreter.noop_ms)
    switch_ms = min(interpreter.switch_cost_ms, each_ms)
    return switch_ms, each_ms - switch_ms


def _slope(few_ms: float, many_ms: float, steps: int) -> float:
    return max(0.0, (many_ms - few_ms) / steps)


def _rounded(milliseconds: float) -> float:
    """To a tenth of a microsecond; noise can make a small constant negative, which it is not."""
    return round(max(0.0, milliseconds), 4)
