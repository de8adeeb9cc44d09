"""Which tasks are held back because outputs leave for other wraps more slowly than tasks make them.

References
----------
DataFlower (ASPLOS'23), section 4.2, equation (1): Pressure = alpha · Size / B_w - T_FLU. Where
that is above 0, what sends cannot keep up with a function, which is blocked for that time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

#: What leaves within so many seconds is not waited for, so that there is always something to send.
_SLACK_S = 0.02
#: How much of an average stays in it with each new value.
_KEPT = 0.9
#: A destination is stuck if nothing arrives there for so many seconds longer than twice the time
#: that it should take.
_STUCK_S = 1.0
#: Longest and shortest time until the equation is looked at again, in seconds.
_LONGEST_S, _SHORTEST_S = 0.1, 0.005

#: Stands for tasks that are held back together.
Held = TypeVar("Held")


@dataclass
class _Destination:
    """Since when nothing has arrived there, and how many bytes are on their way to it."""

    moved: float
    bytes: int = 0


class _Ratio:
    """The quotient of two sums in which the latest values count most."""

    def __init__(self) -> None:
        self._above = self._below = 0.0

    def add(self, above: float, below: float = 1.0) -> None:
        self._above = _KEPT * self._above + above
        self._below = _KEPT * self._below + below

    @property
    def value(self) -> float:
        return self._above / self._below if self._below else 0.0


class Pressure(Generic[Held]):
    """Which tasks may begin, by the outputs that have not been sent yet.

    All of equation (1) is measured. Size is what is on its way, and what the tasks that have just
    begun will give, by the average. alpha / B_w are the seconds for each byte, of those in which
    anything was on its way, until the other side has said that it has it. T_FLU is for how long
    tasks run that give something large. A stuck destination does not count: tasks whose outputs go
    elsewhere are not to wait for it.
    """

    def __init__(self) -> None:
        #: Whether tasks have given anything large.
        self.matters = False
        self._destinations: dict[object, _Destination] = {}
        self._changed = 0.0
        self._s_per_byte, self._bytes_each, self._computing_s = _Ratio(), _Ratio(), _Ratio()
        #: When those tasks have begun that are about to give something.
        self._begun = deque[float]()
        self._waiting = deque[tuple[Held, int]]()
        self._held_since, self._held_s = 0.0, 0.0

    @property
    def leaving(self) -> int:
        """Bytes on their way to other wraps."""
        return sum(each.bytes for each in list(self._destinations.values()))

    @property
    def held(self) -> int:
        """How many tasks are held back."""
        return sum(tasks for _, tasks in list(self._waiting))

    def held_s(self, now: float) -> float:
        """For how many seconds so far any was."""
        return self._held_s + (now - self._held_since if self._waiting else 0.0)

    def lets(self, now: float, tasks: int, held: Held) -> bool:
        """Whether so many tasks may begin now; if not, `next` returns `held` when they may."""
        if not self._waiting and self._excess_s(now) <= 0:
            self.begin(now, tasks)
            return True
        if not self._waiting:
            self._held_since = now
        self._waiting.append((held, tasks))
        return False

    def begin(self, now: float, tasks: int) -> None:
        """So many tasks begin that will give something large."""
        self._begun.extend([now] * tasks)

    def next(self, now: float) -> tuple[Held, int] | None:
        """The held tasks that may begin now, and how many they are; `begin` counts them.

        They may be of no use any more. So they do not count before.
        """
        if not self._waiting or self._excess_s(now) > 0:
            return None
        following = self._waiting.popleft()
        if not self._waiting:
            self._held_s += now - self._held_since
        return following

    def look_again_s(self, now: float) -> float | None:
        """In how many seconds enough may have left, whether that is told or not; None if none wait.

        A destination that is stuck tells nothing.
        """
        if not self._waiting:
            return None
        return min(_LONGEST_S, max(_SHORTEST_S, self._excess_s(now)))

    def gave(self, size: int, seconds: float) -> None:
        """A task that ran for so many seconds gave so many bytes for other wraps."""
        self.matters = True
        self._bytes_each.add(size)
        self._computing_s.add(seconds)
        if self._begun:
            self._begun.popleft()

    def leaves(self, now: float, to: object, size: int) -> None:
        """So many bytes are on their way to a destination now."""
        self._destinations.setdefault(to, _Destination(now)).bytes += size

    def left(self, now: float, to: object, size: int) -> None:
        """So many of them are there, or lost."""
        destination = self._destinations[to]
        self._s_per_byte.add(now - max(self._changed, destination.moved), size)
        self._changed = destination.moved = now
        destination.bytes -= size
        if not destination.bytes:
            del self._destinations[to]

    def _excess_s(self, now: float) -> float:
        """What the equation comes to, for one more task."""
        computing_s = self._computing_s.value + _SLACK_S
        while self._begun and self._begun[0] + computing_s < now:  # it waits for something else
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
