"""When every wrap of a plan does what, in milliseconds from the request on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from predictor.equations import process_starts_ms
from predictor.predict import Predictor, functions_of
from predictor.timeline import Span
from workflow.model import Workflow
from workflow.plan import Plan, WrapStage


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

    Raises
    ------
    ChironError
        Where plan and workflow differ: see `workflow.plan.Plan.check_against`.
    """
    plan.check_against(workflow)
    found: list[WrapTimeline] = []
    begin_ms = 0.0 if plan.called_by_client else predictor.platform.request_ms
    for number, latency_ms in enumerate(predictor.plan_stages_ms(plan, workflow)):
        found += _stage(plan, workflow, predictor, number, begin_ms)
        begin_ms += latency_ms
    return found


def _stage(
    plan: Plan, workflow: Workflow, predictor: Predictor, number: int, begin_ms: float
) -> Iterator[WrapTimeline]:
    """Equation (2): wrap k leaves (k-1) T_INV late and pays T_RPC, unless it calls the others."""
    platform = predictor.platform
    parts = plan.stage(number)
    calls_others = parts[0][0] == 0 and not plan.called_by_client
    for place, (index, part) in enumerate(parts):
        remote = place > 0 or not calls_others
        network_ms = place * platform.invoke_ms + platform.rpc_ms if remote else 0.0
        yield _wrap(plan, workflow, predictor, index, part, begin_ms, network_ms)


def _wrap(
    plan: Plan,
    workflow: Workflow,
    predictor: Predictor,
    index: int,
    part: WrapStage,
    begin_ms: float,
    network_ms: float,
) -> WrapTimeline:
    platform, wrap = predictor.platform, plan.wraps[index]
    processes = functions_of(part, workflow)
    count = len(processes)
    return WrapTimeline(
        wrap=wrap.name,
        cores=min(wrap.cpus, platform.cpus),
        stage=part.stage,
        start_ms=begin_ms + network_ms,
        network_ms=network_ms,
        gather_ms=platform.ipc_ms * (count - 1),
        tasks=part.processes,
        starts_ms=tuple(process_starts_ms(count, plan.mechanism, platform)),
        ends_ms=tuple(predictor.simulate(processes, wrap.cpus, plan.mechanism)),
        spans=tuple(predictor.spans(processes, wrap.cpus, plan.mechanism)),
    )
