"""A plan's timeline in the format of Chrome's tracing, which Perfetto and chrome://tracing draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from predictor.plan_timeline import WrapTimeline
from predictor.timeline import Span

#: What the format calls events: complete ones with a duration, counters, and names of rows.
_COMPLETE, _COUNTER, _METADATA = "X", "C", "M"
#: The row of the workflow itself; processes are numbered from 1.
_WORKFLOW = 0
_LABELS = {
    "cpu": "computing with the GIL",
    "native": "computing without the GIL",
    "block": "blocked",
    "wait-gil": "waiting for the GIL",
    "start": "being started",
    "started": "waiting for the thread it started",
}

Event = dict[str, Any]


def chrome_trace(timeline: Sequence[WrapTimeline]) -> dict[str, Any]:
    """Stages, calls, processes, threads and busy cores of a plan as one JSON object.

    References
    ----------
    "Trace Event Format", Google.
    """
    numbers: dict[tuple[str, int], int] = {}
    for wrap in timeline:
        for process in range(len(wrap.tasks)):
            numbers.setdefault((wrap.wrap, process), len(numbers) + 1)
    events = [_name("process_name", _WORKFLOW, 0, "workflow")]
    for (name, process), pid in numbers.items():
        role = "main process" if process == 0 else f"process {process}"
        events.append(_name("process_name", pid, 0, f"{name}, {role}"))
    events += _stages(timeline)
    for wrap in timeline:
        events += _wrap(wrap, [numbers[wrap.wrap, p] for p in range(len(wrap.tasks))])
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _stages(timeline: Sequence[WrapTimeline]) -> Iterator[Event]:
    for number in sorted({wrap.stage for wrap in timeline}):
        wraps = [wrap for wrap in timeline if wrap.stage == number]
        begin_ms = min(wrap.start_ms - wrap.network_ms for wrap in wraps)
        end_ms = max(wrap.end_ms for wrap in wraps)
        yield _complete(f"stage {number}", "stage", _WORKFLOW, 0, begin_ms, end_ms)
        for row, wrap in enumerate(wraps, start=1):
            if wrap.network_ms:
                call_ms = wrap.start_ms - wrap.network_ms
                name = f"call {wrap.wrap}"
                yield _complete(name, "network", _WORKFLOW, row, call_ms, wrap.start_ms)


def _wrap(wrap: WrapTimeline, pids: Sequence[int]) -> Iterator[Event]:
    for pid, start_ms in zip(pids, wrap.starts_ms, strict=True):
        yield _name("thread_name", pid, 0, "starter")
        if start_ms:
            yield _complete(
                "starting up", "startup", pid, 0, wrap.start_ms, wrap.start_ms + start_ms
            )
    for process, tasks in enumerate(wrap.tasks):
        for thread, task in enumerate(tasks):
            own = [s for s in wrap.spans if (s.process, s.thread) == (process, thread)]
            yield from _task(task, own, pids[process], thread + 1, wrap.start_ms)
    for span in wrap.spans:
        begin_ms, end_ms = wrap.start_ms + span.start_ms, wrap.start_ms + span.end_ms
        pid, row = pids[span.process], span.thread + 1
        event = _complete(_LABELS[span.kind], span.kind, pid, row, begin_ms, end_ms)
        event["args"] = {"waiting for a core, ms": round(span.wait_core_ms, 4)}
        yield event
    if wrap.gather_ms:
        gather_ms = wrap.end_ms - wrap.gather_ms
        yield _complete("gathering", "gather", pids[0], 0, gather_ms, wrap.end_ms)
    yield from _busy_cores(wrap, pids[0])


def _task(task: str, spans: Sequence[Span], pid: int, row: int, start_ms: float) -> Iterator[Event]:
    """The task as a whole, which is drawn around what it does."""
    if spans:
        begin_ms = start_ms + min(span.start_ms for span in spans)
        yield _complete(task, "task", pid, row, begin_ms, start_ms + max(s.end_ms for s in spans))


def _busy_cores(wrap: WrapTimeline, pid: int) -> Iterator[Event]:
    """How many cores of the wrap compute, whenever that changes."""
    changes: dict[float, int] = {}
    for span in wrap.spans:
        if span.kind in ("cpu", "native"):
            changes[span.start_ms] = changes.get(span.start_ms, 0) + 1
            changes[span.end_ms] = changes.get(span.end_ms, 0) - 1
    computing = 0
    for time_ms in sorted(changes):
        computing += changes[time_ms]
        busy = {"busy": min(computing, wrap.cores)}
        yield {
            "name": f"cores of {wrap.wrap}",
            "ph": _COUNTER,
            "pid": pid,
            "ts": _microseconds(wrap.start_ms + time_ms),
            "args": busy,
        }


def _complete(
    name: str, category: str, pid: int, row: int, begin_ms: float, end_ms: float
) -> Event:
    return {
        "name": name,
        "cat": category,
        "ph": _COMPLETE,
        "pid": pid,
        "tid": row,
        "ts": _microseconds(begin_ms),
        "dur": round(_microseconds(end_ms) - _microseconds(begin_ms), 3),
    }


def _name(what: str, pid: int, row: int, name: str) -> Event:
    return {"name": what, "ph": _METADATA, "pid": pid, "tid": row, "args": {"name": name}}


def _microseconds(milliseconds: float) -> float:
    return round(milliseconds * 1000, 3)
