"""What a function's replicas use now: CPU in millicores and memory in bytes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from gateway import processes


@dataclass(frozen=True)
class Usage:
    """CPU in thousandths of a core since the last look, and memory in bytes."""

    millicores: float
    memory_bytes: int


class CpuMeter:
    """Remembers the CPU time at the last look at each replica, to tell what came since."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float]] = {}

    def millicores(self, cpu_s: Mapping[int, float], since: Mapping[int, float]) -> float:
        """What replicas used on average since the last look, or since they started.

        Args:
            cpu_s: for each replica's first process the CPU time so far, in seconds.
            since: and when it started (time.monotonic).
        """
        now = time.monotonic()
        cores = 0.0
        for pid, total in cpu_s.items():
            looked, before = self._last.get(pid, (since[pid], 0.0))
            cores += max(0.0, total - before) / max(now - looked, 1e-3)
            self._last[pid] = (now, total)
        for gone in [pid for pid in self._last if not processes.exists(pid)]:
            del self._last[gone]
        return cores * 1000


def measure_trees(roots: Mapping[int, float], meter: CpuMeter) -> Usage:
    """Usage of functions' processes: CPU time, and proportional set size.

    Args:
        roots: for each init process its pid and when it started (time.monotonic).
        meter: what remembers the last look.
    """
    table = processes.snapshot()
    trees = {root: processes.descendants([root], table) for root in roots}
    # A function's CPU time includes what its init process has reaped for it; its memory is not.
    cpu_s = {root: sum(table[pid].cpu_s for pid in pids) for root, pids in trees.items()}
    memory = sum(processes.proportional_bytes(pids - {root}) for root, pids in trees.items())
    return Usage(meter.millicores(cpu_s, roots), memory)
