"""Backpressure: holds tasks back while their outputs are produced faster than they can be sent.

References
----------
DataFlower (ASPLOS'23), section 4.2, equation (1): Pressure = alpha · Size / B_w - T_FLU. If it is
above 0, the sender cannot keep up with a function. The function is blocked for that time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

#: Seconds of sending that do not hold tasks back, so that there is always something to send.
_SLACK_S = 0.02
#: The weight of an old average when a new value arrives.
_KEPT = 0.9
#: A destination is stuck if nothing arrives there for twice the expected time and this many
#: seconds.
_STUCK_S = 1.0
#: The longest and the shortest time until the equation is evaluated again, in seconds.
_LONGEST_S, _SHORTEST_S = 0.1, 0.005

#: Represents tasks that are held back together.
Held = TypeVar("Held")


@dataclass
class _Destination:
    """The time of the last arrival at a destination, and the bytes on their way to it."""

    moved: float
    bytes: int = 0


class _Ratio:
    """The quotient of two sums in which recent values count more."""

    def __init__(self) -> None:
        self._above = self._below = 0.0

    def add(self, above: float, below: float = 1.0) -> None:
        self._above = _KEPT * self._above + above
        self._below = _KEPT * self._below + below

    @property
    def value(self) -> float:
        return self._above / self._below if self._below else 0.0


class Pressure(Generic[Held]):
    """Decides which tasks may begin, from the outputs that have not been sent yet.

    All terms of equation (1) are measured. Size is the bytes on their way, and the average output
    of each task that has just begun. alpha / B_w is the time per byte until the receiver confirms
    it, while anything is on its way. T_FLU is the run time of tasks with large outputs. A stuck
    destination does not count: tasks whose outputs go elsewhere do not wait for it.
    """

    def __init__(self) -> None:
        #: Whether any task has had a large output.
        self.matters = False
        self._destinations: dict[object, _Destination] = {}
        self._changed = 0.0
        self._s_per_byte, self._bytes_each, self._computing_s = _Ratio(), _Ratio(), _Ratio()
        #: The start times of the running tasks with large outputs.
        self._begun = deque[float]()
        self._waiting = deque[tuple[Held, int]]()
        self._held_since, self._held_s = 0.0, 0.0

    @property
    def leaving(self) -> int:
        """Bytes on their way to other wraps."""
        return sum(each.bytes for each in list(self._destinations.values()))

    @property
    def held(self) -> int:
        """The number of tasks held back."""
        return sum(tasks for _, tasks in list(self._waiting))

    def held_s(self, now: float) -> float:
        """Return the total time in seconds in which tasks were held back."""
        return self._held_s + (now - self._held_since if self._waiting else 0.0)

    def may_begin(self, now: float, tasks: int, held: Held) -> bool:
        """Return whether `tasks` tasks may begin now; if not, `next` returns `held` later."""
        if not self._waiting and self._excess_s(now) <= 0:
            self.begin(now, tasks)
            return True
        if not self._waiting:
            self._held_since = now
        self._waiting.append((held, tasks))
        return False

    def begin(self, now: float, tasks: int) -> None:
        """Record the start of `tasks` tasks with large outputs."""
        self._begun.extend([now] * tasks)

    def next(self, now: float) -> tuple[Held, int] | None:
        """Return the held tasks that may begin now, and their number; the caller calls `begin`.

        They may be obsolete by now. So they do not count before `begin`.
        """
        if not self._waiting or self._excess_s(now) > 0:
            return None
        following = self._waiting.popleft()
        if not self._waiting:
            self._held_s += now - self._held_since
        return following

    def next_check_s(self, now: float) -> float | None:
        """Return the seconds until enough bytes may have left to check again; None if none wait.

        The check does not rely on reports: a stuck destination reports nothing.
        """
        if not self._waiting:
            return None
        return min(_LONGEST_S, max(_SHORTEST_S, self._excess_s(now)))

    def record_output(self, size: int, seconds: float) -> None:
        """Record a task that ran for `seconds` with an output of `size` bytes for other wraps."""
        self.matters = True
        self._bytes_each.add(size)
        self._computing_s.add(seconds)
        if self._begun:
            self._begun.popleft()

    def record_sending(self, now: float, to: object, size: int) -> None:
        """Record that `size` bytes are on their way to a destination."""
        self._destinations.setdefault(to, _Destination(now)).bytes += size

    def record_sent(self, now: float, to: object, size: int) -> None:
        """Record that `size` bytes have arrived at a destination, or are lost."""
        destination = self._destinations[to]
        self._s_per_byte.add(now - max(self._changed, destination.moved), size)
        self._changed = destination.moved = now
        destination.bytes -= size
        if not destination.bytes:
            del self._destinations[to]

    def _excess_s(self, now: float) -> float:
        """Return the value of the equation for one more task, in seconds."""
        computing_s = self._computing_s.value + _SLACK_S
        while self._begun and self._begun[0] + computing_s < now:  # waits for something else
            self._begun.popleft()
        each_s = self._bytes_each.value * self._s_per_byte.value
        sending_s = len(self._begun) * each_s
        for destination in self._destinations.values():
            its_s = destination.bytes * self._s_per_byte.value
            if now < destination.moved + _STUCK_S + 2 * its_s:
                sending_s += its_s
        if self._destinations:  # a part of an object may have left
            moved = min(each.moved for each in self._destinations.values())
            sending_s -= min(now - max(self._changed, moved), each_s)
        return sending_s - computing_s
