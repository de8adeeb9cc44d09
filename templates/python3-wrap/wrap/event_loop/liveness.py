"""Ends a server that would hang: where an essential thread ends, or its loops stand still.

A thread that the server cannot work without ends the process when it raises. Loops that stand still
cannot do so themselves: code that holds the GIL keeps all of Python from running. So the server
sends beats to the fork server, which ends it when they stop. The fork server counts its own waits
for a beat, and no time: a sandbox that was paused goes on as if nothing had happened.

A beat stops for no longer than a request may last, as long as handlers hold the GIL no longer.
Then every request that was in hand before is past its deadline.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import NoReturn, Protocol

#: Seconds from one beat to the next.
BEAT_S = 1.0
#: The server ends at this signal, whatever holds the GIL, with the traceback of each thread.
END_SIGNAL = signal.SIGRTMAX - 3
#: Beats in which the loop did not turn, until health says so.
_MOST_MISSED = 3
#: Seconds until a fork server that has ended again is started again: each start imports all
#: functions.
_RENEWAL_S = 60.0
_leave = os._exit  # `wrap.functions.exit_guard` replaces it for handlers


def essential(target: Callable[[], None], name: str) -> threading.Thread:
    """A started thread that runs `target`; the process ends if `target` raises."""

    def run() -> None:
        try:
            target()
        except BaseException:
            _end(name)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def _end(name: str) -> NoReturn:
    try:
        traceback.print_exc()
        print(f"the thread {name} has ended, so the server ends", file=sys.stderr)
        sys.stderr.flush()
    finally:  # a handler may have put anything there
        _leave(1)


def end_at_signal() -> None:
    """Have this process end at `END_SIGNAL`, also where it is the first one of its sandbox.

    The first process of a sandbox ignores signals that it does not handle, and a handler in Python
    needs the GIL. So the C library's ``_exit`` is the handler, behind the one of faulthandler.
    """
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    libc.signal(END_SIGNAL, ctypes.cast(libc._exit, ctypes.c_void_p))
    faulthandler.register(END_SIGNAL, file=sys.stderr, all_threads=True, chain=True)


class Turning(Protocol):
    """A loop."""

    @property
    def turns(self) -> int:
        """How often it has turned."""

    @property
    def runs(self) -> bool:
        """Whether it has begun."""


class Pulse:
    """Beats as long as the server's two loops turn.

    Parameters
    ----------
    loop
        The event loop. That the HTTP server turns is told by `turned`.
    beat
        Tells the fork server within how many seconds the next beat comes. If there is no fork
        server, it returns what starts another one.
    limit_s
        Seconds after which a server whose loops stand still is to end.
    start
        Has a thread do something.
    """

    def __init__(
        self,
        loop: Turning,
        beat: Callable[[float], Callable[[], None] | None],
        limit_s: float,
        start: Callable[[Callable[[], None]], object],
    ) -> None:
        self._loop = loop
        self._beat = beat
        self._limit_s = limit_s
        self._start = start
        self._seen = self._missed = 0
        self._due = self._renewal = 0.0

    @property
    def stands_still(self) -> bool:
        """Whether the event loop does not turn, although the HTTP server does."""
        return self._missed >= _MOST_MISSED

    def turned(self) -> None:
        """Note that the HTTP server's loop has turned; called at least once a beat."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + BEAT_S
        turns = self._loop.turns
        self._missed = 0 if turns != self._seen or not self._loop.runs else self._missed + 1
        self._seen = turns
        if self.stands_still:
            return
        renew = self._beat(self._limit_s)
        if renew is not None and now >= self._renewal:
            self._renewal = now + _RENEWAL_S
            with contextlib.suppress(RuntimeError):  # no thread can be had
                self._start(renew)

    def stop(self) -> None:
        """Have the fork server await no more beats: the server ends once nothing is in hand."""
        self._beat(0.0)
