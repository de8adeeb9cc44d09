"""When a program that serves begins anew, in its process: it is worn, and nothing is in flight."""

from __future__ import annotations


class Renewal:
    """Whether the program is to begin anew, and since when.

    Args:
        drain_s: how long a request may take to arrive whole after that, in seconds.
    """

    def __init__(self, drain_s: float) -> None:
        self._drain_s = drain_s
        self._worn_since: float | None = None

    @property
    def is_due(self) -> bool:
        """Whether the program begins anew as soon as nothing is in flight."""
        return self._worn_since is not None

    def look(self, now: float, is_worn: bool) -> None:
        """Note whether the program is worn now: lost threads may have ended meanwhile."""
        if not is_worn:
            self._worn_since = None
        elif self._worn_since is None:
            self._worn_since = now

    def is_late(self, now: float) -> bool:
        """Whether a request that is not whole yet counts no more as in flight."""
        return self._worn_since is not None and now > self._worn_since + self._drain_s
