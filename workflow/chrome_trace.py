"""Timelines in the format of Chrome's tracing, for Perfetto and chrome://tracing.

References
----------
"Trace Event Format", Google.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chiron.workflow.plan import process_name
from chiron.workflow.profile import Profile
from chiron.workflow.timeline import Span, Timeline

#: The format's event types: complete events with a duration, counters, and names of rows.
_COMPLETE, _COUNTER, _METADATA = "X", "C", "M"
#: The process of the workflow itself; processes of wraps are numbered from 1.
_WORKFLOW = 0

Event = dict[str, Any]

#: The labels of spans other than tasks; helpers are not drawn, as they would cover their function.
_LABELS = {
    "cpu": "computing with the GIL",
    "native": "computing without the GIL",
    "block": "blocked",
    "wait-gil": "waiting for the GIL",
    "start": "being started",
    "started": "waiting for the thread it started",
    "join": "waiting for its helpers",
    "await": "waiting for the other end of a stream",
    "gather": "gathering",
}
#: The kinds of spans that need a core.
_COMPUTING = frozenset({"cpu", "native", "helper"})


def chrome_trace(timeline: Timeline) -> dict[str, Any]:
    """Return the request, transfers, processes, tasks, and predicted busy cores, as JSON.

    A process has its starts in row 0, and each task with its activities in a separate row.
    """
    wraps = dict.fromkeys((*timeline.cores, *(span.wrap for span in timeline.spans)))
    order = {wrap: number for number, wrap in enumerate(wraps)}
    places = {(order[s.wrap], s.process or 0): s.wrap for s in timeline.spans}
    pids = {
        (wrap, process): pid for pid, ((_, process), wrap) in enumerate(sorted(places.items()), 1)
    }
    events = [_name("process_name", _WORKFLOW, 0, timeline.workflow)]
    events.append(_complete("request", "request", _WORKFLOW, 0, 0.0, timeline.latency_ms))
    events += _rows(timeline.of_kind("transfer"), _WORKFLOW, 1)
    for (wrap, process), pid in pids.items():
        events.append(_name("process_name", pid, 0, f"{wrap}, {process_name(process)}"))
        here = [s for s in timeline.spans if (s.wrap, s.process or 0) == (wrap, process)]
        events += _process([span for span in here if span.kind != "transfer"], pid)
        if process == 0 and wrap in timeline.cores:
            events += _busy_cores(wrap, timeline, pid)
    return _document(events)


def _process(spans: Sequence[Span], pid: int) -> Iterator[Event]:
    yield _name("thread_name", pid, 0, "starter")
    yield from (_event(s, pid, 0) for s in spans if s.task is None and s.kind != "gather")
    tasks = list(dict.fromkeys(span.task for span in spans if span.task is not None))
    for row, task in enumerate(tasks, start=1):
        own = [span for span in spans if span.task == task and span.kind != "helper"]
        # Enclosing spans come before enclosed spans.
        own.sort(key=lambda span: (span.start_ms, -span.end_ms, span.kind != "task"))
        yield from (_event(span, pid, row) for span in own)
    yield from _rows([span for span in spans if span.kind == "gather"], pid, len(tasks) + 1)


def _rows(spans: Iterable[Span], pid: int, first: int) -> Iterator[Event]:
    """Yield events in rows from `first` on, without overlaps within a row."""
    ends_ms = list[float]()
    for span in spans:
        free = (row for row, before_ms in enumerate(ends_ms) if before_ms <= span.start_ms)
        row = next(free, len(ends_ms))
        ends_ms[row : row + 1] = [span.end_ms]
        yield _event(span, pid, first + row)


def _event(span: Span, pid: int, row: int) -> Event:
    label = _LABELS.get(span.kind)
    if span.kind == "transfer":
        label = " for ".join(filter(None, (f"to {span.wrap}", span.task)))
    shown = label or span.output or span.task or span.kind
    event = _complete(shown, span.kind, pid, row, span.start_ms, span.end_ms)
    if span.wait_core_ms:
        event["args"] = {"waiting for a core, ms": round(span.wait_core_ms, 4)}
    return event


def _busy_cores(wrap: str, timeline: Timeline, pid: int) -> Iterator[Event]:
    """Yield the wrap's number of computing cores at each change."""
    changes: dict[float, int] = {}
    for span in timeline.spans:
        if span.wrap == wrap and span.kind in _COMPUTING:
            changes[span.start_ms] = changes.get(span.start_ms, 0) + 1
            changes[span.end_ms] = changes.get(span.end_ms, 0) - 1
    computing = 0
    for time_ms in sorted(changes):
        computing += changes[time_ms]
        yield {
            "name": f"cores of {wrap}",
            "ph": _COUNTER,
            "pid": pid,
            "ts": _microseconds(time_ms),
            "args": {"busy": min(computing, timeline.cores[wrap])},
        }


def _document(events: Sequence[Event]) -> dict[str, Any]:
    return {"displayTimeUnit": "ms", "traceEvents": list(events)}


def _complete(
    name: str, category: str, pid: int, row: int, begin_ms: float, end_ms: float
) -> Event:
    """Return an event from `begin_ms` to `end_ms`, in row `row` of process `pid`."""
    return {
        "name": name,
        "cat": category,
        "ph": _COMPLETE,
        "pid": pid,
        "tid": row,
        "ts": _microseconds(begin_ms),
        "dur": round(_microseconds(end_ms) - _microseconds(begin_ms), 3),
    }


def _name(what: str, pid: int, row: int, text: str) -> Event:
    """Return the name event of a row (``thread_name``) or a process (``process_name``)."""
    return {"name": what, "ph": _METADATA, "pid": pid, "tid": row, "args": {"name": text}}


def _microseconds(milliseconds: float) -> float:
    """Convert to the format's unit, rounded to the nanosecond."""
    return round(milliseconds * 1000, 3)


_PID = 1


def profile_trace(profile: Profile) -> dict[str, Any]:
    """Return the trace: one complete event (``"ph": "X"``) per period, times in microseconds."""
    events = [_name("process_name", _PID, 0, profile.workflow)]
    for row, (function, profiled) in enumerate(profile.functions.items(), start=1):
        events.append(_name("thread_name", _PID, row, function))
        for period in profiled.periods:
            end_ms = period.start_ms + period.duration_ms
            what = period.syscall or period.kind
            events.append(_complete(what, period.kind, _PID, row, period.start_ms, end_ms))
    return _document(events)
