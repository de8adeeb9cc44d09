"""Split a trace into the runs of a handler, by the markers that the wrap runtime sets around them.

The thread that runs a handler calls ``access("/chiron/begin/TASK")`` right before it and
``access("/chiron/end/TASK")`` right after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from chiron.profiler.strace_text import Call, Trace

_MARKER = re.compile(r'"/chiron/(begin|end)/\d+".*')
#: System calls that start a thread or a process and return its id.
STARTING = frozenset({"clone", "clone3", "fork", "vfork"})


@dataclass(frozen=True)
class Strand:
    """A thread, which may share the GIL, or a process that works for the function, in seconds."""

    start_s: float
    end_s: float
    shares_gil: bool
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class HandlerRun:
    """One run of a handler under trace."""

    #: Seconds of the wall clock.
    start_s: float
    end_s: float
    #: The handler's own thread first, then its direct and indirect children.
    strands: tuple[Strand, ...]
    #: The time of a marker, which does nothing: the cost of tracing per call.
    marker_s: float
    #: The time in which its thread had no core, if the wrap reported it.
    delayed_ms: float = 0.0

    @property
    def duration_ms(self) -> float:
        return (self.end_s - self.start_s) * 1000


def handler_runs(trace: Trace) -> list[HandlerRun]:
    """Return the complete runs of handlers in `trace`, in the order of their ends."""
    begun: dict[int, Call] = {}
    runs = []
    for call in trace.calls:
        match = _MARKER.fullmatch(call.arguments) if call.name == "access" else None
        if match is None or call.end_s is None:
            continue
        if match[1] == "begin":
            begun[call.tid] = call
        elif call.tid in begun:
            runs.append(_run(trace, begun.pop(call.tid), call))
    return runs


def _run(trace: Trace, begin: Call, end: Call) -> HandlerRun:
    start_s = _end(begin, begin.start_s)
    end_s = end.start_s
    markers = (start_s - begin.start_s, _end(end, end_s) - end_s)
    strands = tuple(_strands(trace, begin.tid, start_s, end_s, shares_gil=True))
    return HandlerRun(start_s, end_s, strands, min(markers))


def _strands(
    trace: Trace, tid: int, start_s: float, end_s: float, *, shares_gil: bool
) -> Iterator[Strand]:
    """Yield the strand of `tid` and of its direct and indirect children in this time."""
    calls = tuple(
        call
        for call in trace.calls
        if call.tid == tid and call.start_s < end_s and _end(call, end_s) > start_s
    )
    yield Strand(start_s, end_s, shares_gil, calls)
    for call in calls:
        if call.name in STARTING and call.result.isdecimal() and call.start_s >= start_s:
            child = int(call.result)
            gone_s = max(call.start_s, min(end_s, trace.exits.get(child, end_s)))
            is_thread = shares_gil and "CLONE_THREAD" in call.arguments
            yield from _strands(trace, child, call.start_s, gone_s, shares_gil=is_thread)


def _end(call: Call, otherwise: float) -> float:
    return otherwise if call.end_s is None else call.end_s
