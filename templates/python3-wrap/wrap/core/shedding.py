"""Which HTTP connections give way if all of them hold too much memory, or are too many.

The connection that has been silent for longest gives way first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

#: Connections that are accepted before the loop looks at all others again.
AT_ONCE = 64
#: How long a connection may be silent if many others want its place, in seconds.
MOMENT_S = 0.02
#: An answer is given up if the client takes nothing of it for so long, in seconds.
_STALLED_S = 30.0
#: The share of the bound that is freed while more is read.
_FREED = 8


class Connection(Protocol):
    """A connection of a client.

    Attributes:
        coming, leaving: bytes of a request that is not whole yet; bytes of answers that the client
            has not taken.
        is_owed: whether the client waits for an answer, or for the rest of one.
        last_activity: when bytes came or went last, in seconds of a clock.
    """

    @property
    def coming(self) -> int: ...
    @property
    def leaving(self) -> int: ...
    @property
    def is_owed(self) -> bool: ...
    @property
    def last_activity(self) -> float: ...


Each = TypeVar("Each", bound=Connection)


@dataclass(frozen=True)
class Bounds:
    """What all connections may be together."""

    #: Bytes that they may hold.
    size: int
    #: How many there may be.
    count: int
    #: Bytes that every connection may hold.
    least: int

    @property
    def while_reading(self) -> int:
        """Bytes that are left if they have held more, and more is read right now."""
        return self.size - self.size // _FREED

    def yielding(self, connections: Iterable[Each]) -> list[Each]:
        """The connections that give way, in this order, as long as all hold too much.

        A connection keeps its fair share, whatever the others do. Of those that send, the latest
        stays: one answer goes out, however large it is.
        """
        fair = max(self.size // self.count, self.least)
        large = [each for each in connections if each.coming + each.leaving > fair]
        large.sort(key=_last_activity)
        sending = [each for each in large if each.leaving > fair]
        return [each for each in large if each not in sending[-1:]]

    def places(self, connections: Collection[Each], now: float) -> list[Each | None]:
        """One item for each connection that may be accepted now, `AT_ONCE` at most.

        An item is the silent connection that gives way to the new one; None if there is room. The
        others wait in the kernel: each connection may stay for a moment.
        """
        room = max(0, self.count - len(connections))
        if room >= AT_ONCE:
            return [None] * AT_ONCE
        before = now - MOMENT_S
        silent = [each for each in connections if not each.is_owed and each.last_activity < before]
        silent.sort(key=_last_activity)
        return [*[None] * room, *silent][:AT_ONCE]


def has_stalled(connection: Connection, now: float) -> bool:
    """Whether a client has taken nothing of its answer for so long that it is given up."""
    return connection.leaving > 0 and connection.last_activity < now - _STALLED_S


def _last_activity(connection: Connection) -> float:
    return connection.last_activity
