"""The queue of HTTP requests: first come, first served."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Request = TypeVar("Request")

#: The minimum limit of requests that another wrap answers: their threads only wait for it.
_FORWARDED = 64


def served_at_once(threads: int, forwards: bool) -> int:
    """Return how many requests may be served at once.

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
        """Return how many requests wait."""
        return len(self._waiting)

    def add(self, request: Request) -> None:
        """Queue a request."""
        self._waiting.append(request)

    def begin(self) -> Request | None:
        """Return the next request, which is active until `end`; None if all have to wait."""
        if not self._waiting or self.active >= self.limit:
            return None
        self.active += 1
        return self._waiting.popleft()

    def end(self) -> None:
        """Record that a request has been answered."""
        self.active -= 1

    def remove(self, request: Request) -> bool:
        """Remove a request whose client has gone; return whether it was still waiting."""
        if request not in self._waiting:
            return False
        self._waiting.remove(request)
        return True
