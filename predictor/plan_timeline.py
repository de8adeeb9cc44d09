"""When every wrap of a plan does what, in milliseconds from the request on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from predictor.predict import Predictor, caller_of, parts_of
from predictor.simulator import Span
from workflow.model import Workflow
from workflow.plan import Plan


@dataclass(frozen=True)
class WrapTimeline:
    """What one wrap does in one stage.

    ``tasks`` are those of every process, ``starts_ms`` when each process can run them. Those and
    the spans count from ``start_ms``, when the wrap begins, ``network_ms`` after the stage.
    ``gather_ms`` is what it takes to collect the results at the end.
    """

    wrap: str
    cores: int
    stage: int
    start_ms: float
    network_ms: float
    gather_ms: float
    tasks: tuple[tuple[str, ...], ...]
    starts_ms: tuple[float, ...]
    ends_ms: tuple[float, ...]
    spans: tuple[Span, ...]

    @property
    def end_ms(self) -> float:
        """When its results are there."""
        return self.start_ms + max(self.ends_ms) + self.gather_ms


def plan_timeline(plan: Plan, workflow: Workflow, predictor: Predictor) -> list[WrapTimeline]:
    """Every wrap of every stage; the last one of a stage to end is what the stage waits for.

    Raises where plan and workflow differ: see `workflow.plan.Plan.check_against`.
    """
    plan.check_against(workflow)
    found: list[WrapTimeline] = []
    begin_ms = predictor.request_ms(plan)
    for number, latency_ms in enumerate(predictor.plan_stages_ms(plan, workflow)):
        found += _stage(plan, workflow, predictor, number, begin_ms)
        begin_ms += latency_ms
    return found


def _stage(
    plan: Plan, workflow: Workflow, predictor: Predictor, number: int, begin_ms: float
) -> Iterator[WrapTimeline]:
    platform, mechanism = predictor.platform, plan.mechanisms
    parts, caller = parts_of(plan, number, workflow), caller_of(plan, number, workflow)
    following_ms = predictor.following_ms(plan, number)
    runs = predictor.stage_runs(parts, mechanism, caller)
    spans = predictor.stage_spans(parts, mechanism, caller)
    for (index, tasks), (processes, _), run, done in zip(
        plan.parts(workflow.stages[number]), parts, runs, spans, strict=True
    ):
        wrap = plan.wraps[index]
        yield WrapTimeline(
            wrap=wrap.name,
            cores=min(wrap.cpus, platform.cpus),
            stage=number,
            start_ms=begin_ms + following_ms + run.call_ms,
            network_ms=following_ms + run.call_ms,
            gather_ms=run.gathering_ms,
            tasks=tasks,
            starts_ms=tuple(predictor.starts_ms(processes, mechanism)),
            ends_ms=run.ends_ms,
            spans=tuple(done),
        )
