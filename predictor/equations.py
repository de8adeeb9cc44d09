"""Chiron's equations (1) and (2): from wraps over stages to a workflow's latency.

Equations (3) and (4), of processes, belong to each mechanism: see `chiron.predictor.mechanisms`.
"""

from __future__ import annotations

from collections.abc import Sequence

from chiron.workflow.platform import Platform


def workflow_latency_ms(stages_ms: Sequence[float], request_ms: float) -> float:
    """Return the latency by equation (1): stages run one after another.

    `request_ms` is the cost of the request's own way to the first wrap and back, which the paper
    omits.
    """
    return request_ms + sum(stages_ms)


def call_ms(place: int, platform: Platform) -> float:
    """Return when the call of wrap `place`, from 0, arrives: equation (2)."""
    return place * platform.invoke_ms + platform.rpc_ms


def call_computing_ms(platform: Platform) -> float:
    """Return the part of T_RPC that keeps a core busy, on a node that gateway and wraps share.

    The cores finish one call's computing before the next call leaves, T_INV later: otherwise calls
    would be later the more there are. The paper's gateway has cores of its own.
    """
    return min(platform.rpc_ms, platform.invoke_ms * platform.cpus)
