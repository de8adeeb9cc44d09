"""How much longer computing takes while more threads want to compute than there are cores.

An operating system that shares its cores perfectly keeps all of them busy then. A real one has who
is woken wait for the core that it was woken on, while another is free: two processes whose threads
hand their GILs on every switch interval lose a fifth of two cores' time on Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median, quantiles
from typing import NamedTuple

from profiler.launcher import Deployment
from profiler.noop_handler import COMPUTE
from profiler.noop_shapes import CROWD_THREADS
from profiler.reference_loop import paced

#: How often each of the two plans is run.
ROUNDS = 80
#: The share is found once more for each of so many parts of the rounds, for its spread.
_PARTS = 8


class _Round(NamedTuple):
    """How long the one function and the crowd took, both over the reference loop beside them."""

    alone: float
    crowd: float


def wasted_cores(alone: Deployment, crowd: Deployment) -> tuple[float, tuple[float, float]]:
    """`Platform.wasted_cores` and its quartiles.

    Parameters
    ----------
    alone, crowd
        The plans `one` and `crowd` of `profiler.noop_shapes`: one function that computes, and some
        of them in each of several processes, each with a core. A process could be done in the time
        that its functions take one after another.

    References
    ----------
    Lozi et al., The Linux Scheduler: a Decade of Wasted Cores (EuroSys'16).
    """
    rounds = [_Round(_loops(alone), _loops(crowd)) for _ in range(ROUNDS)]
    low, _, high = quantiles(
        (_share(rounds[part::_PARTS]) for part in range(_PARTS)), n=4, method="inclusive"
    )
    return _share(rounds), (low, high)


def _share(rounds: Sequence[_Round]) -> float:
    needed = CROWD_THREADS * median(each.alone for each in rounds)
    return round(max(0.0, median(each.crowd for each in rounds) / needed - 1), 4)


def _loops(one: Deployment) -> float:
    """How many times as long as the reference loop beside it the slowest process computes."""
    longest_ms, pace = paced(partial(_longest_ms, one))
    return longest_ms / pace.loop_ms


def _longest_ms(one: Deployment) -> float:
    """From the begin of a process's first function to the end of its last, of the slowest."""
    spans: dict[int, list[float]] = {}
    for row in one.invoke(COMPUTE.encode(), trace=True).timeline:
        if row["kind"] == "run":
            spans.setdefault(row["process"], []).extend((row["start_ms"], row["end_ms"]))
    return max(max(times) - min(times) for times in spans.values())
