"""Chiron's equations (1) and (2): from wraps over stages to a workflow's latency.

Those of processes, (3) and (4), are each mechanism's own: see `chiron.predictor.mechanisms`.
"""

from __future__ import annotations

from collections.abc import Sequence

from chiron.workflow.platform import Platform


def workflow_latency_ms(stages_ms: Sequence[float], request_ms: float) -> float:
    """Equation (1): stages run one after another.

    `request_ms` is what the request itself costs on its way to the first wrap and back, which
    the paper leaves out.
    """
    return request_ms + sum(stages_ms)


def call_ms(place: int, platform: Platform) -> float:
    """Equation (2) for one wrap: that at `place`, from 0, leaves so many T_INV late; T_RPC."""
    return place * platform.invoke_ms + platform.rpc_ms


def call_computing_ms(platform: Platform) -> float:
    """How much of T_RPC keeps a core busy, of a node that gateway and wraps share.

    The cores compute what one call takes before the next one leaves, T_INV later: where that was
    not so, calls would be the later the more of them there are. The paper's gateway has cores of
    its own.
    """
    return min(platform.rpc_ms, platform.invoke_ms * platform.cpus)
