"""Predicted and measured timelines as rows of bars on one axis, and the tasks that differ most.

These functions run in processes of `chiron.services.child`; their results are JSON.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from statistics import median_low
from typing import Any

from chiron.deployment.invoke import find_invoker
from chiron.deployment.launcher import Launcher
from chiron.predictor.explain import timed
from chiron.services.planning import PredictRequest
from chiron.workflow.documents import validate
from chiron.workflow.plan import Plan, process_name
from chiron.workflow.timeline import Kind, Span, Timeline

#: The requests, after a first warm-up request, of which the one with the median latency is shown.
REQUESTS = 5
#: The names of the kinds of spans in the drawing.
LABELS: dict[Kind, str] = {
    "cpu": "computes with the GIL",
    "native": "computes without the GIL",
    "block": "blocked",
    "wait-gil": "waits for the GIL",
    "start": "is started",
    "started": "waits for a thread that it started",
    "join": "waits for threads of its own",
    "await": "waits for a stream",
    "transfer": "on its way",
    "gather": "results are gathered",
    "emit": "emits",
    "task": "runs, as measured",
}
#: The most marks of the axis, enough for a page that is zoomed in.
_MARKS = 200
#: A process of a wrap, and a task in it; None for spans without a task.
_Place = tuple[str, int, str | None]


def measured(connect: Any, workflow: str, planner: str | None, request: str) -> dict[str, Any]:
    """Return the median ``timeline`` of `REQUESTS` requests to a workflow, and all latencies.

    `connect` is that of `chiron.services.host.Config`.

    Raises the errors of `chiron.deployment.invoke.find_invoker` and of its invoker.
    """
    connected: AbstractContextManager[Launcher] = connect()
    with connected as launcher, find_invoker(launcher.gateway, workflow, planner) as invoker:
        body = request.encode()
        answers = [invoker.invoke(body, trace=True) for _ in range(1 + REQUESTS)][1:]
    latencies_ms = [answer.latency_ms for answer in answers]
    middle = answers[latencies_ms.index(median_low(latencies_ms))]
    return {
        "timeline": middle.timeline.model_dump(mode="json", exclude_none=True),
        "latencies_ms": sorted(latencies_ms),
    }


def drawn(known: PredictRequest | None, seen: dict[str, Any] | None) -> dict[str, Any]:
    """Return the drawing of a plan's prediction and of a measured timeline.

    ``rows`` are a heading for each process and its tasks, each with bars. ``tasks`` has a line of
    the table for each task, largest difference first. ``marks`` are those of the axis. Time zero is
    when the first wrap has the request; earlier times are the client's.
    """
    found: list[Timeline] = []
    if known is not None and known.plan is not None:
        share = known.profile.mix[0]
        found.append(timed(known.plan, known.parsed, share.profile, known.platform)[0])
    if seen is not None:
        found.append(validate(Timeline, seen, "the measured timeline"))
    kinds = {span.kind for each in found for span in each.spans}
    if seen is None:
        kinds.discard("task")  # a predicted task is drawn as its parts
    low_ms, high_ms = _bounds(found)
    return {
        "rows": list(_rows(found, low_ms, high_ms)),
        "kinds": [kind for kind in LABELS if kind in kinds],
        "marks": _marks(low_ms, high_ms),
        "tasks": _by_task(found),
        "latencies_ms": {each.source: each.latency_ms for each in found},
        "differs": known is not None and known.plan is not None and _differs(known.plan, found),
    }


def _differs(plan: Plan, found: Iterable[Timeline]) -> bool:
    """Return whether a task has run in another place than in `plan`."""
    places = {
        (wrap.name, number, task)
        for wrap in plan.wraps
        for number, process in enumerate(wrap.processes)
        for task in process
    }
    measured = (span for each in found if each.source == "measured" for span in each.tasks)
    ran = ((span.wrap, span.process or 0, span.task or "") for span in measured)
    # The second run of a task is called NAME#2 if the workflow decides how often it runs.
    return any(
        (wrap, number, task) not in places and (wrap, number, task.rpartition("#")[0]) not in places
        for wrap, number, task in ran
    )


def _place(span: Span) -> _Place:
    return span.wrap, span.process or 0, span.task


def _bounds(found: Iterable[Timeline]) -> tuple[float, float]:
    lows_ms, highs_ms = [0.0], [1e-3]
    for each in found:
        lows_ms += [span.start_ms - each.arrived_ms for span in each.spans]
        highs_ms += [span.end_ms - each.arrived_ms for span in each.spans]
        highs_ms.append(each.latency_ms - each.arrived_ms)
    return min(lows_ms), max(highs_ms)


def _marks(low_ms: float, high_ms: float) -> list[tuple[float, str]]:
    """Return the positions of the axis's marks in percent, with their texts, at round distances."""
    whole_ms = high_ms - low_ms
    step_ms = next(
        step
        for power in range(-4, 9)
        for step in (10.0**power, 2 * 10.0**power, 5 * 10.0**power)
        if whole_ms / step <= _MARKS
    )
    first = -int(-low_ms // step_ms)
    numbers = range(first, int(high_ms // step_ms) + 1)
    return [
        (round(100 * (n * step_ms - low_ms) / whole_ms, 3), f"{n * step_ms:g}") for n in numbers
    ]


def _rows(found: Sequence[Timeline], low_ms: float, high_ms: float) -> Iterator[dict[str, Any]]:
    """Yield a heading for each process, with spans of no task, and a row for each of its tasks."""
    spans = defaultdict[_Place, list[tuple[Timeline, Span]]](list)
    processes: dict[tuple[str, int], dict[str, None]] = {}
    for timeline in found:
        home = {span.task: _place(span) for span in timeline.tasks}
        for wrap in timeline.cores:
            processes.setdefault((wrap, 0), {})
        for span in timeline.spans:
            # A transfer to a task is drawn in the task's row, whatever process of its wrap runs it.
            place = home.get(span.task, _place(span)) if span.kind == "transfer" else _place(span)
            tasks = processes.setdefault(place[:2], {})
            if place[2] is not None:
                tasks.setdefault(place[2])
            spans[place].append((timeline, span))
    wraps = list(dict.fromkeys(wrap for wrap, _ in processes))
    for wrap, process in sorted(processes, key=lambda key: (wraps.index(key[0]), key[1])):
        name = f"{wrap}, {process_name(process)}"
        for task in (None, *processes[wrap, process]):
            its = spans[wrap, process, task]
            yield {
                "label": task or name,
                "heading": task is None,
                "bars": [bar for each in found for bar in _bars(each, its, low_ms, high_ms)],
            }


def _bars(
    timeline: Timeline, its: Iterable[tuple[Timeline, Span]], low_ms: float, high_ms: float
) -> Iterator[dict[str, Any]]:
    """Yield a bar for each span; a task's bar has its inner spans as parts of its length."""
    own = [span for each, span in its if each is timeline and span.kind != "helper"]
    whole_ms = high_ms - low_ms
    task = next((span for span in own if span.kind == "task"), None)
    inside = [s for s in own if task and task.start_ms <= s.start_ms and s.kind not in _APART]
    for span in own:
        if span in inside and span is not task:
            continue
        parts = [each for each in inside if each is not task] if span is task else []
        from_ms, to_ms = (at - timeline.arrived_ms for at in (span.start_ms, span.end_ms))
        yield {
            "source": timeline.source,
            "kind": span.kind,
            "left": round(100 * (from_ms - low_ms) / whole_ms, 3),
            "width": round(100 * (to_ms - from_ms) / whole_ms, 3),
            "parts": [
                (
                    part.kind,
                    round(100 * (part.start_ms - span.start_ms) / max(span.duration_ms, 1e-9), 2),
                    round(100 * (part.end_ms - span.start_ms) / max(span.duration_ms, 1e-9), 2),
                )
                for part in parts
            ],
            "tooltip": _tooltip(timeline, span, parts, from_ms, to_ms),
        }


#: The kinds of spans with bars of their own, even while their task runs.
_APART: tuple[Kind, ...] = ("emit", "transfer", "start")


def _tooltip(
    timeline: Timeline, span: Span, parts: Sequence[Span], from_ms: float, to_ms: float
) -> str:
    what = span.output if span.kind == "emit" else span.task
    name = f"{what}, " if what else ""
    lines = [f"{name}{timeline.source}: {from_ms:.2f} to {to_ms:.2f} ms ({LABELS[span.kind]})"]
    times_ms: dict[Kind, float] = {}
    for part in parts:
        times_ms[part.kind] = times_ms.get(part.kind, 0.0) + part.duration_ms
    waits_ms = sum(each.wait_core_ms for each in parts or [span])
    lines += [f"{LABELS[kind]}: {time_ms:.2f} ms" for kind, time_ms in times_ms.items()]
    lines += [f"of it without a core: {waits_ms:.2f} ms"] * (waits_ms >= 0.01)
    return "\n".join(lines)


def _by_task(found: Sequence[Timeline]) -> list[dict[str, Any]]:
    """Return the place of each task, its start and end, and its excess over the prediction."""
    tasks: dict[str, dict[str, Any]] = {}
    for each in found:
        for span in each.tasks:
            line = tasks.setdefault(span.task or "", {"task": span.task})
            place = f"{span.wrap}, {process_name(span.process or 0)}"
            line.setdefault("place", place)
            line[each.source] = (span.start_ms - each.arrived_ms, span.end_ms - each.arrived_ms)
    for line in tasks.values():
        if "predicted" in line and "measured" in line:
            predicted_ms, measured_ms = (
                end - start for start, end in (line["predicted"], line["measured"])
            )
            line["off_ms"] = measured_ms - predicted_ms
    return sorted(tasks.values(), key=lambda line: -abs(line.get("off_ms", 0.0)))
