"""How fast the machine is right now: a fixed loop, timed beside what is measured.

Where cores are threads of a core that others use too, each has a speed of its own, which changes
within tenths of a second by much more than predictions are wrong.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from statistics import fmean
from typing import NamedTuple, TypeVar

Value = TypeVar("Value")

_STEPS = 20_000
#: Cores that are asked at most: it takes a millisecond each.
_CORES = 4


class Pace(NamedTuple):
    """How fast the machine was.

    Attributes
    ----------
    loop_ms
        What the loop took, on average of the cores.
    uneven
        How much longer it took on the slowest than on the fastest, as a share.
    """

    loop_ms: float
    uneven: float


def reference_ms() -> float:
    """The CPU time of a fixed amount of computing on this core, in milliseconds: about one."""
    start = time.thread_time()
    total = 0
    for step in range(_STEPS):
        total += step * step
    return (time.thread_time() - start) * 1000


def machine_ms() -> float:
    """The same on average of the cores that this thread may use, four of them at most."""
    return fmean(_cores_ms())


def paced(run: Callable[[], Value]) -> tuple[Value, Pace]:
    """What `run` returns, and how fast the machine was right before and right after it."""
    before_ms = _cores_ms()
    value = run()
    loops_ms = before_ms + _cores_ms()
    return value, Pace(fmean(loops_ms), max(loops_ms) / min(loops_ms) - 1)


def _cores_ms() -> list[float]:
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)
    try:
        return [_on(core) for core in cores[:: -(-len(cores) // _CORES)]]
    finally:
        os.sched_setaffinity(0, allowed)


def _on(core: int) -> float:
    os.sched_setaffinity(0, {core})
    return reference_ms()
