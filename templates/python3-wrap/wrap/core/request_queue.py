"""Which HTTP requests are served now, and which wait: first come, first served."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Request = TypeVar("Request")

#: Requests that another wrap answers may be in hand at least: their threads only wait for it.
_FORWARDED = 64


def served_at_once(threads: int, forwards: bool) -> int:
    """How many requests may be served at once.

    Args:
        threads: how many the wrap serves itself.
        forwards: whether another wrap answers them.

    >>> served_at_once(8, forwards=False), served_at_once(8, forwards=True)
    (8, 64)
    >>> served_at_once(100, forwards=True)
    100
    """
    return max(threads, _FORWARDED) if forwards else threads


class RequestQueue(Generic[Request]):
    """Requests that wait until fewer than `limit` are served.

    Attributes:
        limit: how many requests may be served at once.
        active: how many requests are being served.
    """

    def __init__(self) -> None:
        self.limit = self.active = 0
        self._waiting = deque[Request]()

    def __len__(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    def add(self, request: Request) -> None:
        """A request has come."""
        self._waiting.append(request)

    def begin(self) -> Request | None:
        """The request to be served next, which is active until `end`; None if all have to wait."""
        if not self._waiting or self.active >= self.limit:
            return None
        self.active += 1
        return self._waiting.popleft()

    def end(self) -> None:
        """A request has been answered."""
        self.active -= 1

    def remove(self, request: Request) -> bool:
        """The client of a request has gone; whether the request was still waiting."""
        if request not in self._waiting:
            return False
        self._waiting.remove(request)
        return True
