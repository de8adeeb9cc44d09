"""Which HTTP connections are closed if all hold too much memory, or are too many.

The connection that has been silent for longest is closed first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol, TypeVar

#: How many connections are accepted before the loop checks all others again.
AT_ONCE = 64
#: How long a silent connection keeps its place if new connections wait, in seconds.
MOMENT_S = 0.02
#: How long a client may read nothing of its answer before the answer is given up, in seconds.
_STALLED_S = 30.0
#: What to do about a request that is too large.
SEND_LESS = "send less, or put a payload of that size into payloads/ and deploy again"
#: The fraction (one in so many) of the bound that is freed while more is read.
_FREED = 8


class Connection(Protocol):
    """A connection of a client.

    Attributes:
        coming, leaving: bytes of an incomplete request; bytes of answers that the client has not
            read.
        is_owed: whether the client waits for an answer, or for the rest of one.
        last_activity: when bytes were last read or sent, in seconds of a clock.
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
    """The limits of all connections together."""

    #: The bytes that they may hold.
    size: int
    #: Their maximum number.
    count: int
    #: The bytes that every connection may hold.
    least: int

    @property
    def while_reading(self) -> int:
        """The bytes to keep after the bound was exceeded while more is read."""
        return self.size - self.size // _FREED

    def yielding(self, connections: Iterable[Each]) -> list[Each]:
        """Return the connections to close, in this order, as long as all hold too much.

        A connection keeps its fair share, whatever the others hold. Of those that send, the latest
        stays: so one answer is sent, however large it is.
        """
        fair = max(self.size // self.count, self.least)
        large = [each for each in connections if each.coming + each.leaving > fair]
        large.sort(key=attrgetter("last_activity"))
        sending = [each for each in large if each.leaving > fair]
        return [each for each in large if each not in sending[-1:]]

    def places(self, connections: Collection[Each], now: float) -> list[Each | None]:
        """Return one item for each connection that may be accepted now, at most `AT_ONCE`.

        An item is the silent connection to close for the new connection; None if there is room.
        Other new connections wait in the kernel, as each connection may stay for a moment.
        """
        room = max(0, self.count - len(connections))
        if room >= AT_ONCE:
            return [None] * AT_ONCE
        before = now - MOMENT_S
        silent = [each for each in connections if not each.is_owed and each.last_activity < before]
        silent.sort(key=attrgetter("last_activity"))
        return [*[None] * room, *silent][:AT_ONCE]


def has_stalled(connection: Connection, now: float) -> bool:
    """Return whether a client has read nothing of its answer for too long."""
    return connection.leaving > 0 and connection.last_activity < now - _STALLED_S
