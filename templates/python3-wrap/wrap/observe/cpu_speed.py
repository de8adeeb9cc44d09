"""The CPU-speed probe, the same loop as the profiler's, and how long a thread waited for a core."""

from __future__ import annotations

import time
from pathlib import Path

_SCHEDSTAT = Path("/proc/thread-self/schedstat")
_STEPS = 20_000


def waited_s() -> float:
    """Seconds since the thread began; 0 where the kernel does not say (proc(5), schedstat)."""
    try:
        return int(_SCHEDSTAT.read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def cpu_probe_s() -> float:
    """The CPU time of a fixed amount of computing, in seconds: about a thousandth."""
    start = time.thread_time()
    total = 0
    for step in range(_STEPS):
        total += step * step
    return time.thread_time() - start
