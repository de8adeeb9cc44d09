"""Contention overhead: how much longer computing takes with more threads that compute than cores.

An operating system that shares its cores perfectly keeps all of them busy then. A real one has a
woken thread wait for the core that it was woken on, while another is free: two processes whose
threads hand their GILs on every switch interval lose a fifth to a third of two cores' time on Linux
6.18.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median, quantiles
from typing import NamedTuple

from chiron.deployment.launcher import Deployment
from chiron.profiler.cpu_speed import steady, with_cpu_speed
from chiron.profiler.known_work import WORK, waiting_ms
from chiron.profiler.noop_shapes import CROWD_THREADS

#: The share is found once more for each of so many parts of the rounds, for its spread.
_PARTS = 8


class Computing(NamedTuple):
    """How long something computed."""

    #: Over what the CPU-speed probe took beside it.
    loops: float
    #: How much the machine's speed differed beside it: see `chiron.profiler.cpu_speed.CpuSpeed`.
    uneven: float


class CrowdRound(NamedTuple):
    """How long a function computed alone, and the slowest process of a crowd, right after it."""

    alone: Computing
    crowd: Computing


def run_crowd(alone: Deployment, crowd: Deployment) -> CrowdRound:
    """One round of the two plans.

    Args:
        alone, crowd: the plans `one` and `crowd` of `chiron.profiler.noop_shapes`: one function
            that computes, waits and computes, and some of them in each of several processes, each
            with a core. As others compute while one waits, a process could be done when all of them
            have computed one after another.
    """
    return CrowdRound(_computing(alone, waiting_ms(WORK.first)), _computing(crowd, 0.0))


def contention_overhead(rounds: Sequence[CrowdRound]) -> float:
    """`Platform.contention_overhead`, from the rounds that were steady.

    Source: Lozi et al., The Linux Scheduler: a Decade of Wasted Cores (EuroSys'16).
    """
    needed = CROWD_THREADS * _typical([each.alone for each in rounds])
    return round(max(0.0, _typical([each.crowd for each in rounds]) / needed - 1), 4)


def contention_overhead_quartiles(rounds: Sequence[CrowdRound]) -> tuple[float, float]:
    """Between which the half of what single parts of at least two rounds say lies."""
    shares = [contention_overhead(rounds[part::_PARTS]) for part in range(min(_PARTS, len(rounds)))]
    low, _, high = quantiles(shares, n=4, method="inclusive")
    return round(low, 4), round(high, 4)


def _typical(times: Sequence[Computing]) -> float:
    return median(each.loops for each in steady(times, lambda each: each.uneven))


def _computing(one: Deployment, less_ms: float) -> Computing:
    longest_ms, speed = with_cpu_speed(partial(_longest_ms, one))
    return Computing((longest_ms - less_ms) / speed.probe_ms, speed.uneven)


def _longest_ms(one: Deployment) -> float:
    """From the begin of a process's first function to the end of its last, of the slowest."""
    spans: dict[int | None, list[float]] = {}
    for task in one.invoke(WORK.request, trace=True).timeline.tasks:
        spans.setdefault(task.process, []).extend((task.start_ms, task.end_ms))
    return max(max(times) - min(times) for times in spans.values())
