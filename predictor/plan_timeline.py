"""What every wrap of a plan does when, and what the request waits for, from its beginning on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from predictor.moments import runners
from predictor.predict import Predictor
from predictor.simulator import Run, Span
from predictor.wiring import Wired
from workflow.model import Workflow
from workflow.plan import Plan, Processes


@dataclass(frozen=True)
class WrapTimeline:
    """What one wrap does; its processes are numbered by their places in the plan.

    ``gathers_ms`` are the times in which its engine gathers results.
    """

    wrap: str
    cores: int
    tasks: Processes
    spans: tuple[Span, ...]
    gathers_ms: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Call:
    """A call of a wrap, from when it is to be made until the wrap begins."""

    wrap: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class Step:
    """A task that the request waits for, `thread` of a process of one of the wraps; or an output
    that it emits at `end_ms`.

    ``network_ms`` is how long it took to trigger it after the step before it: the engine's turn,
    the call of its wrap, or what it had to wait for on its way from another; for the last step,
    also its own way home. ``gather_ms`` is how long its result was gathered after its end.
    """

    wrap: int
    process: int
    thread: int
    network_ms: float
    triggered_ms: float
    end_ms: float
    gather_ms: float


@dataclass(frozen=True)
class Timeline:
    """A request: what happens in each wrap and between them, and the steps that it waits for.

    These follow one another from ``request_ms``, when the first wrap has it, to ``latency_ms``.
    """

    request_ms: float
    latency_ms: float
    wraps: tuple[WrapTimeline, ...]
    calls: tuple[Call, ...]
    steps: tuple[Step, ...]


def plan_timeline(plan: Plan, workflow: Workflow, predictor: Predictor) -> Timeline:
    """The timeline of `plan`.

    Raises where plan and workflow differ: see `workflow.plan.Plan.check_against`.
    """
    plan.check_against(workflow)
    plan, workflow, made, run, spans = predictor.recorded(plan, workflow)
    return Timeline(
        request_ms=made.request_ms,
        latency_ms=run.nodes[made.reply].fired_ms,
        wraps=tuple(_wraps(plan, predictor.platform.cpus, made, run, spans)),
        calls=tuple(_calls(plan, made, run)),
        steps=tuple(_steps(plan, workflow, made, run)),
    )


def _calls(plan: Plan, made: Wired, run: Run) -> Iterator[Call]:
    for number in sorted(made.called):
        wrap, found = plan.wraps[made.execution.nodes[number].wrap], run.nodes[number]
        yield Call(wrap.name, found.complete_ms, found.fired_ms)


def _wraps(
    plan: Plan, cpus: int, made: Wired, run: Run, spans: Sequence[Span]
) -> Iterator[WrapTimeline]:
    first = 0
    for number, wrap in enumerate(plan.wraps):
        own = range(first, first + len(wrap.processes))
        yield WrapTimeline(
            wrap=wrap.name,
            cores=min(wrap.cpus, cpus),
            tasks=wrap.processes,
            spans=tuple(s._replace(process=s.process - first) for s in spans if s.process in own),
            gathers_ms=tuple(_gathers(number, made, run)),
        )
        first = own.stop


def _gathers(wrap: int, made: Wired, run: Run) -> Iterator[tuple[float, float]]:
    for node, (_, _, complete_ms, fired_ms) in zip(made.execution.nodes, run.nodes, strict=True):
        end_ms = fired_ms - node.delay_ms
        if node.wrap == wrap and node.awaits and end_ms > complete_ms:
            yield complete_ms, end_ms


def _steps(plan: Plan, workflow: Workflow, made: Wired, run: Run) -> list[Step]:
    """What came last each time, from the reply back to the request."""
    tasks = run.tasks
    places = [
        (wrap, process, thread)
        for wrap, each in enumerate(plan.wraps)
        for process, names in enumerate(each.processes)
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
    """The task for which a node waited last, and what came then: turns and calls, and gathering."""
    nodes, network_ms, gather_ms = run.nodes, 0.0, 0.0
    while True:
        node = nodes[number]
        given = made.execution.nodes[number]
        delay_ms, is_sent = given.delay_ms, given.queue is not None or given.sends_ms > 0
        if number in made.called or is_sent:
            network_ms += node.fired_ms - node.complete_ms
        elif node.task is not None or node.node is not None:
            network_ms += delay_ms
            gather_ms += max(0.0, node.fired_ms - delay_ms - node.complete_ms)
        if node.node is None:
            return node.task, network_ms, gather_ms
        number = node.node
