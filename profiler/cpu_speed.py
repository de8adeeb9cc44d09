"""The CPU-speed probe: a fixed amount of computing, timed beside each measurement.

If cores are hyperthreads of cores that others use too, each core has its own speed. It changes
within tenths of a second by much more than the error of predictions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from statistics import fmean
from typing import NamedTuple, TypeVar

Value = TypeVar("Value")

#: One in this many measurements counts: those with the least variation of the cores' speeds.
STEADY_ONE_IN = 3

_STEPS = 20_000
#: The most cores to probe, at a millisecond each.
_CORES = 4


class CpuSpeed(NamedTuple):
    """The machine's speed during a measurement."""

    #: The mean time of the probe.
    probe_ms: float
    #: The relative excess of the longest over the shortest time.
    uneven: float


def speed_of(probes_ms: Sequence[float]) -> CpuSpeed:
    """Return the machine's speed from probe times `probes_ms`, at several places or times."""
    return CpuSpeed(fmean(probes_ms), max(probes_ms) / min(probes_ms) - 1)


def cpu_probe_ms() -> float:
    """Return the CPU time of a fixed amount of computing on this core, about one millisecond."""
    start = time.thread_time()
    total = 0
    for step in range(_STEPS):
        total += step * step
    return (time.thread_time() - start) * 1000


def mean_probe_ms() -> float:
    """Return its mean over the cores that this thread may use, at most four."""
    return fmean(_cores_ms())


def with_cpu_speed(run: Callable[[], Value]) -> tuple[Value, CpuSpeed]:
    """Return the result of `run`, and the machine's speed right before and after it."""
    before_ms = _cores_ms()
    value = run()
    return value, speed_of(before_ms + _cores_ms())


def steady(measured: Sequence[Value], uneven: Callable[[Value], float]) -> tuple[Value, ...]:
    """Return the third of `measured` with the least variation of the machine's speed, in order.

    If cores differ in speed, chance decides which process gets which core, and no prediction can
    include that. The same holds for the time at which a core changes its speed. Only the speed
    beside a measurement selects it, never its value.

    `uneven` returns the variation of the speed beside a measurement: see `CpuSpeed`.
    """
    enough = -(-len(measured) // STEADY_ONE_IN)
    by_evenness = sorted(range(len(measured)), key=lambda index: uneven(measured[index]))
    return tuple(measured[index] for index in sorted(by_evenness[:enough]))


def _cores_ms() -> list[float]:
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)
    try:
        return [_on(core) for core in cores[:: -(-len(cores) // _CORES)]]
    except OSError:  # some sandboxes forbid setting the affinity
        return [cpu_probe_ms()]
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, allowed)


def _on(core: int) -> float:
    os.sched_setaffinity(0, {core})
    return cpu_probe_ms()
