"""The cost of objects by size: passing them to another process or a client, and joining them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import quantiles
from typing import NamedTuple

from chiron.deployment.launcher import Deployment
from chiron.profiler.known_work import NOTHING
from chiron.profiler.noop_handler import LARGE, LARGE_MB
from chiron.profiler.noop_shapes import LASTING, Shape, handed_over, shape

#: The first rounds, which are discarded: memory is touched for the first time.
_WARM_UP = 3
#: The memory of a wrap for large requests, in MiB.
_BODY_MIB = 512


class PerMegabyte(NamedTuple):
    """Milliseconds per million bytes: the median and the quartiles."""

    median_ms: float
    quartiles_ms: tuple[float, float]


def handing_over() -> Shape:
    """Return a plan in which a function's output goes to another, existing process."""
    return handed_over("objects", [[1, 1]], LASTING)


def joining() -> Shape:
    """Return a plan in which a third function gets the joined outputs of two, in one process."""
    three = shape("joined", [[3]])
    *givers, taker = three.workflow.tasks
    tasks = (*givers, replace(taker, source=tuple(each.name for each in givers)))
    return replace(three, workflow=replace(three.workflow, tasks=tasks, output=taker.name))


def bodies() -> Shape:
    """Return a plan of one function, whose answer or request may be large."""
    one = shape("single", [[1]])
    wraps = (one.plan.wraps[0].model_copy(update={"memory_mib": _BODY_MIB}),)
    return replace(one, plan=one.plan.model_copy(update={"wraps": wraps}))


def shared_ms_per_mb(one: Deployment, rounds: int) -> PerMegabyte:
    """Return `Platform.shared_ms_per_mb`: the extra time of a large output over a small output.

    Args:
        one: the plan of `handing_over`.
        rounds: the number of measurements.
    """

    def difference_ms() -> float:
        return _large_ms(one) - one.invoke(NOTHING.request).latency_ms

    return _per_megabyte(difference_ms, LARGE_MB, rounds)


def joined_ms_per_mb(joined: Deployment, handed: Deployment, rounds: int) -> PerMegabyte:
    """Return `Platform.joined_ms_per_mb`: the extra time of two large outputs over one.

    The time of the second function's thread is less than a hundredth of that.

    Args:
        joined: the plan of `joining`.
        handed: a function whose output another function gets in the same process.
        rounds: the number of measurements.
    """
    return _per_megabyte(lambda: _large_ms(joined) - _large_ms(handed), 2 * LARGE_MB, rounds)


def body_ms_per_mb(one: Deployment, rounds: int) -> PerMegabyte:
    """Return `Platform.body_ms_per_mb`, from large answers and requests compared with small ones.

    Args:
        one: the plan of `bodies`.
        rounds: the number of measurements.
    """
    large = b"x" * int(LARGE_MB * 1e6)

    def difference_ms() -> float:
        both_ms = _large_ms(one) + one.invoke(large).latency_ms
        return both_ms - 2 * one.invoke(NOTHING.request).latency_ms

    return _per_megabyte(difference_ms, 2 * LARGE_MB, rounds)


def _large_ms(one: Deployment) -> float:
    return one.invoke(LARGE.encode()).latency_ms


def _per_megabyte(difference_ms: Callable[[], float], megabytes: float, rounds: int) -> PerMegabyte:
    taken = [difference_ms() / megabytes for _ in range(_WARM_UP + rounds)][_WARM_UP:]
    low, median, high = (round(max(0.0, each), 4) for each in quantiles(taken, n=4))
    return PerMegabyte(median, (low, high))
