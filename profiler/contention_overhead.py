"""Contention overhead: the slowdown of computing when more threads compute than there are cores.

An operating system that shares its cores perfectly would keep all of them busy. In a real system a
woken thread waits for the core that it was woken on, while another core is free. On Linux 6.18, two
processes whose threads pass their GILs on every switch interval lose a fifth to a third of two
cores' time.
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

#: The number of parts of the rounds, for each of which the share is computed, for its spread.
_PARTS = 8


class Computing(NamedTuple):
    """The computing time of a measurement."""

    #: Relative to the time of the CPU-speed probe beside it.
    loops: float
    #: The variation of the machine's speed: see `chiron.profiler.cpu_speed.CpuSpeed`.
    uneven: float


class CrowdRound(NamedTuple):
    """The computing time of a function alone, and right after it of a crowd's slowest process."""

    alone: Computing
    crowd: Computing


def run_crowd(alone: Deployment, crowd: Deployment, gil: bool = True) -> CrowdRound:
    """Run one round of the two plans.

    Args:
        alone, crowd: the plans `one` and `crowd` of `chiron.profiler.noop_shapes`. `alone` is one
            function that computes, waits and computes; `crowd` has some of them in each of several
            processes, each with a core. As others compute while one function waits, a process could
            end when all its functions have computed one after another.
        gil: without one they compute at once, and then all wait at once.
    """
    waits_ms = waiting_ms(WORK.first)
    return CrowdRound(_computing(alone, waits_ms), _computing(crowd, 0.0 if gil else waits_ms))


def contention_overhead(rounds: Sequence[CrowdRound]) -> float:
    """Return `Platform.contention_overhead`, from the steady rounds.

    Source: Lozi et al., The Linux Scheduler: a Decade of Wasted Cores (EuroSys'16).
    """
    needed = CROWD_THREADS * _typical([each.alone for each in rounds])
    return round(max(0.0, _typical([each.crowd for each in rounds]) / needed - 1), 4)


def contention_overhead_quartiles(rounds: Sequence[CrowdRound]) -> tuple[float, float]:
    """Return the quartiles of the overhead over parts of the rounds; needs at least two rounds."""
    shares = [contention_overhead(rounds[part::_PARTS]) for part in range(min(_PARTS, len(rounds)))]
    low, _, high = quantiles(shares, n=4, method="inclusive")
    return round(low, 4), round(high, 4)


def _typical(times: Sequence[Computing]) -> float:
    return median(each.loops for each in steady(times, lambda each: each.uneven))


def _computing(one: Deployment, less_ms: float) -> Computing:
    longest_ms, speed = with_cpu_speed(partial(_longest_ms, one))
    return Computing((longest_ms - less_ms) / speed.probe_ms, speed.uneven)


def _longest_ms(one: Deployment) -> float:
    """Return the longest time of a process, from its first function's begin to its last's end."""
    spans: dict[int | None, list[float]] = {}
    for task in one.invoke(WORK.request, trace=True).timeline.tasks:
        spans.setdefault(task.process, []).extend((task.start_ms, task.end_ms))
    return max(max(times) - min(times) for times in spans.values())
