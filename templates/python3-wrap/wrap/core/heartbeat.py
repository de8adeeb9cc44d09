"""Signs of life: when a server gives them, and what happens to a server that gives none.

A server whose loops stand still cannot end itself, as code that holds the GIL keeps all of Python
from running. So it sends beats to the fork server, which counts the beats that do not come. It
counts its own waits and no time: a sandbox that was paused goes on as if nothing had happened.
"""

from __future__ import annotations

from enum import Enum

#: Beats in which the event loop did not turn, until the server counts as unhealthy.
_UNHEALTHY = 3
#: Seconds until a fork server that has ended again is started again: each start imports all
#: functions.
_RENEWAL_S = 60.0
#: Beats after which a server is killed that was told to end.
_ENDING = 5


class Heartbeat:
    """What a server sees of its own two loops.

    Args:
        beat_s: seconds from one beat to the next.
    """

    def __init__(self, beat_s: float) -> None:
        self._beat_s = beat_s
        self._turns = self._missed = 0
        self._due = self._renewal = 0.0

    @property
    def stands_still(self) -> bool:
        """Whether the event loop does not turn, although the HTTP server does."""
        return self._missed >= _UNHEALTHY

    def turned(self, now: float, turns: int, runs: bool) -> bool:
        """The HTTP server's loop has turned, and the event loop so often; whether a beat is due.

        The event loop need not turn before it `runs`.
        """
        if now < self._due:
            return False
        self._due = now + self._beat_s
        self._missed = 0 if turns != self._turns or not runs else self._missed + 1
        self._turns = turns
        return not self.stands_still

    def renews(self, now: float) -> bool:
        """The fork server has ended; whether it is started again now."""
        if now < self._renewal:
            return False
        self._renewal = now + _RENEWAL_S
        return True


class End(Enum):
    """How a server ends that has given no sign of life."""

    TELL = 1
    KILL = 2


class MissedBeats:
    """What a fork server has seen of its server."""

    def __init__(self) -> None:
        #: How many beats may be missed in a row; 0 for any number.
        self.most = 0
        self._missed = 0

    def beat(self, most: int) -> None:
        """A beat has come, which says how many may be missed from now on."""
        self._missed, self.most = 0, most

    def miss(self) -> End | None:
        """No beat came in its time; how the server is to be ended now, if it is."""
        if not self.most:
            return None
        self._missed += 1
        return {0: End.TELL, _ENDING: End.KILL}.get(self._missed - self.most)
