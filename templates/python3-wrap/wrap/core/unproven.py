"""Which unauthenticated connections stay."""

from __future__ import annotations

from typing import Generic, TypeVar

Caller = TypeVar("Caller")


class UnauthenticatedCallers(Generic[Caller]):
    """A bounded number of callers that have not proved that they may connect; the oldest gives way.

    Each caller may stay for a moment, so that strangers cannot crowd out an honest caller. A new
    caller waits until the oldest caller's moment is over.

    Args:
        most: the maximum number of callers.
        moment_s: how long each may stay at least, in seconds.
        longest_s: how long each may stay at most, in seconds.
    """

    def __init__(self, most: int, moment_s: float, longest_s: float) -> None:
        self._most = most
        self._moment_s = moment_s
        self._longest_s = longest_s
        #: Caller -> when it came, the oldest first.
        self._came: dict[Caller, float] = {}

    def free_from(self) -> float:
        """Return the time from which another caller may come."""
        if len(self._came) < self._most:
            return 0.0
        return self._oldest_came() + self._moment_s

    def add(self, caller: Caller, now: float) -> Caller | None:
        """Add a caller; return the caller that has to give way, if any."""
        oldest = next(iter(self._came)) if len(self._came) >= self._most else None
        if oldest is not None:
            del self._came[oldest]
        self._came[caller] = now
        return oldest

    def remove(self, caller: Caller) -> None:
        """Remove a caller that has proved itself or was refused."""
        self._came.pop(caller, None)

    def expired(self, now: float) -> list[Caller]:
        return [each for each, came in self._came.items() if came + self._longest_s <= now]

    def next_expiry(self) -> float | None:
        """Return when the oldest caller has been here for too long; None if there is none."""
        return self._oldest_came() + self._longest_s if self._came else None

    def all(self) -> list[Caller]:
        return list(self._came)

    def _oldest_came(self) -> float:
        return next(iter(self._came.values()))
