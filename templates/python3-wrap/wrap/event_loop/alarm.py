"""One timer for many times: it is set for the earliest."""

from __future__ import annotations

import math
from collections.abc import Callable

from wrap.event_loop.loop import Timer, Timers


class Alarm:
    """Calls `action` at the earliest of the times that it is set for.

    Whoever calls a method has a lock, which `action` takes before it calls `clear` and looks at
    what is due. What a timer calls stays in memory until then, so a timer each would keep more.
    """

    def __init__(self, timers: Timers, action: Callable[[], None]) -> None:
        self._timers = timers
        self._action = action
        self._when = math.inf
        self._timer: Timer | None = None

    def set_for(self, when: float) -> None:
        """Call `action` then, in seconds of the monotonic clock, unless it is called before."""
        if when < self._when:
            self.clear()
            self._when = when
            self._timer = self._timers.call_at(when, self._action)

    def clear(self) -> None:
        """Call nothing at the times that it was set for."""
        if self._timer is not None:
            self._timer.cancel()
        self._when, self._timer = math.inf, None
