"""Predicts a plan: every wrap of every stage is simulated, equations (1)-(4) join them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

from predictor.engine import EngineName, Processes, engine, processes_of
from predictor.equations import (
    call_computing_ms,
    calls_ms,
    gathering_ms,
    process_computing_ms,
    process_forking_ms,
    process_starts_ms,
    workflow_latency_ms,
)
from predictor.simulator import simulate
from predictor.spread import End, has_spread, platform_at, scale_at
from predictor.threads import Interpreter, Life, Work
from predictor.timeline import Span
from workflow.model import Workflow
from workflow.plan import Mechanism, Plan, Prediction, WrapStage
from workflow.platform import Platform
from workflow.profile import LONGEST_MS, FunctionProfile, Profile

#: Engines agree on more digits of a millisecond than these, so that plans depend on none of them.
_DIGITS = 6


#: The processes of one wrap's part in a stage, and the wrap's CPUs.
Part = tuple[Processes, int]


class Run(NamedTuple):
    """What a wrap does in a stage, in milliseconds from when it begins.

    ``call_ms`` is what calling it costs before, ``gathering_ms`` comes after its last process.
    """

    call_ms: float
    ends_ms: tuple[float, ...]
    gathering_ms: float

    @property
    def latency_ms(self) -> float:
        """From the stage's begin on."""
        return self.call_ms + max(self.ends_ms) + self.gathering_ms


class _Group(NamedTuple):
    """Wraps of a stage that share cores.

    ``calls_ms`` is what calling each of them costs; ``beside`` is what else computes there.
    """

    parts: Sequence[Part]
    calls_ms: Sequence[float]
    beside: Sequence[Life] = ()

    @property
    def cpus(self) -> int:
        """Of all of them."""
        return sum(cpus for _, cpus in self.parts)


class Predictor:
    """Latencies of wraps, stages and plans of one workflow's functions on one platform.

    What was simulated once is remembered, since a search asks for the same few again and again.

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
        self._forked = dict[str, str]()
        for name, function in profile.functions.items():
            further_ms = (function.forked_ms or 0.0) - function.latency_ms
            if further_ms > 0:
                self._forked[name] = f"{name} forked"  # no function has a space in its name
                self._work[self._forked[name]] = (("cpu", further_ms), *self._work[name])
        self._interpreter = Interpreter(
            platform.switch_interval_ms,
            platform.switch_cost_ms,
            platform.thread_startup_ms,
            platform.thread_ready_ms,
            platform.short_release_ms,
        )
        self._engine = engine(engine_name, self._work, self._interpreter, platform.wasted_cores)
        self._runs: dict[tuple[tuple[Part, ...], Mechanism, bool], list[Run]] = {}

    def simulate(self, processes: Processes, cpus: int, mechanism: Mechanism) -> list[float]:
        """Equation (4) for all processes of a wrap's stage together: when each one ends."""
        lives = self._lives(processes, mechanism)
        ends_ms = self._engine.ends_ms(lives, min(cpus, self.platform.cpus))
        return [round(end, _DIGITS) for end in ends_ms]

    def each_ms(self, processes: Processes) -> list[float]:
        """Equation (4) for processes each of which is its wrap's only one."""
        return [round(end, _DIGITS) for end in self._engine.each_ms(processes)]

    def stage_runs(self, parts: Sequence[Part], mechanism: Mechanism, local: bool) -> list[Run]:
        """What each wrap of a stage does; `local` says whether the first calls the others.

        Where the platform is one node that has fewer cores than they are given in sum, wraps
        compete for all of them. Else each has its own.
        """
        key = (tuple(parts), mechanism, local)
        if key not in self._runs:
            self._runs[key] = [
                run
                for group in self._groups(parts, local)
                for run in self._group_runs(group, mechanism)
            ]
        return self._runs[key]

    def stage_ms(self, parts: Sequence[Part], mechanism: Mechanism, local: bool) -> float:
        """Equation (2): the slowest wrap of a stage decides."""
        return max(run.latency_ms for run in self.stage_runs(parts, mechanism, local))

    def stage_spans(
        self, parts: Sequence[Part], mechanism: Mechanism, local: bool
    ) -> list[list[Span]]:
        """Who does what when in each wrap of a stage, from when the wrap begins."""
        return [
            spans
            for group in self._groups(parts, local)
            for spans in self._group_spans(group, mechanism)
        ]

    def plan_stages_ms(self, plan: Plan, workflow: Workflow) -> list[float]:
        """The latency of every stage of `plan`."""
        return [
            self.following_ms(plan, number)
            + self.stage_ms(
                parts_of(plan, number, workflow), plan.mechanism, calls_others(plan, number)
            )
            for number in range(len(workflow.stages))
        ]

    def following_ms(self, plan: Plan, stage: int) -> float:
        """What it costs that stage number `stage` comes after another, where a wrap runs both."""
        return self.platform.stage_ms if stage and not plan.called_by_client else 0.0

    def _groups(self, parts: Sequence[Part], local: bool) -> Iterator[_Group]:
        """The wraps of a stage, those that share cores together."""
        calls = calls_ms(len(parts), self.platform, local=local)
        if not self.platform.one_node or sum(cpus for _, cpus in parts) <= self.platform.cpus:
            yield from (_Group([part], [call]) for part, call in zip(parts, calls, strict=True))
            return
        busy_ms = call_computing_ms(self.platform)
        called = calls[1:] if local else calls
        yield _Group(parts, calls, [Life(call - busy_ms, (), busy_ms) for call in called])

    def _group_runs(self, group: _Group, mechanism: Mechanism) -> Iterator[Run]:
        lives = self._group_lives(group, mechanism)
        ends = iter(self._engine.ends_ms(lives, min(group.cpus, self.platform.cpus)))
        for (processes, _), call in zip(group.parts, group.calls_ms, strict=True):
            own = tuple(round(next(ends) - call, _DIGITS) for _ in processes)
            gathering = gathering_ms(len(processes), mechanism, self.platform)
            yield Run(call, own, gathering)

    def _group_spans(self, group: _Group, mechanism: Mechanism) -> Iterator[list[Span]]:
        spans: list[Span] = []
        named = processes_of(self._group_lives(group, mechanism), self._work)
        cores = min(group.cpus, self.platform.cpus)
        wasted = self.platform.wasted_cores
        simulate(named, cores, self._interpreter, spans.append, wasted_cores=wasted)
        first = 0
        for (processes, _), call in zip(group.parts, group.calls_ms, strict=True):
            own = range(first, first + len(processes))
            yield [span.moved(first, call) for span in spans if span.process in own]
            first = own.stop

    def _group_lives(self, group: _Group, mechanism: Mechanism) -> list[Life]:
        """The processes of all wraps, then what computes beside them."""
        lives = [
            life._replace(start_ms=call + life.start_ms)
            for (processes, _), call in zip(group.parts, group.calls_ms, strict=True)
            for life in self._lives(processes, mechanism)
        ]
        return [*lives, *group.beside]

    def _lives(self, processes: Processes, mechanism: Mechanism) -> list[Life]:
        """The processes of a wrap's stage; what runs in a forked one takes longer there."""
        count = len(processes)
        starts = process_starts_ms(count, mechanism, self.platform)
        computing = process_computing_ms(count, mechanism, self.platform)
        forking = process_forking_ms(count, mechanism, self.platform)
        further = processes[1:]
        if mechanism == "fork":
            further = tuple(tuple(self._forked.get(f, f) for f in each) for each in further)
        return list(map(Life, starts, (*processes[:1], *further), computing, forking))


def predict(plan: Plan, workflow: Workflow, profile: Profile, platform: Platform) -> Prediction:
    """The latency of `plan`, with its range.

    The range is what the spreads of profiles and constants make of it, all functions and constants
    at their lower ends or all at their upper ones, wider by the platform's ``prediction_error``.

    Raises
    ------
    ChironError
        ``unknown-function`` where a function has no profile; ``missing-task``,
        ``repeated-task``, ``unknown-task`` or ``wrong-stage`` where plan and workflow differ.
    """
    profile.require(workflow.functions)
    plan.check_against(workflow)
    stages = Predictor(profile, platform).plan_stages_ms(plan, workflow)
    latency = _latency_ms(plan, stages, platform)
    bounds = [latency]
    if has_spread(profile, platform):
        for end in get_args(End):
            place = platform_at(platform, end)
            predictor = Predictor(profile, place, scale_at(profile, end))
            bounds.append(_latency_ms(plan, predictor.plan_stages_ms(plan, workflow), place))
    error = platform.prediction_error
    return Prediction(
        latency_ms=round(latency, 4),
        low_ms=round(min(bounds) * (1 - error), 4),
        high_ms=round(min(max(bounds) * (1 + error), max(latency, LONGEST_MS)), 4),
        stages_ms=tuple(round(stage, 4) for stage in stages),
    )


def _latency_ms(plan: Plan, stages_ms: Sequence[float], platform: Platform) -> float:
    request_ms = 0.0 if plan.called_by_client else platform.request_ms
    return workflow_latency_ms(stages_ms, request_ms)


def parts_of(plan: Plan, stage: int, workflow: Workflow) -> list[Part]:
    """What each wrap that takes part in a stage runs there."""
    return [
        (_functions_of(part, workflow), plan.wraps[index].cpus) for index, part in plan.stage(stage)
    ]


def calls_others(plan: Plan, stage: int) -> bool:
    """Whether the first wrap of a stage calls the others, as it has the request and no client."""
    return plan.stage(stage)[0][0] == 0 and not plan.called_by_client


def _functions_of(stage: WrapStage, workflow: Workflow) -> Processes:
    return tuple(tuple(map(workflow.function_of, process)) for process in stage.processes)


def _work(function: FunctionProfile, scale: float) -> Work:
    return tuple((period.kind, period.duration_ms * scale) for period in function.periods)
