"""Chiron's equations (1)-(4): from processes over wraps and stages to a workflow's latency."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from workflow.plan import Mechanism
from workflow.platform import Platform


def workflow_latency_ms(stages_ms: Sequence[float], request_ms: float) -> float:
    """Equation (1): stages run one after another.

    `request_ms` is what the request itself costs on its way to the first wrap and back, which
    the paper leaves out.
    """
    return request_ms + sum(stages_ms)


def calls_ms(count: int, platform: Platform, *, local: bool) -> list[float]:
    """Equation (2): what calling each of a stage's `count` wraps costs.

    Wrap k, counted from 1, leaves (k-1) T_INV late and pays T_RPC. The first one calls the others
    and is not called where it is `local`: the wrap that has the request takes part in the stage,
    and the client does not call them all. It begins itself when the others have been called, for
    which the paper has it not wait.
    """
    calls = [place * platform.invoke_ms + platform.rpc_ms for place in range(count)]
    return [(count - 1) * platform.send_ms, *calls[1:]] if local else calls


def call_computing_ms(platform: Platform) -> float:
    """How much of T_RPC keeps a core busy, of a node that gateway and wraps share.

    The cores compute what one call takes before the next one leaves, T_INV later: where that was
    not so, calls would be the later the more of them there are. The paper's gateway has cores of
    its own.
    """
    return min(platform.rpc_ms, platform.invoke_ms * platform.cpus)


def gathering_ms(count: int, mechanism: Mechanism, platform: Platform) -> float:
    """Equation (3): gathering the results of all of `count` processes but the first.

    Where they were forked the first result takes longer, which the paper does not tell apart.
    """
    if count < 2:
        return 0.0
    forked_ms = platform.process_gather_ms if mechanism == "fork" else 0.0
    return forked_ms + platform.ipc_ms * (count - 1)


def process_starts_ms(count: int, mechanism: Mechanism, platform: Platform) -> list[float]:
    """When each process of a wrap's stage can run its functions: the rest of equation (4).

    The main process (the first) exists already; it starts its own functions after it has started
    the others one after another, each of which makes the next one wait for T_Block and is itself
    ready T_Startup later. The first fork may block longer, which the paper does not tell apart:
    on the published testbed it takes 5 ms and those after it 3. Where somebody else forks for the
    main process, it does not wait for all of that. Workers of a pool wait already, so only the
    dispatch remains. What a process computes meanwhile, and who forks it, is not part of its start:
    see `process_computing_ms` and `process_forking_ms`.
    """
    if count < 2:
        return [0.0]
    if mechanism == "pool":
        return [platform.pool_dispatch_ms] * count
    first_ms, block_ms = platform.process_first_block_ms, platform.process_block_ms
    forks = [j * block_ms + (first_ms if j else 0.0) for j in range(count)]
    main_ms = forks[-1] if platform.main_wait_ms is None else platform.main_wait_ms
    waits_ms = platform.process_startup_ms - platform.process_compute_ms
    if any(process_forking_ms(count, mechanism, platform)):
        return [main_ms, *[waits_ms] * (count - 1)]
    return [main_ms, *(forked + waits_ms for forked in forks[:-1])]


def process_forking_ms(count: int, mechanism: Mechanism, platform: Platform) -> list[float]:
    """What forking each process of a wrap's stage computes: T_Block of equation (4).

    Who forks does so one after another, and shares the cores with the processes that it has forked
    already. It does nothing but compute where all that starting a process computes, which is
    `Platform.process_compute_ms`, is at least that; else it takes its time whoever computes.
    """
    first_ms, block_ms = platform.process_first_block_ms, platform.process_block_ms
    if mechanism == "pool" or platform.process_compute_ms < first_ms + block_ms:
        return [0.0] * count
    return [0.0, first_ms + block_ms, *[block_ms] * (count - 2)][:count]


def process_computing_ms(count: int, mechanism: Mechanism, platform: Platform) -> list[float]:
    """What each process of a wrap's stage computes itself before it can run its functions."""
    compute_ms = platform.process_compute_ms if mechanism == "fork" else 0.0
    forking = process_forking_ms(count, mechanism, platform)
    return [0.0, *(compute_ms - forked_ms for forked_ms in forking[1:])]


def process_delays_ms(count: int, mechanism: Mechanism, platform: Platform) -> list[float]:
    """When each process of a wrap's stage can run its functions where each has its own core."""
    starts = process_starts_ms(count, mechanism, platform)
    forked = accumulate(process_forking_ms(count, mechanism, platform))
    computing = process_computing_ms(count, mechanism, platform)
    return [sum(each) for each in zip(starts, forked, computing, strict=True)]
