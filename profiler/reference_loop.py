"""How fast the machine is right now: a fixed loop, timed beside what is measured.

Where cores are threads of a core that others use too, each has a speed of its own, which changes
within tenths of a second by much more than predictions are wrong.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from statistics import fmean
from typing import TypeVar

Value = TypeVar("Value")

_STEPS = 20_000
#: Cores that are asked at most: it takes a millisecond each.
_CORES = 4


def reference_ms() -> float:
    """The CPU time of a fixed amount of computing on this core, in milliseconds: about one."""
    start = time.thread_time()
    total = 0
    for step in range(_STEPS):
        total += step * step
    return (time.thread_time() - start) * 1000


def machine_ms() -> float:
    """The same on average of the cores that this thread may use, four of them at most."""
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)
    try:
        return fmean(_on(core) for core in cores[:: -(-len(cores) // _CORES)])
    finally:
        os.sched_setaffinity(0, allowed)


def paced(run: Callable[[], Value]) -> tuple[Value, float]:
    """What `run` returns, and what the loop took right before and right after it, on average."""
    before_ms = machine_ms()
    value = run()
    return value, (before_ms + machine_ms()) / 2


def _on(core: int) -> float:
    os.sched_setaffinity(0, {core})
    return reference_ms()
