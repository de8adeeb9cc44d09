"""Heartbeats: when a server sends them, and what happens to a server that stops.

A server whose loops are blocked cannot end itself: code that holds the GIL keeps all of Python from
running. So it sends beats to the fork server, which counts missing beats. The fork server counts
its own waits instead of time. So a sandbox that was paused continues as if nothing had happened.
"""

from __future__ import annotations

from enum import Enum

#: The number of beats without a turn of the event loop after which the server is unhealthy.
_UNHEALTHY = 3
#: Seconds before a fork server is restarted again: each start imports all functions.
_RENEWAL_S = 60.0
#: The number of beats after which a server is killed that was told to end.
_ENDING = 5


class Heartbeat:
    """The state of a server's own two loops; a beat is due every `beat_s` seconds."""

    def __init__(self, beat_s: float) -> None:
        self._beat_s = beat_s
        self._turns = self._missed = 0
        self._due = self._renewal = 0.0

    @property
    def is_blocked(self) -> bool:
        """Whether the event loop is blocked, although the HTTP server runs."""
        return self._missed >= _UNHEALTHY

    def turned(self, now: float, turns: int, runs: bool) -> bool:
        """Record a turn of the HTTP server's loop; return whether a beat is due.

        `turns` counts the turns of the event loop, which need not turn before it `runs`.
        """
        if now < self._due:
            return False
        self._due = now + self._beat_s
        self._missed = 0 if turns != self._turns or not runs else self._missed + 1
        self._turns = turns
        return not self.is_blocked

    def may_restart_fork_server(self, now: float) -> bool:
        """Return whether a fork server that has ended is restarted now."""
        if now < self._renewal:
            return False
        self._renewal = now + _RENEWAL_S
        return True


class End(Enum):
    """How a server without heartbeats is ended."""

    TELL = 1
    KILL = 2


class MissedBeats:
    """The missed beats of a server, counted by its fork server."""

    def __init__(self) -> None:
        #: The maximum number of beats missed in a row; 0 for any number.
        self.most = 0
        self._missed = 0

    def beat(self, most: int) -> None:
        """Record a beat, which sets how many beats may be missed from now on."""
        self._missed, self.most = 0, most

    def miss(self) -> End | None:
        """Record a missed beat; return how to end the server now, if at all."""
        if not self.most:
            return None
        self._missed += 1
        return {0: End.TELL, _ENDING: End.KILL}.get(self._missed - self.most)
