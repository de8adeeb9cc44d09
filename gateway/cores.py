"""Gives functions with a CPU limit cores of their own: affinity in place of a CPU quota."""

from __future__ import annotations

import os


class Cores:
    """The cores this process may use, and how many function processes are bound to each."""

    def __init__(self, available: set[int] | None = None) -> None:
        self._load = dict.fromkeys(sorted(available or os.sched_getaffinity(0)), 0)

    @property
    def count(self) -> int:
        """How many cores there are to use."""
        return len(self._load)

    def take(self, count: int | None) -> list[int] | None:
        """The `count` least loaded cores; None, for all of them, without a limit."""
        if count is None:
            return None
        taken = sorted(self._load, key=lambda core: (self._load[core], core))[:count]
        for core in taken:
            self._load[core] += 1
        return taken

    def give_back(self, taken: list[int] | None) -> None:
        """Return what `take` gave."""
        for core in taken or []:
            self._load[core] -= 1
