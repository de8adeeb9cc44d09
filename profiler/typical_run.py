"""Several traced runs of a function as one: what it waits for, and for how long, typically.

Another program that takes the core, or keeps the tracer from its, can make any one wait of a run
any length. Runs that wait for the same calls in the same order can be laid over each other; then
the median of each wait, and of the computing between each two, is free of that.
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

    #: What it waits for, in order.
    calls: tuple[str, ...]
    #: The stretches of computing before, between and after the waits; some may be empty.
    gaps_ms: tuple[float, ...]
    #: How long the waits are.
    blocks_ms: tuple[float, ...]
    #: What tracing added to a system call.
    marker_ms: float

    @classmethod
    def of(cls, found: Sequence[Wait], duration_ms: float, marker_ms: float) -> TracedRun:
        """A run of `duration_ms` with the waits `found`, which are in order and apart."""
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
        """How long it took."""
        return sum(self.gaps_ms) + sum(self.blocks_ms)


def traced_run(run: HandlerRun, *, gil: bool = True) -> TracedRun:
    """A run without the time in which it had no core, which is taken off its computing."""
    seen = TracedRun.of(waits(run, gil=gil), run.duration_ms, run.marker_s * 1000)
    computing = sum(seen.gaps_ms)
    left = max(computing - run.delayed_ms, computing / 10)
    scale = left / computing if computing else 1.0
    return replace(seen, gaps_ms=tuple(gap * scale for gap in seen.gaps_ms))


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
    return TracedRun(
        calls,
        medians([run.gaps_ms for run in usual]),
        medians([run.blocks_ms for run in usual]),
        median(run.marker_ms for run in usual),
    )


def medians(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The median of every column."""
    return tuple(median(column) for column in zip(*rows, strict=True))
