"""Combine several traced runs of a function into one: its typical waits and their durations.

Another program that takes the core, or delays the tracer, can lengthen any wait of a run. Runs with
the same waits in the same order can be aligned. The median of each wait, and of the computing
between two waits, is then free of such delays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from chiron.profiler.blocking import Wait, waits
from chiron.profiler.handler_run import HandlerRun


@dataclass(frozen=True)
class TracedRun:
    """A run under trace."""

    #: The system calls of its waits, in order.
    calls: tuple[str, ...]
    #: The stretches of computing before, between and after the waits; some may be empty.
    gaps_ms: tuple[float, ...]
    #: The durations of the waits.
    blocks_ms: tuple[float, ...]
    #: The cost of tracing per system call.
    marker_ms: float

    @classmethod
    def of(cls, found: Sequence[Wait], duration_ms: float, marker_ms: float) -> TracedRun:
        """Return a run of `duration_ms` with the waits `found`, which are in order and disjoint."""
        starts = [*(wait.start_ms for wait in found), duration_ms]
        ends = [0.0, *(wait.end_ms for wait in found)]
        return cls(
            calls=tuple(wait.syscall for wait in found),
            gaps_ms=tuple(max(0.0, s - e) for s, e in zip(starts, ends, strict=True)),
            blocks_ms=tuple(wait.end_ms - wait.start_ms for wait in found),
            marker_ms=marker_ms,
        )

    @property
    def duration_ms(self) -> float:
        return sum(self.gaps_ms) + sum(self.blocks_ms)


def traced_run(run: HandlerRun, *, gil: bool = True) -> TracedRun:
    """Return a run less the time in which it had no core, which is subtracted from computing."""
    seen = TracedRun.of(waits(run, gil=gil), run.duration_ms, run.marker_s * 1000)
    computing = sum(seen.gaps_ms)
    left = max(computing - run.delayed_ms, computing / 10)
    scale = left / computing if computing else 1.0
    return replace(seen, gaps_ms=tuple(gap * scale for gap in seen.gaps_ms))


def typical_run(runs: Sequence[TracedRun]) -> TracedRun:
    """Return the median, piece by piece, of the runs with the most frequent sequence of waits.

    If every run waits differently, return the run whose duration is nearest to the median: the mean
    of different runs would wait at places where no run does.
    """
    alike: dict[tuple[str, ...], list[TracedRun]] = {}
    for run in runs:
        alike.setdefault(run.calls, []).append(run)
    calls, usual = max(alike.items(), key=lambda item: len(item[1]))
    if len(usual) == 1:
        middle = median(run.duration_ms for run in runs)
        return min(runs, key=lambda run: abs(run.duration_ms - middle))
    return TracedRun(
        calls,
        medians([run.gaps_ms for run in usual]),
        medians([run.blocks_ms for run in usual]),
        median(run.marker_ms for run in usual),
    )


def medians(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(median(column) for column in zip(*rows, strict=True))
