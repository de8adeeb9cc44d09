"""When the data for a slow reader of a stream goes to disk, so that its writer continues.

A writer waits for its slowest reader, so that no stream takes more memory than its buffers. That
alone can deadlock: a reads from b and does not read what c has for it, while b waits for c. Every
such circle in a graph without cycles has a certain writer. The writer waits for one reader, while
another reader waits for the writer. So if a reader has read nothing for a moment, its data goes to
disk, provided that another reader of the same task has read everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

#: How long a reader reads nothing before its data may go to disk, in seconds.
_PATIENCE_S = 0.1
#: The same before a writer fails because the disk is full too, in seconds.
_CIRCLE_S = 5.0
#: The interval of checks whether another reader has read everything, in seconds.
_STUCK_S = 0.02


class Reader(Protocol):
    """A reader of a task's outputs."""

    @property
    def held_up(self) -> bool:
        """Whether the writer has to wait for it."""

    @property
    def has_read_all(self) -> bool:
        """Whether it has read everything there is."""

    @property
    def last_read(self) -> float:
        """When it last read something, in seconds of a clock."""


Each = TypeVar("Each", bound=Reader)


def next_check_s(waited_for: Iterable[Reader], now: float) -> float:
    """Return the seconds until some of the readers that block the writer may be stuck."""
    first = min(each.last_read for each in waited_for) + _PATIENCE_S
    return first - now if first > now else _STUCK_S


def stuck(waited_for: Iterable[Each], readers: Iterable[Reader], now: float) -> list[Each]:
    """Return those of the readers that block the writer whose data goes to disk.

    Args:
        readers: all readers of the same task.
    """
    slow = [each for each in waited_for if each.held_up and each.last_read + _PATIENCE_S <= now]
    return slow if slow and any(each.has_read_all for each in readers) else []


def may_be_circle(reader: Reader, now: float) -> bool:
    """Return whether a reader has read nothing for so long that its writer fails on a full disk."""
    return now > reader.last_read + _CIRCLE_S
