"""The fate of a worker that an execution gives back: it waits for later executions, or ends."""

from __future__ import annotations

from enum import Enum


class Fate(Enum):
    """The fate of a worker that is given back."""

    KEPT = 1
    #: It has answered all its calls, and ends by itself.
    CLOSED = 2
    #: It may still run a task.
    KILLED = 3


def fate_of(
    is_sound: bool, executions: int, most_executions: float, idle: int, most_idle: int
) -> Fate:
    """Return the fate of a worker.

    Args:
        is_sound: whether it has answered all its calls.
        executions, most_executions: how many executions it has served, and after how many it is
            replaced.
        idle, most_idle: how many workers of its slot wait, and how many may.

    >>> fate_of(True, 1, 1000, idle=1, most_idle=2)
    <Fate.KEPT: 1>
    """
    if not is_sound:
        return Fate.KILLED
    return Fate.KEPT if executions < most_executions and idle < most_idle else Fate.CLOSED
