"""How many runs at once are of use in a process: where its GIL is busy, more threads only wait."""

from __future__ import annotations

#: How often is looked at what the process computes, in seconds.
_LOOK_S = 0.005
#: Cores that a process takes whose GIL is busy: with more, its threads compute without it.
_BUSY, _MORE = 0.7, 1.1
#: So many runs at once there may always be.
_LEAST = 2


class Parallelism:
    """Halves and doubles what may run at once, by the CPU time of the process.

    Threads that hand on what functions have given fight for locks beside the GIL: 40 of them took
    twice the CPU time of two, for functions that do nothing.

    Args:
        most: the upper bound.
        now, cpu_s: seconds of the clock, and of CPU time of the process.
    """

    def __init__(self, most: int, now: float, cpu_s: float) -> None:
        #: So many may run at once now.
        self.most = most
        self._limit = most
        self._looked, self._cpu_s = now, cpu_s

    def is_due(self, now: float) -> bool:
        """Whether it is time to look again."""
        return now >= self._looked + _LOOK_S

    def look(self, now: float, cpu_s: float) -> None:
        """Decide again, by the CPU time since the last look."""
        cores = (cpu_s - self._cpu_s) / (now - self._looked)
        self._looked, self._cpu_s = now, cpu_s
        if cores < _BUSY:
            self.most = min(self._limit, 2 * self.most)
        elif cores < _MORE:
            self.most = max(_LEAST, self.most // 2)
