"""Holds tasks back where outputs leave for other wraps more slowly than tasks make them.

References
----------
DataFlower (ASPLOS'23), section 4.2, equation (1): Pressure = alpha · Size / B_w - T_FLU. Where
that is above 0, what sends cannot keep up with a function, which is blocked for that time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from wrap.event_loop.loop import Timer

#: What leaves within so many seconds is not waited for, so that there is always something to send.
_SLACK_S = 0.02
#: How much of an average stays in it with each new value.
_KEPT = 0.9
#: Where nothing arrives for so many seconds longer than twice the time that it should take, nothing
#: goes on.
_STUCK_S = 1.0
#: Longest and shortest time until the equation is looked at again, in seconds.
_LONGEST_S, _SHORTEST_S = 0.1, 0.005


class _Times(Protocol):
    def call_at(self, when: float, action: Callable[[], None]) -> Timer: ...


class _Held(NamedTuple):
    """Tasks that are held back, what begins them, and whether that is still of use."""

    tasks: int
    begin: Callable[[], None]
    is_over: Callable[[], bool]


@dataclass
class _Way:
    """Where bytes go: since when nothing has arrived there, and how many are on their way."""

    moved: float
    bytes: int = 0


class _Ratio:
    """One sum by another one, in which what was added last counts most."""

    def __init__(self) -> None:
        self._above = self._below = 0.0

    def add(self, above: float, below: float = 1.0) -> None:
        self._above = _KEPT * self._above + above
        self._below = _KEPT * self._below + below

    @property
    def value(self) -> float:
        return self._above / self._below if self._below else 0.0


class Pressure:
    """Which tasks may begin, by what those before gave and have not sent yet.

    All of equation (1) is measured. Size is what is on its way, and what the tasks that have just
    begun will give, by the average. alpha / B_w are the seconds for each byte, of those in which
    anything was on its way, until the other side has said that it has it. T_FLU is for how long
    tasks run that give something large. What goes where nothing arrives any more does not count:
    tasks whose outputs go elsewhere are not to wait for that. Any thread may call its methods.

    Parameters
    ----------
    times
        What calls at a time of the clock.
    clock
        Seconds.

    Attributes
    ----------
    matters
        Whether tasks have given anything large.
    """

    def __init__(self, times: _Times, clock: Callable[[], float] = time.monotonic) -> None:
        self._times = times
        self._clock = clock
        self._lock = threading.Lock()
        self.matters = False
        #: What is on its way, by where it goes.
        self._ways: dict[object, _Way] = {}
        self._changed = 0.0
        self._s_per_byte, self._bytes_each, self._computing_s = _Ratio(), _Ratio(), _Ratio()
        #: When those tasks have begun that are about to give something.
        self._begun = deque[float]()
        self._held = deque[_Held]()
        self._held_since, self._held_s = 0.0, 0.0
        self._looks = False

    @property
    def leaving(self) -> int:
        """Bytes on their way to other wraps."""
        return sum(way.bytes for way in list(self._ways.values()))

    @property
    def held(self) -> int:
        """How many tasks are held back."""
        return sum(each.tasks for each in list(self._held))

    @property
    def held_s(self) -> float:
        """For how many seconds so far any was."""
        with self._lock:
            return self._held_s + (self._clock() - self._held_since if self._held else 0.0)

    def lets(self, tasks: int, begin: Callable[[], None], is_over: Callable[[], bool]) -> bool:
        """Whether so many tasks may begin now; if not, the loop calls `begin` when they may."""
        with self._lock:
            now = self._clock()
            if not self._held and self._seconds(now) <= 0:
                self._begun.extend([now] * tasks)
                return True
            if not self._held:
                self._held_since = now
            self._held.append(_Held(tasks, begin, is_over))
            self._look_later(now)
            return False

    def gave(self, size: int, seconds: float) -> None:
        """A task that ran for so many seconds gave so many bytes for other wraps."""
        with self._lock:
            self.matters = True
            self._bytes_each.add(size)
            self._computing_s.add(seconds)
            if self._begun:
                self._begun.popleft()

    def leaves(self, to: object, size: int) -> None:
        """So many bytes are on their way to a place now."""
        if not size:
            return
        with self._lock:
            self._ways.setdefault(to, _Way(self._clock())).bytes += size

    def left(self, to: object, size: int) -> None:
        """So many of them are there, or lost."""
        if not size:
            return
        with self._lock:
            now, way = self._clock(), self._ways[to]
            self._s_per_byte.add(now - max(self._changed, way.moved), size)
            self._changed = way.moved = now
            way.bytes -= size
            if not way.bytes:
                del self._ways[to]
            self._look(now)

    def _seconds(self, now: float) -> float:
        """What the equation comes to, for one more task."""
        computing_s = self._computing_s.value + _SLACK_S
        while self._begun and self._begun[0] + computing_s < now:  # it waits for something else
            self._begun.popleft()
        each_s = self._bytes_each.value * self._s_per_byte.value
        sending_s = len(self._begun) * each_s
        for way in self._ways.values():
            its_s = way.bytes * self._s_per_byte.value
            if now < way.moved + _STUCK_S + 2 * its_s:
                sending_s += its_s
        if self._ways:  # of one of them a part may have left
            last = max(self._changed, min(way.moved for way in self._ways.values()))
            sending_s -= min(now - last, each_s)
        return sending_s - computing_s

    def _look(self, now: float) -> None:
        """Have those begin that may."""
        while self._held and self._seconds(now) <= 0:
            held = self._held.popleft()
            if not self._held:
                self._held_s += now - self._held_since
            if not held.is_over():
                self._begun.extend([now] * held.tasks)
                self._times.call_at(now, held.begin)
        if self._held:
            self._look_later(now)

    def _look_later(self, now: float) -> None:
        """Look again when enough may have left, whether that is told or not."""
        if not self._looks:
            self._looks = True
            seconds = min(_LONGEST_S, max(_SHORTEST_S, self._seconds(now)))
            self._times.call_at(now + seconds, self._look_now)

    def _look_now(self) -> None:
        with self._lock:
            self._looks = False
            self._look(self._clock())
