"""From waits under trace to the periods of an untraced run: tracing costs time, taken off here.

strace stops a thread before and after each system call. What that adds to the call itself is
seen at the markers, which do nothing else; it is taken off every wait. What it adds to the
computing between two calls is unknown but about the same each time, so each stretch gives up an
equal share until the sum fits the untraced latency. Chiron (§3.2) scales all block periods by one
factor instead, which shortens a sleep of 50 ms because a loop of tiny reads was slowed down.

No stretch of computing vanishes, however short: the function has to get the GIL back for it,
and while others compute, that takes a switch interval.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiler.blocking import Wait
from profiler.layout import Piece, laid_out
from workflow.profile import Period

#: Waits shorter than this are taken as computing, in milliseconds: nobody else gets far in it.
SHORTEST_WAIT_MS = 0.02
#: Python needs this long at least between two system calls.
_SHORTEST_GAP_MS = 0.002
#: What tracing adds to the computing after a call, at most, in times of what it adds to the call.
_MOST_MARKERS = 3.0


def periods(
    waits: Sequence[Wait], traced_ms: float, marker_ms: float, latency_ms: float
) -> tuple[Period, ...]:
    """The periods that cover [0, `latency_ms`] without gap or overlap.

    Parameters
    ----------
    waits
        The block periods under trace, in order and apart from each other, in [0, `traced_ms`].
    traced_ms
        How long the function took under trace.
    marker_ms
        What tracing adds to one system call.
    latency_ms
        How long the function takes untraced.

    References
    ----------
    Chiron (SC'23), §3.2.
    """
    gaps = _gaps(waits, traced_ms)
    blocks = [max(0.0, wait.end_ms - wait.start_ms - marker_ms) for wait in waits]
    gaps = _shortened(gaps, _computing_ms(gaps, latency_ms - sum(blocks), marker_ms))
    whole = sum(gaps) + sum(blocks)
    if not whole:
        gaps[0] = whole = latency_ms or 1.0
    # What is left to explain is how one run differs from the next.
    scale = latency_ms / whole
    gaps, blocks = [gap * scale for gap in gaps], [block * scale for block in blocks]
    pieces: list[Piece] = [("cpu", gaps[0], None)]
    for wait, block, gap in zip(waits, blocks, gaps[1:], strict=True):
        if block >= SHORTEST_WAIT_MS:
            pieces += [("block", block, wait.syscall), ("cpu", gap, None)]
        else:
            pieces.append(("cpu", block + gap, None))
    return laid_out(pieces, latency_ms)


def _gaps(waits: Sequence[Wait], traced_ms: float) -> list[float]:
    """The stretches of computing before, between and after the waits; some may be empty."""
    starts = [*(wait.start_ms for wait in waits), traced_ms]
    ends = [0.0, *(wait.end_ms for wait in waits)]
    return [max(0.0, start - end) for start, end in zip(starts, ends, strict=True)]


def _computing_ms(gaps: Sequence[float], wanted_ms: float, marker_ms: float) -> float:
    """`wanted_ms`, within what the stretches of computing can come to without tracing.

    That is no more than under trace. Nor is it less than half of what is left of it when tracing
    costs as much as it can; half, as calls that are not shown cost something too.
    """
    least = sum(max(_floor(gap), gap - _MOST_MARKERS * marker_ms) for gap in gaps) / 2
    return min(max(wanted_ms, least), sum(gaps))


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
