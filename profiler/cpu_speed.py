"""The CPU-speed probe: a fixed amount of computing, timed beside what is measured.

Where cores are threads of a core that others use too, each has a speed of its own, which changes
within tenths of a second by much more than predictions are wrong.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from statistics import fmean
from typing import NamedTuple, TypeVar

Value = TypeVar("Value")

#: Of so many measurements the one counts beside which the cores' speeds differed least.
STEADY_ONE_IN = 3

_STEPS = 20_000
#: Cores that are asked at most: it takes a millisecond each.
_CORES = 4


class CpuSpeed(NamedTuple):
    """How fast the machine was."""

    #: What the probe took, on average of all times.
    probe_ms: float
    #: How much longer the longest time was than the shortest, as a share.
    uneven: float


def speed_of(probes_ms: Sequence[float]) -> CpuSpeed:
    """How fast the machine was when the probe took `probes_ms`, at several places or times."""
    return CpuSpeed(fmean(probes_ms), max(probes_ms) / min(probes_ms) - 1)


def cpu_probe_ms() -> float:
    """The CPU time of a fixed amount of computing on this core, in milliseconds: about one."""
    start = time.thread_time()
    total = 0
    for step in range(_STEPS):
        total += step * step
    return (time.thread_time() - start) * 1000


def mean_probe_ms() -> float:
    """The same on average of the cores that this thread may use, four of them at most."""
    return fmean(_cores_ms())


def with_cpu_speed(run: Callable[[], Value]) -> tuple[Value, CpuSpeed]:
    """What `run` returns, and how fast the machine was right before and right after it."""
    before_ms = _cores_ms()
    value = run()
    return value, speed_of(before_ms + _cores_ms())


def steady(measured: Sequence[Value], uneven: Callable[[Value], float]) -> tuple[Value, ...]:
    """The third of `measured` beside which the machine's speed was the most even, in their order.

    Where the cores have different speeds it depends on luck which process gets which, and where a
    core changed its speed, on when it did; no prediction knows that. What decides is the speed
    beside a measurement, never the measurement.

    `uneven` says how much the speed differed beside one: see `CpuSpeed`.
    """
    enough = -(-len(measured) // STEADY_ONE_IN)
    by_evenness = sorted(range(len(measured)), key=lambda index: uneven(measured[index]))
    return tuple(measured[index] for index in sorted(by_evenness[:enough]))


def _cores_ms() -> list[float]:
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)
    try:
        return [_on(core) for core in cores[:: -(-len(cores) // _CORES)]]
    except OSError:  # not every sandbox lets its processes choose
        return [cpu_probe_ms()]
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, allowed)


def _on(core: int) -> float:
    os.sched_setaffinity(0, {core})
    return cpu_probe_ms()
