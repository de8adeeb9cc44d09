"""When a server program restarts within its process: if it is worn, and nothing is in flight."""

from __future__ import annotations


class Renewal:
    """Whether the program is to restart, and since when.

    Args:
        drain_s: how long an incomplete request may then take to arrive, in seconds.
    """

    def __init__(self, drain_s: float) -> None:
        self._drain_s = drain_s
        self._worn_since: float | None = None

    @property
    def is_due(self) -> bool:
        """Whether the program restarts as soon as nothing is in flight."""
        return self._worn_since is not None

    def look(self, now: float, is_worn: bool) -> None:
        """Record whether the program is worn now: lost threads may have ended meanwhile."""
        if not is_worn:
            self._worn_since = None
        elif self._worn_since is None:
            self._worn_since = now

    def is_late(self, now: float) -> bool:
        """Return whether an incomplete request no longer counts as in flight."""
        return self._worn_since is not None and now > self._worn_since + self._drain_s
