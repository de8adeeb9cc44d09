"""The timeline of every wrap of a plan, and the critical path of a request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from chiron.predictor.execution import Node
from chiron.predictor.moments import runners
from chiron.predictor.predict import Predictor
from chiron.predictor.simulator import Run
from chiron.predictor.simulator import Span as Simulated
from chiron.predictor.wiring import Wired
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.timeline import Kind, Span, Timeline, in_order


class Step(NamedTuple):
    """A task on the critical path; or an output that it emits at `end_ms`.

    ``network_ms`` is the time to trigger it after the step before it: the engine's turn, the call
    of its wrap, or the transfer of an object. The last step also includes its own way home.
    ``gather_ms`` is how long its result was gathered after its end.
    """

    wrap: str
    process: int
    task: str
    network_ms: float
    triggered_ms: float
    end_ms: float
    gather_ms: float


def plan_timeline(
    plan: Plan, workflow: Workflow, predictor: Predictor
) -> tuple[Timeline, list[Step]]:
    """Return the timeline of `plan`, and the steps of the critical path.

    The steps follow one another from the arrival at the first wrap to the reply. All of the
    request's own way is before that.

    Raises if plan and workflow differ: see `chiron.workflow.plan.Plan.check_against`.
    """
    plan.check_against(workflow)
    plan, workflow, made, run, spans = predictor.recorded(plan, workflow)
    found = [*_in_processes(plan, spans), *_gathers(plan, made, run)]
    timeline = Timeline(
        workflow=workflow.name,
        source="predicted",
        arrived_ms=made.request_ms,
        latency_ms=run.nodes[made.reply].fired_ms,
        spans=in_order([*found, *_transfers(plan, made, run)]),
        cores={wrap.name: min(wrap.cpus, predictor.platform.cpus) for wrap in plan.wraps},
    )
    return timeline, _steps(plan, workflow, made, run)


#: A thread's activities before its task begins, if nothing came before.
_BEFORE = ("start", "wait-gil")


def _in_processes(plan: Plan, spans: Sequence[Simulated]) -> Iterator[Span]:
    """Yield the spans of each process's threads, and of their tasks around those."""
    places = [
        (wrap.name, number, tasks)
        for wrap in plan.wraps
        for number, tasks in enumerate(wrap.processes)
    ]
    whole: dict[tuple[int, int], tuple[float, float]] = {}
    for place, thread, kind, start_ms, end_ms, wait_core_ms in spans:
        wrap, process, tasks = places[place]
        task = tasks[thread] if thread >= 0 else None
        if task is not None:
            begin_ms = end_ms if kind in _BEFORE else start_ms
            from_ms, to_ms = whole.get((place, thread), (begin_ms, end_ms))
            whole[place, thread] = min(from_ms, begin_ms), max(to_ms, end_ms)
        yield Span(
            kind=cast(Kind, kind),
            start_ms=start_ms,
            end_ms=end_ms,
            wrap=wrap,
            process=process,
            task=task,
            wait_core_ms=wait_core_ms,
        )
    for (place, thread), (start_ms, end_ms) in whole.items():
        wrap, process, tasks = places[place]
        yield Span(
            kind="task",
            start_ms=start_ms,
            end_ms=end_ms,
            wrap=wrap,
            process=process,
            task=tasks[thread],
        )


def _gathers(plan: Plan, made: Wired, run: Run) -> Iterator[Span]:
    """Yield the times in which engines gather results."""
    for node, (_, _, complete_ms, fired_ms) in zip(made.execution.nodes, run.nodes, strict=True):
        end_ms = fired_ms - node.delay_ms
        if node.awaits and end_ms > complete_ms:
            wrap = plan.wraps[node.wrap].name
            yield Span(kind="gather", start_ms=complete_ms, end_ms=end_ms, wrap=wrap, process=0)


def _transfers(plan: Plan, made: Wired, run: Run) -> Iterator[Span]:
    """Yield calls, from when they are due until the wrap begins, and objects sent to wraps."""
    for number, (node, found) in enumerate(zip(made.execution.nodes, run.nodes, strict=True)):
        if _is_sent(node) or number in made.called:
            wrap = plan.wraps[node.to if _is_sent(node) else node.wrap].name
            start_ms, end_ms = found.complete_ms, found.fired_ms
            yield Span(kind="transfer", start_ms=start_ms, end_ms=end_ms, wrap=wrap)


def _is_sent(node: Node) -> bool:
    return node.queue is not None or node.sends_ms > 0


def _steps(plan: Plan, workflow: Workflow, made: Wired, run: Run) -> list[Step]:
    """Return the last event of each node, from the reply back to the request."""
    tasks = run.tasks
    places = [
        (wrap.name, process, names[thread])
        for wrap in plan.wraps
        for process, names in enumerate(wrap.processes)
        for thread in runners(list(map(workflow.function_of, names)))
    ]
    steps = list[Step]()
    task, home_ms, gather_ms = _before(made.reply, made, run)
    while task is not None:
        found = tasks[task]
        before, network_ms, gather_before_ms = _before(found.node, made, run)
        network_ms, home_ms = network_ms + home_ms, 0.0
        steps.append(Step(*places[task], network_ms, found.triggered_ms, found.end_ms, gather_ms))
        task, gather_ms = before, gather_before_ms
    return steps[::-1]


def _before(number: int, made: Wired, run: Run) -> tuple[int | None, float, float]:
    """Return the last task that a node awaited, and the network and gathering time since."""
    nodes, network_ms, gather_ms = run.nodes, 0.0, 0.0
    while True:
        node = nodes[number]
        given = made.execution.nodes[number]
        delay_ms = given.delay_ms
        if number in made.called or _is_sent(given):
            network_ms += node.fired_ms - node.complete_ms
        elif node.task is not None or node.node is not None:
            network_ms += delay_ms
            gather_ms += max(0.0, node.fired_ms - delay_ms - node.complete_ms)
        if node.node is None:
            return node.task, network_ms, gather_ms
        number = node.node
