"""Pieces of time, one after another, as the periods of a profile."""

from __future__ import annotations

from collections.abc import Sequence

from workflow.profile import Period, PeriodKind

#: Kind, duration in milliseconds, system call.
Piece = tuple[PeriodKind, float, str | None]


def laid_out(pieces: Sequence[Piece], latency_ms: float) -> tuple[Period, ...]:
    """The pieces one after another on a grid of microseconds, alike neighbours joined."""
    ends: list[Piece] = []
    position = 0.0
    for kind, duration, syscall in pieces:
        position += duration
        end = round(min(position, latency_ms), 3)
        if end <= (ends[-1][1] if ends else 0.0):
            continue
        if ends and ends[-1][0::2] == (kind, syscall):
            ends.pop()
        ends.append((kind, end, syscall))
    if ends:
        kind, _, syscall = ends.pop()
        ends.append((kind, round(latency_ms, 3), syscall))
    starts = [0.0, *(end for _, end, _ in ends)]
    return tuple(
        Period(kind=kind, start_ms=start, duration_ms=round(end - start, 3), syscall=syscall)
        for (kind, end, syscall), start in zip(ends, starts, strict=False)
    )
