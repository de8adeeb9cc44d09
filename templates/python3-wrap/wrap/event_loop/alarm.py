"""One timer for many times, set for the earliest of them."""

from __future__ import annotations

import math
from collections.abc import Callable

from wrap.event_loop.loop import Timer, Timers


class Alarm:
    """Calls `action` at the earliest of the times that were set.

    The caller of a method holds a lock. `action` takes it too, calls `clear`, and checks what is
    due. A timer's callback stays in memory until its time, so many timers would keep more.
    """

    def __init__(self, timers: Timers, action: Callable[[], None]) -> None:
        self._timers = timers
        self._action = action
        self._when = math.inf
        self._timer: Timer | None = None

    def set_for(self, when: float) -> None:
        """Call `action` at `when`, in seconds of the monotonic clock, or at an earlier set time."""
        if when < self._when:
            self.clear()
            self._when = when
            self._timer = self._timers.call_at(when, self._action)

    def clear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._when, self._timer = math.inf, None
