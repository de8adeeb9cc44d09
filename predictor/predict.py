"""Predicts a plan: every wrap of every stage is simulated, equations (1)-(4) join them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from statistics import fmean
from typing import NamedTuple

from predictor.equations import Caller, call_computing_ms, calls_ms, workflow_latency_ms
from predictor.mechanisms import mechanism_of
from predictor.simulator import Interpreter, Life, Processes, Simulator, Span, Work, WorkKind
from workflow.model import Workflow
from workflow.plan import Plan, Prediction
from workflow.platform import Platform
from workflow.profile import LONGEST_MS, FunctionProfile, Period, Profile, Share

#: Digits of a millisecond: processors agree on more, so that plans depend on none of them.
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

    ``calls_ms`` is what calling each of them costs; ``beside`` is what else computes there, and
    ``arriving_ms`` what each wrap's call computes before the wrap begins, beside those of the
    others.
    """

    parts: Sequence[Part]
    calls_ms: Sequence[float]
    beside: Sequence[Life] = ()
    arriving_ms: float = 0.0

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
    """

    def __init__(
        self,
        profile: Profile,
        platform: Platform,
        scale: dict[str, float] | None = None,
    ) -> None:
        self.platform = platform
        works = {
            name: _work(function, (scale or {}).get(name, 1.0))
            for name, function in profile.functions.items()
        }
        self._forked = dict[str, str]()
        for name, function in profile.functions.items():
            if function.further_ms:
                self._forked[name] = f"{name} forked"  # no function has a space in its name
                works[self._forked[name]] = (("cpu", function.further_ms), *works[name])
        #: How long each function computes before it waits for the first time.
        self._leading_ms = {
            name: sum(
                ms
                for kind, ms in takewhile(lambda part: part[0] != "block", work)
                if kind != "helper"
            )
            for name, work in works.items()
        }
        interpreter = Interpreter(
            platform.switch_interval_ms,
            platform.switch_cost_ms,
            platform.thread_startup_ms,
            platform.thread_ready_ms,
            platform.short_release_ms,
        )
        self._simulator = Simulator(works, interpreter, platform.contention_overhead)
        self._runs: dict[tuple[tuple[Part, ...], str, Caller], list[Run]] = {}

    def starts_ms(self, processes: Processes, mechanism: str) -> list[float]:
        """When each process of a wrap's stage can run its functions: see `Mechanism.starts_ms`.

        The main process and one that it wakes wait for each other while both compute.
        """
        costs = mechanism_of(mechanism)
        starts = costs.starts_ms(len(processes), self.platform)
        wait_ms = costs.core_wait_ms(self.platform)
        if not wait_ms or len(processes) < 2:
            return starts
        main_ms, *further_ms = (
            max((self._leading_ms[name] for name in process), default=0.0) for process in processes
        )
        return [start + min(wait_ms, main_ms, max(further_ms)) for start in starts]

    def simulate(self, processes: Processes, cpus: int, mechanism: str) -> list[float]:
        """Equation (4) for all processes of a wrap's stage together: when each one ends."""
        lives = self._lives(processes, mechanism)
        ends_ms = self._simulator.ends_ms(lives, min(cpus, self.platform.cpus))
        return [round(end, _DIGITS) for end in ends_ms]

    def each_ms(self, processes: Processes) -> list[float]:
        """Equation (4) for processes each of which is its wrap's only one."""
        return [round(end, _DIGITS) for end in self._simulator.each_ms(processes)]

    def stage_runs(self, parts: Sequence[Part], mechanism: str, caller: Caller) -> list[Run]:
        """What each wrap of a stage does, that `caller` calls.

        Where the platform is one node that has fewer cores than they are given in sum, wraps
        compete for all of them. Else each has its own.
        """
        key = (tuple(parts), mechanism, caller)
        if key not in self._runs:
            groups = self._groups(parts, caller)
            self._runs[key] = [run for each in groups for run in self._group_runs(each, mechanism)]
        return self._runs[key]

    def stage_ms(self, parts: Sequence[Part], mechanism: str, caller: Caller) -> float:
        """Equation (2): the slowest wrap of a stage decides."""
        return max(run.latency_ms for run in self.stage_runs(parts, mechanism, caller))

    def stage_spans(
        self, parts: Sequence[Part], mechanism: str, caller: Caller
    ) -> list[list[Span]]:
        """Who does what when in each wrap of a stage, from when the wrap begins."""
        groups = self._groups(parts, caller)
        return [spans for group in groups for spans in self._group_spans(group, mechanism)]

    def plan_stages_ms(self, plan: Plan, workflow: Workflow) -> list[float]:
        """The latency of every stage of `plan`."""
        return [
            self.following_ms(plan, number)
            + self.stage_ms(
                parts_of(plan, number, workflow),
                plan.mechanisms,
                caller_of(plan, number, workflow),
            )
            for number in range(len(workflow.stages))
        ]

    def plan_ms(self, plan: Plan, workflow: Workflow) -> float:
        """Equation (1): the latency of `plan`."""
        return workflow_latency_ms(self.plan_stages_ms(plan, workflow), self.request_ms(plan))

    def request_ms(self, plan: Plan) -> float:
        """What the request itself costs; calls of a client are requests of their own."""
        return 0.0 if plan.orchestrator == "client" else self.platform.request_ms

    def following_ms(self, plan: Plan, stage: int) -> float:
        """What it costs that stage number `stage` comes after another, where a wrap runs both."""
        return self.platform.stage_ms if stage and plan.orchestrator != "client" else 0.0

    def _groups(self, parts: Sequence[Part], caller: Caller) -> Iterator[_Group]:
        """The wraps of a stage, those that share cores together.

        A client sends all its calls at once, and they are computed side by side; a wrap sends one
        after another.
        """
        calls = calls_ms(len(parts), self.platform, caller)
        if not self.platform.one_node or sum(cpus for _, cpus in parts) <= self.platform.cpus:
            yield from (_Group([part], [call]) for part, call in zip(parts, calls, strict=True))
            return
        busy_ms = call_computing_ms(self.platform)
        if caller == "client":
            yield _Group(parts, calls[:1] * len(parts), arriving_ms=min(busy_ms, calls[0]))
            return
        called = calls[1:] if caller == "first" else calls
        yield _Group(parts, calls, [Life(call - busy_ms, (), busy_ms) for call in called])

    def _group_runs(self, group: _Group, mechanism: str) -> Iterator[Run]:
        lives = self._group_lives(group, mechanism)
        ends = iter(self._simulator.ends_ms(lives, min(group.cpus, self.platform.cpus)))
        for (processes, _), call in zip(group.parts, group.calls_ms, strict=True):
            own = tuple(round(next(ends) - call, _DIGITS) for _ in processes)
            gathering = mechanism_of(mechanism).gathering_ms(len(processes), self.platform)
            yield Run(call, own, gathering)

    def _group_spans(self, group: _Group, mechanism: str) -> Iterator[list[Span]]:
        cores = min(group.cpus, self.platform.cpus)
        spans = self._simulator.spans(self._group_lives(group, mechanism), cores)
        first = 0
        for (processes, _), call in zip(group.parts, group.calls_ms, strict=True):
            own = range(first, first + len(processes))
            yield [span.moved(first, call) for span in spans if span.process in own]
            first = own.stop

    def _group_lives(self, group: _Group, mechanism: str) -> list[Life]:
        """The processes of all wraps, then what computes beside them."""
        arriving_ms = group.arriving_ms
        lives = [
            life._replace(
                start_ms=call - arriving_ms + life.start_ms,
                computing_ms=arriving_ms + life.computing_ms,
            )
            for (processes, _), call in zip(group.parts, group.calls_ms, strict=True)
            for life in self._lives(processes, mechanism)
        ]
        return [*lives, *group.beside]

    def _lives(self, processes: Processes, mechanism: str) -> list[Life]:
        """The processes of a wrap's stage; what runs in a new one takes longer there."""
        count, costs = len(processes), mechanism_of(mechanism)
        starts = self.starts_ms(processes, mechanism)
        computing = costs.computing_ms(count, self.platform)
        forking = costs.forking_ms(count, self.platform)
        further = processes[1:]
        if not costs.lasting:
            further = tuple(tuple(self._forked.get(f, f) for f in each) for each in further)
        return list(map(Life, starts, (*processes[:1], *further), computing, forking))


def predict(plan: Plan, workflow: Workflow, profile: Profile, platform: Platform) -> Prediction:
    """The latency of `plan`, with its range; of several payloads that of their mix.

    The range has on each side what the spreads of profiles and constants make of it, all functions
    and constants at their lower ends or all at their upper ones, and the platform's
    ``prediction_error``. As these are independent, their squares add up.

    Raises ``unknown-function`` where a function has no profile; ``missing-task``,
    ``repeated-task`` or ``unknown-task`` where plan and workflow differ.
    """
    profile.require(workflow.functions)
    plan.check_against(workflow)
    mix = profile.mix
    each = [_predict_one(plan, workflow, share.profile, platform) for share in mix]
    if len(mix) == 1:
        return each[0]
    stages = zip(*(one.stages_ms for one in each), strict=True)
    return Prediction(
        latency_ms=mean_ms(mix, [one.latency_ms for one in each]),
        low_ms=min(one.low_ms for one in each),
        high_ms=max(one.high_ms for one in each),
        warnings=each[0].warnings,  # which are of the whole profile
        stages_ms=tuple(mean_ms(mix, stage) for stage in stages),
        payloads_ms={share.payload: one.latency_ms for share, one in zip(mix, each, strict=True)},
    )


def mean_ms(mix: Sequence[Share], latencies_ms: Iterable[float]) -> float:
    """The mean latency of a mix of payloads, by weight, from that of each payload."""
    rounded = [round(latency_ms, 4) for latency_ms in latencies_ms]
    return round(fmean(rounded, [share.weight for share in mix]), 4)


def _predict_one(
    plan: Plan, workflow: Workflow, profile: Profile, platform: Platform
) -> Prediction:
    """What `predict` says of a single payload."""
    predictor = Predictor(profile, platform)
    latency = predictor.plan_ms(plan, workflow)
    bounds = [latency, *(each.plan_ms(plan, workflow) for each in _ends(profile, platform))]
    error_ms = latency * platform.prediction_error
    low_ms = latency - math.hypot(latency - min(bounds), error_ms)
    high_ms = latency + math.hypot(max(bounds) - latency, error_ms)
    return Prediction(
        latency_ms=round(latency, 4),
        low_ms=round(max(0.0, low_ms), 4),
        high_ms=round(min(high_ms, max(latency, LONGEST_MS)), 4),
        warnings=(*profile.warnings, *platform.warnings),
        stages_ms=tuple(round(each, 4) for each in predictor.plan_stages_ms(plan, workflow)),
    )


def _ends(profile: Profile, platform: Platform) -> Iterator[Predictor]:
    """With all functions and constants at the lower, then the upper ends of their spreads, if any.

    A function at an end takes longer or shorter by as much as the end differs from its latency.
    """
    spreads = {
        name: [end_ms / function.latency_ms for end_ms in function.spread_ms]
        for name, function in profile.functions.items()
        if function.spread_ms is not None and function.latency_ms > 0
    }
    if platform.spread or any(function.spread_ms for function in profile.functions.values()):
        for end in (0, 1):
            constants = {name: ends[end] for name, ends in platform.spread.items()}
            place = platform.model_copy(update=constants)
            yield Predictor(profile, place, {name: ends[end] for name, ends in spreads.items()})


def parts_of(plan: Plan, stage: int, workflow: Workflow) -> list[Part]:
    """What each wrap that takes part in a stage runs there."""
    uses = workflow.function_of
    return [
        (tuple(tuple(map(uses, process)) for process in processes), plan.wraps[index].cpus)
        for index, processes in plan.parts(workflow.stages[stage])
    ]


def caller_of(plan: Plan, stage: int, workflow: Workflow) -> Caller:
    """What calls the wraps of a stage."""
    if plan.orchestrator == "client":
        return "client"
    return "first" if plan.wraps[0].part(workflow.stages[stage]) else "entry"


def _work(function: FunctionProfile, scale: float) -> Work:
    return tuple(part for period in function.periods for part in _parts(period, scale))


def _parts(period: Period, scale: float) -> Iterator[tuple[WorkKind, float]]:
    """A period with the helpers that compute beside it, as many as its parallelism says.

    What is left over one core is one helper that is done earlier.
    """
    duration_ms = period.duration_ms * scale
    whole, part = divmod(period.parallelism - 1.0, 1.0)
    helpers_ms = [duration_ms] * int(whole) + [part * duration_ms] * (part > 0)
    yield from (("helper", helper_ms) for helper_ms in helpers_ms)
    yield period.kind, duration_ms
    if helpers_ms:
        yield "join", 0.0
