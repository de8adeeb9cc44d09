"""Combine strace's and the GIL probe's observations of a function.

strace sees every system call, however short, and its name, but counts all other time as computing
with the GIL. The probe sees which threads hold the GIL and which compute, but nothing shorter than
a tick. It mistakes a thread that another program keeps from running for a waiting thread. So
strace's periods keep their places, and the probe determines their kinds:

- Computing becomes ``native`` where the probe got the GIL and something computed. It becomes
  ``block`` where tracing only made it seem to compute.
- A wait becomes ``native`` where its CPU clock advanced: the kernel copies into its page cache, say
  5 MB. It becomes ``cpu`` if the GIL was held throughout. The call's name stays.
- In a row of periods too short for the probe, calls become ``native`` if it saw less waiting than
  computing without the GIL: page-cache copies, for example. They stay separate calls, as the
  function must get the GIL back after each.

The two observe different runs. Their clocks are aligned by the waits that both saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from chiron.profiler.periods import Piece, laid_out
from chiron.profiler.probe_run import SHORTEST_SEEN_MS, ProbeRun, Stretch, parallelism
from chiron.workflow.profile import Period, PeriodKind

#: The shortest wait that aligns the two clocks, in milliseconds.
_ANCHOR_MS = 1.0
#: A smaller part of a wait is an alignment error of the two clocks.
_SMALLEST_PART = 0.1

#: The precision of the probe's times, in milliseconds.
_SHORTEST_PIECE_MS = 0.05

#: A time of strace's clock and the same time of the probe's clock.
Anchor = tuple[float, float]


def probed_periods(run: ProbeRun, latency_ms: float) -> tuple[Period, ...]:
    """Return the periods of a run of `latency_ms` from the probe alone."""
    scale = latency_ms / run.duration_ms if run.duration_ms else 0.0
    pieces = [
        piece
        for stretch in run.stretches
        for piece in _waited([_piece(stretch, (stretch.end_ms - stretch.start_ms) * scale)])
    ]
    return laid_out(pieces or [Piece("cpu", latency_ms)], latency_ms)


def reconciled(periods: Sequence[Period], run: ProbeRun) -> tuple[Period, ...]:
    """Return strace's `periods` with the kinds that the probe saw in `run`."""
    if not periods:
        return ()
    latency_ms = periods[-1].start_ms + periods[-1].duration_ms
    anchors = _anchors(periods, run, latency_ms)
    pieces: list[Piece] = []
    for seen, row in groupby(periods, lambda period: period.duration_ms >= SHORTEST_SEEN_MS):
        if seen:
            pieces += [piece for period in row for piece in _told(period, run, anchors)]
        else:
            pieces += _row(list(row), run, anchors)
    return laid_out(pieces, latency_ms)


def _anchors(periods: Sequence[Period], run: ProbeRun, latency_ms: float) -> list[Anchor]:
    """Return equal times of `periods` and `run`, in order: begin, end, ends of common waits."""
    anchors = [(0.0, 0.0)]
    seen = [s for s in run.stretches if s.kind == "block" and s.end_ms - s.start_ms > _ANCHOR_MS]
    for period in periods:
        if period.kind != "block" or period.duration_ms <= _ANCHOR_MS:
            continue
        ends = [*anchors[-1:], (latency_ms, run.duration_ms)]
        start = _translated(period.start_ms, ends)
        end = _translated(period.start_ms + period.duration_ms, ends)
        while seen and seen[0].end_ms <= start:
            del seen[0]
        if seen and _overlap(seen[0], start, end) > (end - start) / 2:
            anchors.append((period.start_ms, seen[0].start_ms))
            anchors.append((period.start_ms + period.duration_ms, seen.pop(0).end_ms))
    return [*anchors, (latency_ms, run.duration_ms)]


def _translated(time_ms: float, anchors: Sequence[Anchor]) -> float:
    """Convert `time_ms` to the second clock, by interpolation between the anchors."""
    for (from_one, from_other), (to_one, to_other) in pairwise(anchors):
        if time_ms <= to_one:
            whole = to_one - from_one
            part = (time_ms - from_one) / whole if whole else 0.0
            return from_other + part * (to_other - from_other)
    return anchors[-1][1]


def _told(period: Period, run: ProbeRun, anchors: Sequence[Anchor]) -> Iterable[Piece]:
    """Return the pieces of `period` with the kinds that the probe saw."""
    pieces = _between(period.start_ms, period.start_ms + period.duration_ms, run, anchors)
    return _wait(period, pieces) if period.kind == "block" else _computing(period, pieces)


def _row(periods: Sequence[Period], run: ProbeRun, anchors: Sequence[Anchor]) -> list[Piece]:
    """Return the pieces of consecutive periods too short for the probe, which sees their sum."""
    start_ms, end_ms = periods[0].start_ms, periods[-1].start_ms + periods[-1].duration_ms
    pieces = _between(start_ms, end_ms, run, anchors)
    found = [Piece(period.kind, period.duration_ms, period.syscall) for period in periods]
    native_ms, held_ms = _time_ms(pieces, "native"), _time_ms(pieces, "cpu")
    if end_ms - start_ms < SHORTEST_SEEN_MS or native_ms <= _time_ms(pieces, "block"):
        return found
    calls_ms, between_ms = _time_ms(found, "block"), _time_ms(found, "cpu")
    whole_ms, share = calls_ms + between_ms, native_ms / (native_ms + held_ms)
    if not calls_ms or not between_ms:
        return _computing(Period(kind="cpu", start_ms=start_ms, duration_ms=whole_ms), pieces)
    return [
        piece._replace(kind="native", duration_ms=piece.duration_ms * whole_ms * share / calls_ms)
        if piece.kind == "block"
        else piece._replace(duration_ms=piece.duration_ms * whole_ms * (1 - share) / between_ms)
        for piece in found
    ]


def _computing(period: Period, pieces: Sequence[Piece]) -> list[Piece]:
    """Split computing into ``cpu`` and ``native``; keep waiting only if most of it is waiting.

    Less waiting is rather another program on the core; more is computing that tracing added.
    """
    whole = _whole_ms(pieces)
    if _time_ms(pieces, "block") > whole / 2:
        return _stretched(pieces, period)
    return _stretched([piece for piece in pieces if piece.kind != "block"], period)


def _wait(period: Period, pieces: Sequence[Piece]) -> list[Piece]:
    """Return ``cpu`` for a wait that mostly holds the GIL, else its waiting and computing parts."""
    whole = _whole_ms(pieces)
    if _time_ms(pieces, "cpu") > whole / 2:
        return [Piece("cpu", period.duration_ms, period.syscall)]
    pieces = _waited([piece for piece in pieces if piece.kind != "cpu"])
    if _time_ms(pieces, "native") < _SMALLEST_PART * whole:
        return [Piece("block", period.duration_ms, period.syscall)]
    return _stretched([piece._replace(syscall=period.syscall) for piece in pieces], period)


def _waited(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces of a wait; computing of the function's processes becomes ``native``.

    The CPU clocks of processes advance with the ticks of their cores, every few milliseconds. So
    the amount of computing in a wait is known but not its time: it is placed in the first part.
    """
    waiting_ms = _time_ms(pieces, "block")
    beside_ms = sum(p.duration_ms * p.parallelism for p in pieces if p.kind == "block")
    if beside_ms < _SMALLEST_PART * waiting_ms or not waiting_ms:
        return list(pieces)
    whole = _whole_ms(pieces)
    native_ms = min(whole, beside_ms + whole - waiting_ms)
    native_ms = whole if whole - native_ms < _SMALLEST_PART * whole else native_ms
    core_ms = sum(piece.duration_ms * piece.parallelism for piece in pieces)
    native = Piece("native", native_ms, pieces[0].syscall, parallelism(core_ms / native_ms))
    return [native, Piece("block", whole - native_ms, pieces[0].syscall)]


def _stretched(pieces: Sequence[Piece], period: Period) -> list[Piece]:
    pieces = [piece for piece in pieces if piece.duration_ms >= _SHORTEST_PIECE_MS]
    whole = _whole_ms(pieces)
    if not whole:
        return [Piece(period.kind, period.duration_ms, period.syscall)]
    scale = period.duration_ms / whole
    return [piece._replace(duration_ms=piece.duration_ms * scale) for piece in pieces]


def _between(
    start_ms: float, end_ms: float, run: ProbeRun, anchors: Sequence[Anchor]
) -> list[Piece]:
    """Return the probe's pieces between two times of strace's clock."""
    start, end = _translated(start_ms, anchors), _translated(end_ms, anchors)
    return [
        _piece(s, _overlap(s, start, end)) for s in run.stretches if _overlap(s, start, end) > 0
    ]


def _piece(stretch: Stretch, duration_ms: float) -> Piece:
    return Piece(stretch.kind, duration_ms, stretch.syscall, stretch.parallelism)


def _whole_ms(pieces: Sequence[Piece]) -> float:
    return sum(piece.duration_ms for piece in pieces)


def _time_ms(pieces: Sequence[Piece], kind: PeriodKind) -> float:
    return sum(piece.duration_ms for piece in pieces if piece.kind == kind)


def _overlap(stretch: Stretch, start: float, end: float) -> float:
    return min(stretch.end_ms, end) - max(stretch.start_ms, start)
