"""From waits under trace to the periods of an untraced run: tracing costs time, taken off here.

strace stops a thread before and after each system call. What that adds to the call itself is seen
at the markers, which do nothing else; it is taken off every wait. What it adds to the computing
between two calls is at least about as much and about the same each time, so each stretch gives up
an equal share until the sum fits the untraced latency. What that cannot explain are calls that
strace does not show: where it is attached they stop the thread as well. They are about everywhere,
so for them all stretches are shortened alike. Chiron (§3.2) scales all block periods by one factor
instead, which shortens a sleep of 50 ms because a loop of tiny reads was slowed down.

But computing is not shorter than the probe saw the GIL held, nor, in stretches that are too short
for the probe, than tracing can explain. Where the waits leave less than that, they are of runs that
waited for longer than usual, and are shortened alike. And it is not longer than the probe saw the
function at work: where the waits leave more, tracing made them shorter, as it held up the thread
that waits for another, and not that other; they are lengthened alike.

No stretch of computing vanishes, however short: the function has to get the GIL back for it,
and while others compute, that takes a switch interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chiron.profiler.probe_run import SHORTEST_SEEN_MS
from chiron.profiler.typical_run import TracedRun
from chiron.workflow.profile import Period, PeriodKind

#: Waits shorter than this are taken as computing, in milliseconds: no other thread gets far in it.
SHORTEST_WAIT_MS = 0.02
#: Python needs this long at least between two system calls.
_SHORTEST_GAP_MS = 0.002
#: What tracing adds to the computing after a call, at most, in times of what it adds to the call.
_MOST_MARKERS = 3.0


class Piece(NamedTuple):
    """A piece of time, with what a `chiron.workflow.profile.Period` has.

    `parallelism` is of processes alone, and may be below 1, where the function itself waits.
    """

    kind: PeriodKind
    duration_ms: float
    syscall: str | None = None
    parallelism: float = 1.0


def laid_out(pieces: Sequence[Piece], latency_ms: float) -> tuple[Period, ...]:
    """The pieces one after another on a grid of microseconds, alike neighbours joined."""
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
    """Two pieces of the same kind as one, which keeps cores as busy as both."""
    duration_ms = one.duration_ms + other.duration_ms
    core_ms = one.duration_ms * one.parallelism + other.duration_ms * other.parallelism
    parallelism = core_ms / duration_ms if duration_ms else 1.0
    return Piece(one.kind, duration_ms, one.syscall, parallelism)


def periods(
    run: TracedRun, latency_ms: float, held_ms: float, busy_ms: float
) -> tuple[Period, ...]:
    """The periods that cover [0, `latency_ms`] without gap or overlap.

    Args:
        run: a typical run under trace.
        latency_ms: how long the function takes untraced.
        held_ms: for how long it holds the GIL then.
        busy_ms: for how long it does not wait then, be it in a system call.

    Source: Chiron (SC'23), §3.2.
    """
    gaps: Sequence[float] = run.gaps_ms
    blocks = [max(0.0, wait_ms - run.marker_ms) for wait_ms in run.blocks_ms]
    waiting_ms = sum(blocks)
    least_ms = max(held_ms, _unseen_ms(gaps, run.marker_ms))
    left_ms = latency_ms - waiting_ms
    if left_ms > sum(gaps):  # then it is how runs differ, and the trace alone tells
        left_ms = sum(max(_floor(gap), gap - run.marker_ms) for gap in gaps)
    # No more than under trace, and no more nor less than what was seen without.
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
    # What is left to explain is how one run differs from the next.
    gaps, blocks = _scaled(gaps, latency_ms / whole), _scaled(blocks, latency_ms / whole)
    pieces = [Piece("cpu", gaps[0])]
    for call, block, gap in zip(run.calls, blocks, gaps[1:], strict=True):
        if block >= SHORTEST_WAIT_MS:
            pieces += [Piece("block", block, call), Piece("cpu", gap)]
        else:
            pieces.append(Piece("cpu", block + gap))
    return laid_out(pieces, latency_ms)


def _unseen_ms(gaps: Sequence[float], marker_ms: float) -> float:
    """What computing comes to at least in stretches that the probe does not see.

    Half of what is left of them when tracing costs as much as it can; half, as calls that are not
    shown cost something too.
    """
    short = [gap for gap in gaps if gap < SHORTEST_SEEN_MS]
    return sum(max(_floor(gap), gap - _MOST_MARKERS * marker_ms) for gap in short) / 2


def _scaled(durations: Sequence[float], factor: float) -> list[float]:
    return [duration * factor for duration in durations]


def _shortened(durations: Sequence[float], total: float) -> list[float]:
    """`durations` with the same taken off each, down to the shortest possible.

    Their sum is `total`, unless they cannot become that short.
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
