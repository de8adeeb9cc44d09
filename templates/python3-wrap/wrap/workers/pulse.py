"""Tells the fork server that the server's loops turn; the rules are in `wrap.core.heartbeat`.

As long as no handler holds the GIL for longer than a request may last, beats pause no longer
either. After such a pause, every request that was pending before is past its deadline.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from wrap.core.heartbeat import Heartbeat
from wrap.event_loop.liveness import BEAT_S
from wrap.event_loop.loop import Loop


class Pulse:
    """Sends beats as long as the server's two loops turn.

    Args:
        loop: the event loop. `turned` reports the turns of the HTTP server.
        beat: tells the fork server within how many seconds the next beat comes. If there is no fork
            server, it returns a function that starts another.
        limit_s: seconds after which to end a server whose loops stand still.
        start: calls a function in a thread.
    """

    def __init__(
        self,
        loop: Loop,
        beat: Callable[[float], Callable[[], None] | None],
        limit_s: float,
        start: Callable[[Callable[[], None]], object],
    ) -> None:
        self._loop = loop
        self._beat = beat
        self._limit_s = limit_s
        self._start = start
        self._heartbeat = Heartbeat(BEAT_S)

    @property
    def is_blocked(self) -> bool:
        return self._heartbeat.is_blocked

    def turned(self) -> None:
        """Note that the HTTP server's loop has turned; called at least once a beat."""
        now = time.monotonic()
        if self._heartbeat.turned(now, self._loop.turns, self._loop.runs):
            renew = self._beat(self._limit_s)
            if renew is not None and self._heartbeat.may_restart_fork_server(now):
                with contextlib.suppress(RuntimeError):  # no thread can be started
                    self._start(renew)

    def stop(self) -> None:
        """Make the fork server expect no more beats: the server ends once no work is pending."""
        self._beat(0.0)
