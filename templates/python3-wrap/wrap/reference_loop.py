"""How fast this core is right now: a fixed loop, the same as that of the profiler."""

from __future__ import annotations

import time

_STEPS = 20_000


def reference_s() -> float:
    """The CPU time of a fixed amount of computing, in seconds: about a thousandth."""
    start = time.thread_time()
    total = 0
    for step in range(_STEPS):
        total += step * step
    return time.thread_time() - start
