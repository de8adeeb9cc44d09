"""From waits under trace to the periods of an untraced run: tracing costs time, taken off here.

strace stops a thread before and after each system call. What that adds to the call itself is
seen at the markers, which do nothing else; it is taken off every wait. What it adds to the
computing between two calls is unknown but about the same each time, so each stretch gives up an
equal share until the sum fits the untraced latency. Chiron (§3.2) scales all block periods by one
factor instead, which shortens a sleep of 50 ms because a loop of tiny reads was slowed down.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiler.blocking import Wait
from workflow.profile import Period, PeriodKind

#: Waits shorter than this are taken as computing, in milliseconds: nobody else gets far in it.
SHORTEST_WAIT_MS = 0.01


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
    computing_ms = latency_ms - sum(blocks)
    if computing_ms < 0 or not any(gaps):
        blocks = _scaled(blocks, latency_ms)
        computing_ms = latency_ms - sum(blocks)
    gaps = _shortened(gaps, computing_ms)
    pieces: list[tuple[PeriodKind, float, str | None]] = [("cpu", gaps[0], None)]
    for wait, block, gap in zip(waits, blocks, gaps[1:], strict=True):
        if block >= SHORTEST_WAIT_MS:
            pieces += [("block", block, wait.syscall), ("cpu", gap, None)]
        else:
            pieces.append(("cpu", block + gap, None))
    return _laid_out(pieces, latency_ms)


def _gaps(waits: Sequence[Wait], traced_ms: float) -> list[float]:
    """The stretches of computing before, between and after the waits; some may be empty."""
    starts = [*(wait.start_ms for wait in waits), traced_ms]
    ends = [0.0, *(wait.end_ms for wait in waits)]
    return [max(0.0, start - end) for start, end in zip(starts, ends, strict=True)]


def _scaled(durations: list[float], total: float) -> list[float]:
    whole = sum(durations)
    return [duration * total / whole for duration in durations] if whole else durations


def _shortened(durations: list[float], total: float) -> list[float]:
    """`durations` with the same taken off each, none below 0, so that they sum up to `total`."""
    excess = sum(durations) - total
    if excess <= 0:
        return _scaled(durations, total)
    share, left = 0.0, excess
    for done, duration in enumerate(sorted(durations)):
        share = left / (len(durations) - done)
        if share <= duration:
            break
        left -= duration
    return [max(0.0, duration - share) for duration in durations]


def _laid_out(
    pieces: Sequence[tuple[PeriodKind, float, str | None]], latency_ms: float
) -> tuple[Period, ...]:
    """The pieces one after another on a grid of microseconds, alike neighbours joined."""
    joined: list[tuple[PeriodKind, float, str | None]] = []
    for kind, duration, syscall in pieces:
        if duration <= 0:
            continue
        if joined and joined[-1][0::2] == (kind, syscall):
            joined[-1] = (kind, joined[-1][1] + duration, syscall)
        else:
            joined.append((kind, duration, syscall))
    found: list[Period] = []
    end = position = 0.0
    for number, (kind, duration, syscall) in enumerate(joined, start=1):
        position += duration
        until = round(latency_ms if number == len(joined) else min(position, latency_ms), 3)
        if until > end:
            length = round(until - end, 3)
            found.append(Period(kind=kind, start_ms=end, duration_ms=length, syscall=syscall))
            end = until
    return tuple(found)
