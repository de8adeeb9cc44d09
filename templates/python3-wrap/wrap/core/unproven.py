"""Which connections stay of those that have not proved yet that they may connect."""

from __future__ import annotations

from typing import Generic, TypeVar

Caller = TypeVar("Caller")


class Unproven(Generic[Caller]):
    """A bounded number of callers: where there are too many, the oldest gives way.

    So that strangers cannot crowd out a caller that is about to prove itself, each may stay for a
    moment. A new caller has to wait until the oldest one's moment is over.

    Args:
        most: how many callers may be here.
        moment_s: how long each may stay at least, in seconds.
        longest_s: how long each may stay at most, in seconds.
    """

    def __init__(self, most: int, moment_s: float, longest_s: float) -> None:
        self._most = most
        self._moment_s = moment_s
        self._longest_s = longest_s
        #: When each came, the oldest first.
        self._came: dict[Caller, float] = {}

    def room_at(self) -> float:
        """The time from which one more may come."""
        if len(self._came) < self._most:
            return 0.0
        return self._oldest_came() + self._moment_s

    def add(self, caller: Caller, now: float) -> Caller | None:
        """One more has come: the caller that has to give way to it, if one has to."""
        oldest = next(iter(self._came)) if len(self._came) >= self._most else None
        if oldest is not None:
            del self._came[oldest]
        self._came[caller] = now
        return oldest

    def remove(self, caller: Caller) -> None:
        """A caller has proved itself, or was refused."""
        self._came.pop(caller, None)

    def late(self, now: float) -> list[Caller]:
        """Those that have been here for too long."""
        return [each for each, came in self._came.items() if came + self._longest_s <= now]

    def late_at(self) -> float | None:
        """When the oldest has been here for too long; None where there is none."""
        return self._oldest_came() + self._longest_s if self._came else None

    def all(self) -> list[Caller]:
        """All that are here."""
        return list(self._came)

    def _oldest_came(self) -> float:
        return next(iter(self._came.values()))
