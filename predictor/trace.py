"""A plan's timeline in the format of Chrome's tracing, which Perfetto and chrome://tracing draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from predictor.plan_timeline import Timeline, WrapTimeline
from predictor.simulator import COMPUTING, Span
from predictor.trace_events import (
    COUNTER,
    WORKFLOW,
    Event,
    complete,
    document,
    microseconds,
    name,
    process_name,
)

Item = TypeVar("Item")

_LABELS = {
    "cpu": "computing with the GIL",
    "native": "computing without the GIL",
    "block": "blocked",
    "wait-gil": "waiting for the GIL",
    "start": "being started",
    "started": "waiting for the thread it started",
    "join": "waiting for its helpers",
    "await": "waiting for the other end of a stream",
}


def chrome_trace(timeline: Timeline) -> dict[str, Any]:
    """Calls, processes, threads and busy cores of a plan as one JSON object."""
    events = [name("process_name", WORKFLOW, 0, "workflow")]
    events.append(complete("request", "request", WORKFLOW, 0, 0.0, timeline.latency_ms))
    calls = sorted(timeline.calls, key=lambda call: call.start_ms)
    for row, call in _in_rows([(call.start_ms, call.end_ms) for call in calls], calls):
        what = f"call {call.wrap}"
        events.append(complete(what, "network", WORKFLOW, row + 1, call.start_ms, call.end_ms))
    first = WORKFLOW + 1
    for wrap in timeline.wraps:
        events += _wrap(wrap, range(first, first + len(wrap.tasks)))
        first += len(wrap.tasks)
    return document(events)


def _in_rows(
    times_ms: Sequence[tuple[float, float]], what: Sequence[Item]
) -> Iterator[tuple[int, Item]]:
    """Rows, from 0, so that in none two lie over each other; they are in order of beginning."""
    ends_ms = list[float]()
    for (start_ms, end_ms), item in zip(times_ms, what, strict=True):
        free = (row for row, before_ms in enumerate(ends_ms) if before_ms <= start_ms)
        row = next(free, len(ends_ms))
        ends_ms[row : row + 1] = [end_ms]
        yield row, item


def _wrap(wrap: WrapTimeline, pids: Sequence[int]) -> Iterator[Event]:
    for process, (pid, tasks) in enumerate(zip(pids, wrap.tasks, strict=True)):
        yield process_name(pid, wrap.wrap, process)
        yield name("thread_name", pid, 0, "starter")
        for thread, task in enumerate(tasks):
            own = [s for s in wrap.spans if (s.process, s.thread) == (process, thread)]
            yield from _task(task, own, pid, thread + 1)
    for span in wrap.spans:
        if span.kind not in _LABELS:  # a helper, which would lie over what its function does
            continue
        pid, row = pids[span.process], span.thread + 1
        event = complete(_LABELS[span.kind], span.kind, pid, row, span.start_ms, span.end_ms)
        event["args"] = {"waiting for a core, ms": round(span.wait_core_ms, 4)}
        yield event
    gathers_ms = sorted(wrap.gathers_ms)
    for row, (start_ms, end_ms) in _in_rows(gathers_ms, gathers_ms):
        place = len(wrap.tasks[0]) + 1 + row
        yield complete("gathering", "gather", pids[0], place, start_ms, end_ms)
    yield from _busy_cores(wrap, pids[0])


def _task(task: str, spans: Sequence[Span], pid: int, row: int) -> Iterator[Event]:
    """The task as a whole, which is drawn around what it does."""
    if spans:
        begin_ms = min(span.start_ms for span in spans)
        yield complete(task, "task", pid, row, begin_ms, max(s.end_ms for s in spans))


def _busy_cores(wrap: WrapTimeline, pid: int) -> Iterator[Event]:
    """How many cores of the wrap compute, whenever that changes."""
    changes: dict[float, int] = {}
    for span in wrap.spans:
        if span.kind in COMPUTING:
            changes[span.start_ms] = changes.get(span.start_ms, 0) + 1
            changes[span.end_ms] = changes.get(span.end_ms, 0) - 1
    computing = 0
    for time_ms in sorted(changes):
        computing += changes[time_ms]
        busy = {"busy": min(computing, wrap.cores)}
        yield {
            "name": f"cores of {wrap.wrap}",
            "ph": COUNTER,
            "pid": pid,
            "ts": microseconds(time_ms),
            "args": busy,
        }
