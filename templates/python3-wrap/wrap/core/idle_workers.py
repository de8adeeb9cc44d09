"""Which workers wait for later executions, and which end, if an execution gives them back."""

from __future__ import annotations

from enum import Enum


class Fate(Enum):
    """What becomes of a worker that is given back."""

    KEPT = 1
    #: It has answered all that it was asked, and ends by itself.
    CLOSED = 2
    #: It may still run something.
    KILLED = 3


def fate_of(
    is_sound: bool, executions: int, most_executions: float, idle: int, most_idle: int
) -> Fate:
    """What becomes of a worker.

    Args:
        is_sound: whether it has answered all that it was asked.
        executions, most_executions: how many executions it has served, and after how many it makes
            way for another worker.
        idle, most_idle: how many workers of its slot wait, and how many may.

    >>> fate_of(True, 1, 1000, idle=1, most_idle=2)
    <Fate.KEPT: 1>
    """
    if not is_sound:
        return Fate.KILLED
    return Fate.KEPT if executions < most_executions and idle < most_idle else Fate.CLOSED
