"""How fast the machine is right now: a fixed loop, timed beside what is measured."""

from __future__ import annotations

import time

_STEPS = 20_000


def reference_ms() -> float:
    """How long a fixed amount of computing takes, in milliseconds: about one."""
    start = time.perf_counter()
    total = 0
    for step in range(_STEPS):
        total += step * step
    return (time.perf_counter() - start) * 1000
