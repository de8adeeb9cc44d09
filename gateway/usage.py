"""What a function's processes use now: CPU in millicores and memory in bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from gateway import processes


@dataclass(frozen=True)
class Usage:
    """CPU in thousandths of a core since the last look, and proportional set size in bytes."""

    millicores: float
    memory_bytes: int


class UsageMeter:
    """Remembers the CPU time of the last look at each process, to tell what came since."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float]] = {}

    def measure(self, started: dict[int, float]) -> Usage:
        """Usage of the processes and all they started.

        Args:
            started: for each root process its pid and when it started (time.monotonic).
        """
        table = processes.snapshot()
        cpu = 0.0
        memory = 0
        now = time.monotonic()
        for root, since in started.items():
            pids = processes.tree(root, table)
            memory += processes.proportional_bytes(pids)
            cpu_s = sum(table[pid].cpu_s for pid in pids)
            before, cpu_before_s = self._last.get(root, (since, 0.0))
            self._last[root] = (now, cpu_s)
            cpu += max(0.0, cpu_s - cpu_before_s) / max(now - before, 1e-3)
        for gone in self._last.keys() - table.keys():
            del self._last[gone]
        return Usage(cpu * 1000, memory)
