"""Counts connections that were refused, and logs them at a bounded rate."""

from __future__ import annotations

import time
from collections.abc import Callable

from wrap.event_loop.loop import Timers
from wrap.observe.metrics import Counter

#: Seconds in which at most one line is logged.
_PAUSE_S = 1.0


class Refusals:
    """The refusals of one port; only the loop may call its methods."""

    def __init__(self, times: Timers, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = Counter(
            "chiron_direct_refusals_total",
            "Direct connections that were refused, or broken off for what came over them.",
        )
        self._times = times
        self._clock = clock
        self._refused = self._logged = 0
        self._pauses = False
        self._why: Exception | None = None

    def add(self, why: Exception) -> None:
        """Count a refusal; log it now, or together with others when the pause is over."""
        self.count.add()
        self._refused += 1
        self._why = why
        if not self._pauses:
            self._log()

    def _log(self) -> None:
        more, self._logged = self._refused - self._logged, self._refused
        self._pauses = more > 0
        if not more:
            return
        self._times.call_at(self._clock() + _PAUSE_S, self._log)
        what = "a direct connection was" if more == 1 else f"{more} direct connections were"
        last = "" if more == 1 else " of the last"
        print(f"{what} refused, the {self._refused}. so far{last}: {self._why}")
