"""Predicts a plan: every wrap of every stage is simulated, equations (1)-(4) join them."""

from __future__ import annotations

from collections.abc import Sequence

from predictor.engine import EngineName, Processes, engine
from predictor.equations import (
    process_starts_ms,
    stage_latency_ms,
    workflow_latency_ms,
    wrap_latency_ms,
)
from predictor.simulator import simulate
from predictor.threads import Interpreter, Process, Work
from predictor.timeline import Span
from workflow.model import Workflow
from workflow.plan import Mechanism, Plan, Prediction, WrapStage
from workflow.platform import Platform
from workflow.profile import FunctionProfile, Profile

#: Engines agree on more digits of a millisecond than these, so that plans depend on none of them.
_DIGITS = 6


class Predictor:
    """Latencies of wraps, stages and plans of one workflow's functions on one platform.

    Wraps that were simulated once are remembered, since a search asks for the same few again
    and again.

    Parameters
    ----------
    profile, platform
        What the functions do and what the place costs.
    scale
        How much longer or shorter than profiled every function takes, by name (1 where absent).
    engine_name
        What simulates: see `predictor.engine.engine`.
    """

    def __init__(
        self,
        profile: Profile,
        platform: Platform,
        scale: dict[str, float] | None = None,
        engine_name: EngineName = "auto",
    ) -> None:
        self.platform = platform
        self._work = {
            name: _work(function, (scale or {}).get(name, 1.0))
            for name, function in profile.functions.items()
        }
        self._interpreter = Interpreter(
            platform.switch_interval_ms,
            platform.switch_cost_ms,
            platform.thread_startup_ms,
            platform.thread_ready_ms,
        )
        self._engine = engine(engine_name, self._work, self._interpreter)
        self._wraps: dict[tuple[Processes, int, Mechanism], float] = {}

    def wrap_ms(self, processes: Processes, cpus: int, mechanism: Mechanism) -> float:
        """Equation (3): latency of one stage of a wrap with `cpus` CPUs, in milliseconds."""
        key = (processes, cpus, mechanism)
        if key not in self._wraps:
            self._wraps[key] = wrap_latency_ms(self.simulate(*key), self.platform.ipc_ms)
        return self._wraps[key]

    def simulate(self, processes: Processes, cpus: int, mechanism: Mechanism) -> list[float]:
        """Equation (4) for all processes of a wrap's stage together: when each one ends."""
        starts = process_starts_ms(len(processes), mechanism, self.platform)
        ends = self._engine.ends_ms(starts, processes, min(cpus, self.platform.cpus))
        return [round(end, _DIGITS) for end in ends]

    def spans(self, processes: Processes, cpus: int, mechanism: Mechanism) -> list[Span]:
        """Who does what when in one stage of a wrap."""
        spans: list[Span] = []
        cores = min(cpus, self.platform.cpus)
        simulate(self._processes(processes, mechanism), cores, self._interpreter, spans.append)
        return spans

    def stage_ms(
        self, wraps: Sequence[tuple[Processes, int]], mechanism: Mechanism, local: bool
    ) -> float:
        """Equation (2): latency of a stage, given each wrap's processes and CPUs.

        `local` says whether the first of `wraps` is the one that calls the others.
        """
        latencies = [self.wrap_ms(processes, cpus, mechanism) for processes, cpus in wraps]
        if local:
            return stage_latency_ms(latencies[0], latencies[1:], self.platform)
        return stage_latency_ms(None, latencies, self.platform)

    def plan_stages_ms(self, plan: Plan, workflow: Workflow) -> list[float]:
        """The latency of every stage of `plan`."""
        return [self._plan_stage_ms(plan, workflow, i) for i in range(len(workflow.stages))]

    def _plan_stage_ms(self, plan: Plan, workflow: Workflow, number: int) -> float:
        parts = plan.stage(number)
        wraps = [(functions_of(part, workflow), plan.wraps[index].cpus) for index, part in parts]
        local = parts[0][0] == 0 and not plan.called_by_client
        return self.stage_ms(wraps, plan.mechanism, local)

    def _processes(self, processes: Processes, mechanism: Mechanism) -> list[Process]:
        starts = process_starts_ms(len(processes), mechanism, self.platform)
        return [
            Process(start, tuple(self._work[function] for function in functions))
            for start, functions in zip(starts, processes, strict=True)
        ]


def predict(plan: Plan, workflow: Workflow, profile: Profile, platform: Platform) -> Prediction:
    """The latency of `plan`, with the range that the spread of the profiles gives it.

    Raises
    ------
    ChironError
        ``unknown-function`` where a function has no profile; ``missing-task``,
        ``repeated-task``, ``unknown-task`` or ``wrong-stage`` where plan and workflow differ.
    """
    profile.require(workflow.functions)
    plan.check_against(workflow)
    stages = Predictor(profile, platform).plan_stages_ms(plan, workflow)
    request_ms = 0.0 if plan.called_by_client else platform.request_ms
    latency = workflow_latency_ms(stages, request_ms)
    bounds = [latency]
    for bound in (0, 1):
        scaled = Predictor(profile, platform, _spread_scale(profile, bound))
        bounds.append(workflow_latency_ms(scaled.plan_stages_ms(plan, workflow), request_ms))
    return Prediction(
        latency_ms=round(latency, 4),
        low_ms=round(min(bounds), 4),
        high_ms=round(max(bounds), 4),
        stages_ms=tuple(round(stage, 4) for stage in stages),
    )


def functions_of(stage: WrapStage, workflow: Workflow) -> Processes:
    """The functions that the tasks of each process use."""
    return tuple(tuple(map(workflow.function_of, process)) for process in stage.processes)


def _work(function: FunctionProfile, scale: float) -> Work:
    return tuple((period.kind, period.duration_ms * scale) for period in function.periods)


def _spread_scale(profile: Profile, bound: int) -> dict[str, float]:
    """How much the low (0) or high (1) end of each function's spread differs from its latency."""
    return {
        name: function.spread_ms[bound] / function.latency_ms
        for name, function in profile.functions.items()
        if function.spread_ms is not None and function.latency_ms > 0
    }
