"""Applies `wrap.core.backpressure` to tasks, and has the loop begin those held back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from wrap.core import backpressure
from wrap.event_loop.loop import Timers


class _Held(NamedTuple):
    """The callback that begins held tasks, and whether it is obsolete."""

    begin: Callable[[], None]
    is_over: Callable[[], bool]


class Pressure:
    """A `wrap.core.backpressure.Pressure` with a clock. Any thread may call its methods."""

    def __init__(self, times: Timers, clock: Callable[[], float] = time.monotonic) -> None:
        self._times = times
        self._clock = clock
        self._lock = threading.Lock()
        self.rules = backpressure.Pressure[_Held]()
        #: Whether the loop will check again.
        self._looks = False

    @property
    def held_s(self) -> float:
        with self._lock:
            return self.rules.held_s(self._clock())

    def may_begin(self, tasks: int, begin: Callable[[], None], is_over: Callable[[], bool]) -> bool:
        """Return whether `tasks` tasks may begin now; if not, the loop calls `begin` later."""
        with self._lock:
            now = self._clock()
            may_begin = self.rules.may_begin(now, tasks, _Held(begin, is_over))
            if not may_begin:
                self._look_later(now)
            return may_begin

    def record_output(self, size: int, seconds: float) -> None:
        with self._lock:
            self.rules.record_output(size, seconds)

    def record_sending(self, to: object, size: int) -> None:
        if size:
            with self._lock:
                self.rules.record_sending(self._clock(), to, size)

    def record_sent(self, to: object, size: int) -> None:
        if size:
            with self._lock:
                now = self._clock()
                self.rules.record_sent(now, to, size)
                self._begin_held(now)

    def _begin_held(self, now: float) -> None:
        while (following := self.rules.next(now)) is not None:
            held, tasks = following
            if not held.is_over():
                self.rules.begin(now, tasks)
                self._times.call_at(now, held.begin)
        self._look_later(now)

    def _look_later(self, now: float) -> None:
        seconds = None if self._looks else self.rules.next_check_s(now)
        if seconds is not None:
            self._looks = True
            self._times.call_at(now + seconds, self._look)

    def _look(self) -> None:
        with self._lock:
            self._looks = False
            self._begin_held(self._clock())
