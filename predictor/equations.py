"""Chiron's equation (2): when the calls of a stage's wraps arrive.

Equations (3) and (4), of processes, belong to each mechanism: see `chiron.predictor.mechanisms`.
Equation (1) adds up stages: see `chiron.scheduler.pgp`.
"""

from __future__ import annotations

from chiron.workflow.platform import Platform


def call_ms(place: int, platform: Platform) -> float:
    """Return when the call of wrap `place`, from 0, arrives: equation (2)."""
    return place * platform.invoke_ms + platform.rpc_ms


def call_computing_ms(platform: Platform) -> float:
    """Return the part of T_RPC that keeps a core busy, on a node that gateway and wraps share.

    The cores finish one call's computing before the next call leaves, T_INV later: otherwise calls
    would be later the more there are. The paper's gateway has cores of its own.
    """
    return min(platform.rpc_ms, platform.invoke_ms * platform.cpus)
