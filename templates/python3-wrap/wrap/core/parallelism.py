"""How many runs at once are useful in a process: if its GIL is busy, more threads only wait."""

from __future__ import annotations

#: The interval at which the CPU time is checked, in seconds.
_LOOK_S = 0.005
#: Cores in use from which the GIL is busy, and from which threads compute without it.
_BUSY, _MORE = 0.7, 1.1
#: The minimum of runs at once.
_LEAST = 2


class Parallelism:
    """Halves and doubles the number of runs at once, by the CPU time of the process.

    Threads that pass outputs on contend for locks beside the GIL. For functions that do nothing, 40
    threads took twice the CPU time of two.

    Args:
        most: the upper bound.
        now, cpu_s: seconds of the clock, and of CPU time of the process.
    """

    def __init__(self, most: int, now: float, cpu_s: float) -> None:
        self.most = most
        self._limit = most
        self._looked, self._cpu_s = now, cpu_s

    def is_due(self, now: float) -> bool:
        return now >= self._looked + _LOOK_S

    def look(self, now: float, cpu_s: float) -> None:
        """Adjust `most` by the CPU time since the last check."""
        cores = (cpu_s - self._cpu_s) / (now - self._looked)
        self._looked, self._cpu_s = now, cpu_s
        if cores < _BUSY:
            self.most = min(self._limit, 2 * self.most)
        elif cores < _MORE:
            self.most = max(_LEAST, self.most // 2)
