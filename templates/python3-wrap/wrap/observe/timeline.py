"""What ran when, from the request's arrival on, in the format of `workflow.timeline.Timeline`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from wrap.core.program import keys
from wrap.core.wrap_spec import Wrap
from wrap.net.messages import Result
from wrap.observe.trace_context import TraceContext


def timeline(
    wrap: Wrap,
    results: Sequence[Result],
    arrived: float,
    answered: float,
    trace: TraceContext | None = None,
) -> dict[str, Any]:
    """Return the timeline of a request that `wrap` has answered.

    Spans of traced tasks have ``wait_core_ms``, ``cpu_ms`` and ``processes_mib``, and the results
    of the requested probes. There are no transfers if a workflow decides while it runs: then it is
    unknown for which ends a task has waited.

    Args:
        arrived, answered: when the request came, and when its answer was made, in seconds of the
            monotonic clock.
        trace: gives spans of tasks a ``span_id``.
    """
    found = [*_starts(results), *_transfers(wrap, results, arrived), *_tasks(wrap, results, trace)]
    spans = [
        span | {name: _since(arrived, span[name]) for name in _MOMENTS if name in span}
        for span in found
    ]
    return {
        "format": 1,
        "workflow": wrap.workflow,
        "source": "measured",
        "latency_ms": _since(arrived, answered),
        "spans": sorted(spans, key=lambda span: (span["start_ms"], span["end_ms"])),
    }


#: The fields that are a time, or two times.
_MOMENTS = ("start_ms", "end_ms", "writes_ms", "reads_ms")


def _starts(results: Iterable[Result]) -> Iterator[dict[str, Any]]:
    """Yield the starts of processes, each once, even if several results report it."""
    for wrap, process, asked, ready in dict.fromkeys(
        (result.wrap, result.process, result.asked, result.ready) for result in results
    ):
        if asked is not None and ready is not None:
            yield _span("start", wrap, process, asked, ready)


def _tasks(
    wrap: Wrap, results: Iterable[Result], trace: TraceContext | None
) -> Iterator[dict[str, Any]]:
    """Yield the tasks and their emitted outputs, which have no length unless written as a file."""
    runs = Counter[str]()
    for result in sorted(results, key=lambda each: each.started):
        emitted = result.emitted is not None
        task = wrap.name_of(wrap.giver_of(result.task) if emitted else result.task)
        if wrap.instances:
            runs[task] += not emitted
            task = f"{task}#{runs[task]}"
        kind = "emit" if emitted else "task"
        span = _span(kind, result.wrap, result.process, result.started, result.ended)
        told = {
            "task": task,
            "function": result.function,
            "output": result.emitted,
            "wait_core_ms": _ms(result.delayed),
            "cpu_ms": _ms(result.cpu),
            "processes_mib": result.processes_mib,
            "runtime_mib": result.runtime_mib,
            "own_mib": result.own_mib,
            "writes_ms": result.writes,
            "reads_ms": result.reads,
            "ticks": result.ticks,
            "cpu_probe_ms": result.cpu_probe and [*map(_ms, result.cpu_probe)],
            "changes": result.changes,
            "error": result.error and f"{result.error['code']}: {result.error['message']}",
            "span_id": trace and trace.span_id(result.number, result.task),
        }
        yield span | {name: value for name, value in told.items() if value is not None}


def _transfers(wrap: Wrap, results: Iterable[Result], arrived: float) -> Iterator[dict[str, Any]]:
    """Yield transfers, from the last awaited end in another wrap until the task's wrap started it.

    An object that came while the task waited for something in its own wrap has no transfer: nothing
    waited for it, and nobody knows when it came.
    """
    if wrap.instances or not wrap.remotes:
        return
    by_number = {result.task: result for result in results}
    for number, result in by_number.items():
        if result.emitted is not None:
            continue
        awaited = [(arrived, wrap.name)]
        for key in keys(wrap.graph.sources[number]):
            if key is not None and (giver := by_number.get(key)):
                awaited.append((giver.ended, giver.wrap))
        last, place = max(awaited)
        end = result.started if result.asked is None else result.asked
        if place != result.wrap and last < end:  # a stream is read before its writer has ended
            span = _span("transfer", result.wrap, None, last, end)
            yield span | {"task": wrap.name_of(number), "function": result.function}


def _span(kind: str, wrap: str, process: int | None, start: float, end: float) -> dict[str, Any]:
    where = {} if process is None else {"process": process}
    return {"kind": kind, "wrap": wrap, **where, "start_ms": start, "end_ms": end}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 4)


def _since(arrived: float, when: Any) -> Any:
    if isinstance(when, list | tuple):
        return [_since(arrived, each) for each in when]
    return round((when - arrived) * 1000, 4)
