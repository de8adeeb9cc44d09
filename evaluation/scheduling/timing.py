"""How long a search takes: CPU time, since the machine may have other work, beside wall time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

from workflow.documents import Document

Result = TypeVar("Result")


class Duration(Document):
    """Median and quartiles of the CPU time, and the median of the wall time, in seconds."""

    samples: int
    cpu_s: float
    low_s: float
    high_s: float
    wall_s: float


def timed(run: Callable[[], Result], samples: int) -> tuple[Duration, Result]:
    """How long `run` takes, and what it gave the last time; `samples` is at least 2."""
    cpu, wall = list[float](), list[float]()
    for _ in range(samples):
        start = time.process_time(), time.perf_counter()
        result = run()
        cpu.append(time.process_time() - start[0])
        wall.append(time.perf_counter() - start[1])
    return duration(cpu, wall), result


def duration(cpu: list[float], wall: list[float]) -> Duration:
    """The median and the quartiles of times in seconds, of at least two samples."""
    low, median, high = statistics.quantiles(cpu, n=4, method="inclusive")
    return Duration(
        samples=len(cpu),
        cpu_s=round(median, 4),
        low_s=round(low, 4),
        high_s=round(high, 4),
        wall_s=round(statistics.median(wall), 4),
    )
