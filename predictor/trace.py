"""A plan's timeline in the format of Chrome's tracing, which Perfetto and chrome://tracing draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from predictor.plan_timeline import WrapTimeline
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

_LABELS = {
    "cpu": "computing with the GIL",
    "native": "computing without the GIL",
    "block": "blocked",
    "wait-gil": "waiting for the GIL",
    "start": "being started",
    "started": "waiting for the thread it started",
    "join": "waiting for its helpers",
}


def chrome_trace(timeline: Sequence[WrapTimeline]) -> dict[str, Any]:
    """Stages, calls, processes, threads and busy cores of a plan as one JSON object."""
    numbers: dict[tuple[str, int], int] = {}
    for wrap in timeline:
        for process in range(len(wrap.tasks)):
            numbers.setdefault((wrap.wrap, process), len(numbers) + 1)
    events = [name("process_name", WORKFLOW, 0, "workflow")]
    events += [process_name(pid, *key) for key, pid in numbers.items()]
    events += _stages(timeline)
    for wrap in timeline:
        events += _wrap(wrap, [numbers[wrap.wrap, p] for p in range(len(wrap.tasks))])
    return document(events)


def _stages(timeline: Sequence[WrapTimeline]) -> Iterator[Event]:
    for number in sorted({wrap.stage for wrap in timeline}):
        wraps = [wrap for wrap in timeline if wrap.stage == number]
        begin_ms = min(wrap.start_ms - wrap.network_ms for wrap in wraps)
        end_ms = max(wrap.end_ms for wrap in wraps)
        yield complete(f"stage {number}", "stage", WORKFLOW, 0, begin_ms, end_ms)
        for row, wrap in enumerate(wraps, start=1):
            if wrap.network_ms:
                call_ms = wrap.start_ms - wrap.network_ms
                call = f"call {wrap.wrap}"
                yield complete(call, "network", WORKFLOW, row, call_ms, wrap.start_ms)


def _wrap(wrap: WrapTimeline, pids: Sequence[int]) -> Iterator[Event]:
    for pid, start_ms in zip(pids, wrap.starts_ms, strict=True):
        yield name("thread_name", pid, 0, "starter")
        if start_ms:
            yield complete(
                "starting up", "startup", pid, 0, wrap.start_ms, wrap.start_ms + start_ms
            )
    for process, tasks in enumerate(wrap.tasks):
        for thread, task in enumerate(tasks):
            own = [s for s in wrap.spans if (s.process, s.thread) == (process, thread)]
            yield from _task(task, own, pids[process], thread + 1, wrap.start_ms)
    for span in wrap.spans:
        if span.kind not in _LABELS:  # a helper, which would lie over what its function does
            continue
        begin_ms, end_ms = wrap.start_ms + span.start_ms, wrap.start_ms + span.end_ms
        pid, row = pids[span.process], span.thread + 1
        event = complete(_LABELS[span.kind], span.kind, pid, row, begin_ms, end_ms)
        event["args"] = {"waiting for a core, ms": round(span.wait_core_ms, 4)}
        yield event
    if wrap.gather_ms:
        gather_ms = wrap.end_ms - wrap.gather_ms
        yield complete("gathering", "gather", pids[0], 0, gather_ms, wrap.end_ms)
    yield from _busy_cores(wrap, pids[0])


def _task(task: str, spans: Sequence[Span], pid: int, row: int, start_ms: float) -> Iterator[Event]:
    """The task as a whole, which is drawn around what it does."""
    if spans:
        begin_ms = start_ms + min(span.start_ms for span in spans)
        yield complete(task, "task", pid, row, begin_ms, start_ms + max(s.end_ms for s in spans))


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
            "ts": microseconds(wrap.start_ms + time_ms),
            "args": busy,
        }
