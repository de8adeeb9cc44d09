"""What objects cost by their size: to bring them to another process or a client, to join them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import quantiles
from typing import NamedTuple

from chiron.deployment.launcher import Deployment
from chiron.profiler.known_work import NOTHING
from chiron.profiler.noop_handler import LARGE, LARGE_MB
from chiron.profiler.noop_shapes import LASTING, Shape, handed_over, shape

#: Rounds that are thrown away first: memory is touched for the first time.
_WARM_UP = 3
#: The memory of a wrap that takes large requests, in MiB.
_BODY_MIB = 512


class PerMegabyte(NamedTuple):
    """Milliseconds for each million bytes: the median, and the quartiles."""

    median_ms: float
    quartiles_ms: tuple[float, float]


def handing_over() -> Shape:
    """A function whose output another one gets, in another process that is there already."""
    return handed_over("objects", [[1, 1]], LASTING)


def joining() -> Shape:
    """Two functions in one process whose outputs a third one gets joined."""
    three = shape("joined", [[3]])
    *givers, taker = three.workflow.tasks
    tasks = (*givers, replace(taker, source=tuple(each.name for each in givers)))
    return replace(three, workflow=replace(three.workflow, tasks=tasks, output=taker.name))


def bodies() -> Shape:
    """A function alone, whose answer may be large, or what it is asked."""
    one = shape("single", [[1]])
    wraps = (one.plan.wraps[0].model_copy(update={"memory_mib": _BODY_MIB}),)
    return replace(one, plan=one.plan.model_copy(update={"wraps": wraps}))


def shared_ms_per_mb(one: Deployment, rounds: int) -> PerMegabyte:
    """`Platform.shared_ms_per_mb`, from how much longer a large output takes than a small one.

    Args:
        one: the plan of `handing_over`.
        rounds: how often it is timed.
    """

    def difference_ms() -> float:
        return _large_ms(one) - one.invoke(NOTHING.request).latency_ms

    return _per_megabyte(difference_ms, LARGE_MB, rounds)


def joined_ms_per_mb(joined: Deployment, handed: Deployment, rounds: int) -> PerMegabyte:
    """`Platform.joined_ms_per_mb`, from how much longer two large outputs take than one of them.

    The thread of the second function is less than a hundredth of that.

    Args:
        joined: the plan of `joining`.
        handed: a function whose output another one gets in the same process.
        rounds: how often they are timed.
    """
    return _per_megabyte(lambda: _large_ms(joined) - _large_ms(handed), 2 * LARGE_MB, rounds)


def body_ms_per_mb(one: Deployment, rounds: int) -> PerMegabyte:
    """`Platform.body_ms_per_mb`, from a large answer and a large request against small ones.

    Args:
        one: the plan of `bodies`.
        rounds: how often it is timed.
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
