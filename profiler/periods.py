"""From waits under trace to the periods of an untraced run, less the cost of tracing.

strace stops a thread before and after each system call. The cost per call is measured at the
markers, which do nothing else, and is subtracted from every wait. Tracing also delays the computing
between two calls, by at least about that cost and about equally each time. So each stretch of
computing is shortened by an equal amount, until the sum fits the untraced latency. The remaining
excess comes from calls that an attached strace stops but does not show. They occur everywhere, so
all stretches are scaled for them by one factor. Chiron (§3.2) scales all block periods by one
factor instead. That shortens a sleep of 50 ms because a loop of tiny reads was slowed down.

Computing lasts at least as long as the probe saw the GIL held. In stretches too short for the
probe, it lasts at least as long as tracing cannot account for. If the waits leave less time, they
come from runs that waited longer than usual, and are scaled down. Computing lasts at most as long
as the probe saw the function busy. If the waits leave more time, tracing shortened them: it delayed
the waiting thread, not the thread that it waits for. Then they are scaled up.

No stretch of computing vanishes, however short: the function must get the GIL back for it, which
takes a switch interval while other threads compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chiron.profiler.probe_run import SHORTEST_SEEN_MS
from chiron.profiler.typical_run import TracedRun
from chiron.workflow.profile import Period, PeriodKind

#: Waits shorter than this count as computing, in milliseconds: no other thread gets far meanwhile.
SHORTEST_WAIT_MS = 0.02
#: The shortest time of Python between two system calls, in milliseconds.
_SHORTEST_GAP_MS = 0.002
#: The most that tracing adds to the computing after a call, relative to its cost per call.
_MOST_MARKERS = 3.0


class Piece(NamedTuple):
    """A duration with the attributes of a `chiron.workflow.profile.Period`.

    If the function itself waits, `parallelism` counts only its processes and may be below 1.
    """

    kind: PeriodKind
    duration_ms: float
    syscall: str | None = None
    parallelism: float = 1.0


def laid_out(pieces: Sequence[Piece], latency_ms: float) -> tuple[Period, ...]:
    """Return the pieces as consecutive periods in whole microseconds, equal neighbours joined."""
    joined: list[Piece] = []
    ends: list[float] = []
    position = 0.0
    for piece in pieces:
        position += piece.duration_ms
        end = round(min(position, latency_ms), 3)
        if end <= (ends[-1] if ends else 0.0):
            continue
        if joined and joined[-1][0::2] == piece[0::2]:
            ends.pop()
            joined.append(_joined(joined.pop(), piece))
        else:
            joined.append(piece)
        ends.append(end)
    ends[-1:] = [round(latency_ms, 3)] * bool(ends)
    return tuple(
        Period(
            kind=piece.kind,
            start_ms=start,
            duration_ms=round(end - start, 3),
            syscall=piece.syscall,
            parallelism=1.0 if piece.kind == "block" else round(piece.parallelism, 2),
        )
        for piece, start, end in zip(joined, [0.0, *ends], ends, strict=False)
    )


def _joined(one: Piece, other: Piece) -> Piece:
    """Join two pieces of the same kind; the result has their total core time."""
    duration_ms = one.duration_ms + other.duration_ms
    core_ms = one.duration_ms * one.parallelism + other.duration_ms * other.parallelism
    parallelism = core_ms / duration_ms if duration_ms else 1.0
    return Piece(one.kind, duration_ms, one.syscall, parallelism)


def periods(
    run: TracedRun, latency_ms: float, held_ms: float, busy_ms: float
) -> tuple[Period, ...]:
    """Return the periods that cover [0, `latency_ms`] without gap or overlap.

    Args:
        run: a typical run under trace.
        latency_ms: the untraced latency of the function.
        held_ms: the time for which it then holds the GIL.
        busy_ms: the time for which it then does not wait, including system calls that compute.

    Source: Chiron (SC'23), §3.2.
    """
    gaps: Sequence[float] = run.gaps_ms
    blocks = [max(0.0, wait_ms - run.marker_ms) for wait_ms in run.blocks_ms]
    waiting_ms = sum(blocks)
    least_ms = max(held_ms, _unseen_ms(gaps, run.marker_ms))
    left_ms = latency_ms - waiting_ms
    if left_ms > sum(gaps):  # then runs differ: use the trace alone
        left_ms = sum(max(_floor(gap), gap - run.marker_ms) for gap in gaps)
    # No more than under trace, and within the bounds that the probe saw without trace.
    most_ms = min(max(busy_ms, least_ms), sum(gaps), latency_ms)
    computing_ms = min(max(left_ms, least_ms), most_ms)
    shown_ms = _MOST_MARKERS * run.marker_ms * len(gaps)
    gaps = _shortened(gaps, max(computing_ms, sum(gaps) - shown_ms))
    gaps = [max(_floor(gap), gap * computing_ms / (sum(gaps) or 1.0)) for gap in gaps]
    if sum(map(_floor, gaps)) >= latency_ms:  # the shortest computing leaves no time to wait
        blocks = _scaled(blocks, 0.0)
    elif waiting_ms > latency_ms - sum(gaps) > 0:
        blocks = _scaled(blocks, (latency_ms - sum(gaps)) / waiting_ms)
    whole = sum(gaps) + sum(blocks)
    if not whole:
        gaps[0] = whole = latency_ms or 1.0
    # The remaining difference is variation between runs.
    gaps, blocks = _scaled(gaps, latency_ms / whole), _scaled(blocks, latency_ms / whole)
    pieces = [Piece("cpu", gaps[0])]
    for call, block, gap in zip(run.calls, blocks, gaps[1:], strict=True):
        if block >= SHORTEST_WAIT_MS:
            pieces += [Piece("block", block, call), Piece("cpu", gap)]
        else:
            pieces.append(Piece("cpu", block + gap))
    return laid_out(pieces, latency_ms)


def _unseen_ms(gaps: Sequence[float], marker_ms: float) -> float:
    """Return the least computing in stretches that are too short for the probe.

    It is half of their time less the highest cost of tracing; half, as hidden calls cost time too.
    """
    short = [gap for gap in gaps if gap < SHORTEST_SEEN_MS]
    return sum(max(_floor(gap), gap - _MOST_MARKERS * marker_ms) for gap in short) / 2


def _scaled(durations: Sequence[float], factor: float) -> list[float]:
    return [duration * factor for duration in durations]


def _shortened(durations: Sequence[float], total: float) -> list[float]:
    """Shorten all `durations` by the same amount, down to the shortest possible.

    Their sum is then `total`, unless they cannot become that short.
    """
    spare = sorted(duration - _floor(duration) for duration in durations)
    left = sum(durations) - total
    share = 0.0
    for done, room in enumerate(spare):
        share = left / (len(spare) - done)
        if share <= room:
            break
        left -= room
    return [max(_floor(duration), duration - share) for duration in durations]


def _floor(gap_ms: float) -> float:
    return min(gap_ms, _SHORTEST_GAP_MS)
