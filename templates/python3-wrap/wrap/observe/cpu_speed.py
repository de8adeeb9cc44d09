"""The CPU-speed probe, with the profiler's loop, and the time a thread waited for a core."""

from __future__ import annotations

import time
from pathlib import Path

_SCHEDSTAT = Path("/proc/thread-self/schedstat")
_STEPS = 20_000


def waited_s() -> float:
    """Return the seconds that this thread waited for a core; 0 if unknown (proc(5), schedstat)."""
    try:
        return int(_SCHEDSTAT.read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def cpu_probe_s() -> float:
    """Return the CPU seconds of a fixed computation, about a thousandth."""
    start = time.thread_time()
    total = 0
    for step in range(_STEPS):
        total += step * step
    return time.thread_time() - start
