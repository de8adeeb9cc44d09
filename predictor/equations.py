"""Chiron's equations (1)-(4): from processes over wraps and stages to a workflow's latency."""

from __future__ import annotations

from collections.abc import Sequence

from workflow.plan import Mechanism
from workflow.platform import Platform


def workflow_latency_ms(stages_ms: Sequence[float], request_ms: float) -> float:
    """Equation (1): stages run one after another.

    `request_ms` is what the request itself costs on its way to the first wrap and back, which
    the paper leaves out.
    """
    return request_ms + sum(stages_ms)


def stage_latency_ms(
    local_ms: float | None, remote_ms: Sequence[float], platform: Platform
) -> float:
    """Equation (2): the slowest wrap of a stage decides.

    Parameters
    ----------
    local_ms
        Latency of the wrap that calls the others, None where it has no part in the stage or
        where the client calls them all.
    remote_ms
        Latencies of the other wraps in the order in which they are called. Wrap k of a stage,
        counted from 1 with the local one, leaves (k-1) T_INV late and pays T_RPC.
    """
    first = 1 if local_ms is None else 2
    arrivals = [
        latency + (k - 1) * platform.invoke_ms + platform.rpc_ms
        for k, latency in enumerate(remote_ms, start=first)
    ]
    return max([*arrivals, 0.0 if local_ms is None else local_ms])


def wrap_latency_ms(processes_ms: Sequence[float], ipc_ms: float) -> float:
    """Equation (3): the slowest process, and gathering the results of all but the first."""
    return max(processes_ms) + ipc_ms * (len(processes_ms) - 1)


def process_starts_ms(count: int, mechanism: Mechanism, platform: Platform) -> list[float]:
    """When each process of a wrap's stage can run its functions: the rest of equation (4).

    The main process (the first) exists already; it starts its own functions after it has started
    the others one after another, each of which makes the next one wait for T_Block and is itself
    ready T_Startup later. The first fork may block longer, which the paper does not tell apart:
    on the published testbed it takes 5 ms and those after it 3. Workers of a pool wait already,
    so only the dispatch remains.
    """
    if mechanism == "pool":
        return [0.0, *[platform.pool_dispatch_ms] * (count - 1)]
    first_ms, block_ms = platform.process_first_block_ms, platform.process_block_ms
    forks = [j * block_ms + (first_ms if j else 0.0) for j in range(count)]
    return [forks[-1], *(forked + platform.process_startup_ms for forked in forks[:-1])]
