"""Several traced runs of a function as one: what it waits for, and for how long, typically.

Another program that takes the core, or keeps the tracer from its, can make any one wait of a run
any length. Runs that wait for the same calls in the same order can be laid over each other; then
the median of each wait, and of the computing between each two, is free of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

from profiler.blocking import Wait, waits
from profiler.handler_run import HandlerRun


@dataclass(frozen=True)
class TracedRun:
    """A run under trace.

    Attributes
    ----------
    waits
        In order and apart from each other.
    duration_ms
        How long it took.
    marker_ms
        What tracing added to a system call.
    """

    waits: tuple[Wait, ...]
    duration_ms: float
    marker_ms: float

    @property
    def calls(self) -> tuple[str, ...]:
        """What it waits for."""
        return tuple(wait.syscall for wait in self.waits)

    @property
    def gaps_ms(self) -> list[float]:
        """The stretches of computing before, between and after the waits; some may be empty."""
        starts = [*(wait.start_ms for wait in self.waits), self.duration_ms]
        ends = [0.0, *(wait.end_ms for wait in self.waits)]
        return [max(0.0, start - end) for start, end in zip(starts, ends, strict=True)]

    @property
    def blocks_ms(self) -> list[float]:
        """How long the waits are."""
        return [wait.end_ms - wait.start_ms for wait in self.waits]


def traced_run(run: HandlerRun, delayed_ms: float) -> TracedRun:
    """A run without the time in which it had no core, which is taken off its computing."""
    seen = TracedRun(tuple(waits(run)), run.duration_ms, run.marker_s * 1000)
    gaps = seen.gaps_ms
    computing = sum(gaps)
    left = max(computing - delayed_ms, computing / 10)
    scale = left / computing if computing else 1.0
    return _joined(seen.calls, [gap * scale for gap in gaps], seen.blocks_ms, seen.marker_ms)


def typical_run(runs: Sequence[TracedRun]) -> TracedRun:
    """The median, piece by piece, of those runs that wait alike, if that is most usual.

    Where every run waits for something else, it is the run whose duration is nearest to the
    median: an average over different runs would have waits at places where none had one.
    """
    alike: dict[tuple[str, ...], list[TracedRun]] = {}
    for run in runs:
        alike.setdefault(run.calls, []).append(run)
    calls, usual = max(alike.items(), key=lambda item: len(item[1]))
    if len(usual) == 1:
        middle = median(run.duration_ms for run in runs)
        return min(runs, key=lambda run: abs(run.duration_ms - middle))
    return _joined(
        calls,
        _medians([run.gaps_ms for run in usual]),
        _medians([run.blocks_ms for run in usual]),
        median(run.marker_ms for run in usual),
    )


def _medians(rows: Sequence[Sequence[float]]) -> list[float]:
    return [median(column) for column in zip(*rows, strict=True)]


def _joined(
    calls: Sequence[str], gaps: Sequence[float], blocks: Sequence[float], marker_ms: float
) -> TracedRun:
    """The run in which gaps and blocks take turns, a gap first and last."""
    pieces = [piece for pair in zip(gaps, blocks, strict=False) for piece in pair]
    times = list(accumulate([*pieces, gaps[-1]]))
    found = [
        Wait(start, end, call)
        for start, end, call in zip(times[0:-1:2], times[1:-1:2], calls, strict=True)
    ]
    return TracedRun(tuple(found), times[-1], marker_ms)
