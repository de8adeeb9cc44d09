"""How much longer computing takes while more threads want to compute than there are cores.

An operating system that shares its cores perfectly keeps all of them busy then. A real one has who
is woken wait for the core that it was woken on, while another is free: two processes whose threads
hand their GILs on every switch interval lose a fifth to a third of two cores' time on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median, quantiles
from typing import NamedTuple

from profiler.launcher import Deployment
from profiler.noop_handler import WORK, WORK_PAUSE_MS
from profiler.noop_shapes import CROWD_THREADS
from profiler.reference_loop import paced

#: The share is found once more for each of so many parts of the rounds, for its spread.
_PARTS = 8


class _Round(NamedTuple):
    """How long one function and the crowd computed, both over the reference loop beside them."""

    alone: float
    crowd: float


def wasted_cores(
    alone: Deployment, crowd: Deployment, rounds: int
) -> tuple[float, tuple[float, float]]:
    """`Platform.wasted_cores` and its quartiles.

    Parameters
    ----------
    alone, crowd
        The plans `one` and `crowd` of `profiler.noop_shapes`: one function that computes, waits and
        computes, and some of them in each of several processes, each with a core. As others compute
        while one waits, a process could be done when all of them have computed one after another.
    rounds
        How often each of the two is run.

    References
    ----------
    Lozi et al., The Linux Scheduler: a Decade of Wasted Cores (EuroSys'16).
    """
    timed = [_Round(_loops(alone, WORK_PAUSE_MS), _loops(crowd, 0.0)) for _ in range(rounds)]
    shares = [_share(timed[part::_PARTS]) for part in range(min(_PARTS, rounds))]
    low, _, high = quantiles(shares, n=4, method="inclusive")
    return _share(timed), (round(low, 4), round(high, 4))


def _share(rounds: Sequence[_Round]) -> float:
    needed = CROWD_THREADS * median(each.alone for each in rounds)
    return round(max(0.0, median(each.crowd for each in rounds) / needed - 1), 4)


def _loops(one: Deployment, waiting_ms: float) -> float:
    """How many times as long as the reference loop beside it the slowest process computes."""
    longest_ms, pace = paced(partial(_longest_ms, one))
    return (longest_ms - waiting_ms) / pace.loop_ms


def _longest_ms(one: Deployment) -> float:
    """From the begin of a process's first function to the end of its last, of the slowest."""
    spans: dict[int, list[float]] = {}
    for row in one.invoke(WORK.encode(), trace=True).timeline:
        if row["kind"] == "run":
            spans.setdefault(row["process"], []).extend((row["start_ms"], row["end_ms"]))
    return max(max(times) - min(times) for times in spans.values())
