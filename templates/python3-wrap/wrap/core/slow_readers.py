"""When what a slow reader of a stream is to get goes to disk, so that its writer goes on.

A writer waits for its slowest reader, so that no stream takes more memory than its buffers. That
alone could have tasks wait for each other in a circle: a reads what b writes and does not take what
c has for it, while b waits for c. In a graph without cycles every such circle has a writer in it
that waits for one reader while another one waits for that writer. So if a reader has taken nothing
for a moment, and another one of the same task has taken all, what the first is to get goes to disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

#: For how long a reader takes nothing before what it is to get may go to disk, in seconds.
_PATIENCE_S = 0.1
#: The same before a writer fails that has to wait although as much is on disk as may be.
_CIRCLE_S = 5.0
#: How often is looked whether another reader has taken all meanwhile, in seconds.
_STUCK_S = 0.02


class Reader(Protocol):
    """A reader of a task's outputs."""

    @property
    def held_up(self) -> bool:
        """Whether the writer has to wait for it."""

    @property
    def starves(self) -> bool:
        """Whether it has got all that there is for it."""

    @property
    def took(self) -> float:
        """When it took something last, in seconds of a clock."""


Each = TypeVar("Each", bound=Reader)


def look_again_s(waited_for: Iterable[Reader], now: float) -> float:
    """In how many seconds some of the readers that are waited for may be stuck."""
    first = min(each.took for each in waited_for) + _PATIENCE_S
    return first - now if first > now else _STUCK_S


def stuck(waited_for: Iterable[Each], readers: Iterable[Reader], now: float) -> list[Each]:
    """The readers of which the rest goes to disk, of those that are waited for.

    Args:
        readers: all readers of the same task.
    """
    slow = [each for each in waited_for if each.held_up and each.took + _PATIENCE_S <= now]
    return slow if slow and any(each.starves for each in readers) else []


def may_be_circle(reader: Reader, now: float) -> bool:
    """Whether a reader has taken nothing for so long that its writer fails if the disk is full."""
    return now > reader.took + _CIRCLE_S
