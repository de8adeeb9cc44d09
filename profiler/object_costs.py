"""What it costs to give objects to another process of a wrap, by their size."""

from __future__ import annotations

from dataclasses import replace
from statistics import quantiles
from typing import NamedTuple

from deployment.launcher import Deployment
from profiler.known_work import NOTHING
from profiler.noop_handler import LARGE, LARGE_MB
from profiler.noop_shapes import LASTING, Shape, shape

#: Rounds that count, and rounds before that are thrown away: memory is touched for the first time.
_ROUNDS, _WARM_UP = 40, 3


class PerMegabyte(NamedTuple):
    """Milliseconds for each million bytes: the median, and the quartiles."""

    median_ms: float
    quartiles_ms: tuple[float, float]


def handing_over() -> Shape:
    """A function whose output another one gets, in another process that is there already."""
    both = shape("objects", [[1, 1]], LASTING)
    first, second = both.workflow.tasks
    tasks = (first, replace(second, source=first.name))
    return replace(both, workflow=replace(both.workflow, tasks=tasks, output=second.name))


def shared_ms_per_mb(one: Deployment) -> PerMegabyte:
    """`Platform.shared_ms_per_mb`, from how much longer a large output takes than a small one.

    Parameters
    ----------
    one
        The plan of `handing_over`.
    """

    def difference_ms() -> float:
        small_ms = one.invoke(NOTHING.request).latency_ms
        return one.invoke(LARGE.encode()).latency_ms - small_ms

    taken = [difference_ms() / LARGE_MB for _ in range(_WARM_UP + _ROUNDS)][_WARM_UP:]
    low, median, high = (round(max(0.0, each), 4) for each in quantiles(taken, n=4))
    return PerMegabyte(median, (low, high))
