"""The plans that a strategy chooses from: the plans of the search, and the baselines to beat."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from chiron.predictor.load import Case
from chiron.predictor.paths import Sizes, way_of
from chiron.predictor.predict import Predictor, at_percentile
from chiron.predictor.spread import Spread, percentile_ms
from chiron.predictor.unrolling import Run, run_of
from chiron.scheduler.closeness import closer
from chiron.scheduler.conflicts import NO_CONFLICTS, Conflicts
from chiron.scheduler.deciding import complete, folded, outline, with_memory
from chiron.scheduler.folder_settings import Secrets
from chiron.scheduler.layout import Layout, aligned, plan_from_layout
from chiron.scheduler.limits import Limits, exceeded
from chiron.scheduler.pgp import Candidate, Search
from chiron.scheduler.planners import (
    DEFAULT_PLANNER,
    PLANNERS,
    faastlane,
    faastlane_plus,
    faastlane_t,
    respects_conflicts,
    sand,
)
from chiron.scheduler.problem import Problem
from chiron.scheduler.room import Room
from chiron.scheduler.traffic import Traffic
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task, Workflow
from chiron.workflow.paths import DEFAULT_PATH, PATHS, PathKind
from chiron.workflow.plan import DEFAULT_ATTEMPTS, DEFAULT_PERCENTILE, DEFAULT_TRIGGER, Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile
from chiron.workflow.streaming import as_begun
from chiron.workflow.trace import is_wait
from chiron.wrap.core.triggers import TASK_TRIGGERS, TriggerKind

#: The most tasks for which plans grouped by data transfer are tried too, which takes long.
_GROUPED = 200


@dataclass(frozen=True)
class Job:
    """The input of a search; the ``percentile``-th percentile of the latency judges plans."""

    workflow: Workflow
    profile: Profile
    platform: Platform
    conflicts: Conflicts
    limits: Limits = field(default_factory=Limits)
    secrets: Secrets = field(default_factory=dict)
    trigger: TriggerKind = DEFAULT_TRIGGER
    percentile: float = DEFAULT_PERCENTILE
    path: PathKind = DEFAULT_PATH
    attempts: int = DEFAULT_ATTEMPTS

    @property
    def typical(self) -> tuple[int, float]:
        """The index of the payload that counts, and the share of requests with no less work."""
        mix = self.profile.mix
        whole_ms = [sum(f.latency_ms for f in s.profile.functions.values()) for s in mix]
        place = at_percentile(mix, whole_ms, self.percentile)
        more = sum(
            share.weight
            for share, each_ms in zip(mix, whole_ms, strict=True)
            if each_ms >= whole_ms[place]
        )
        return place, more / sum(share.weight for share in mix)


@dataclass(frozen=True)
class Option:
    """A plan, the latency that it is judged by, in milliseconds, and whether it fits the limits."""

    plan: Plan
    judged_ms: float
    fits: bool


@dataclass(frozen=True)
class Options:
    """Plans of one mechanism by their CPUs, computed by the search on demand.

    The search uses the functions' work with the job's typical payload. If the workflow decides at
    run time it uses `run`, the tasks of one payload. Plans are judged by `each` payload. `share` of
    the requests take at least as long as `run`; it is 0 if `run` does more than they do. Plans that
    exceed the job's limits count only if ``beyond_limits``. In `run`, a reader of a stream that is
    read while it is written is in its writer's stage.
    """

    job: Job
    search: Search
    each: tuple[Case, ...]
    run: Run
    spread: Spread
    share: float = 1.0
    baselines: tuple[Option, ...] = ()
    beyond_limits: bool = False
    _bounds_ms: dict[float, float] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def all_of(cls, job: Job, mechanism: str) -> list[Options]:
        """Return the options of a job, one for each set of tasks that its payloads run.

        Raises ``no-trace`` if a workflow that decides runs no task with any payload.
        """
        mix = job.profile.mix
        runs = [run_of(job.workflow, share.profile) for share in mix]
        total = sum(share.weight for share in mix)
        each = tuple(
            Case(
                run,
                share.weight / total,
                Predictor(run.profile, job.platform),
                Spread.of(run.workflow, run.profile, job.platform),
            )
            for run, share in zip(runs, mix, strict=True)
        )
        if job.workflow.machine is None:
            streams = TASK_TRIGGERS[job.trigger].streams and PATHS[job.path].streams
            is_live = job.workflow.streaming and streams
            workflow = as_begun(job.workflow) if is_live else job.workflow
            place, share = job.typical
            run = Run(workflow, mix[place].profile, decided=False)
            return [cls._of(job, mechanism, each, run, each[place].spread, share)]
        different = dict[tuple[Task, ...], Case]()
        for case in each:
            if not all(is_wait(name) for name in case.run.workflow.functions):  # any plan serves it
                different.setdefault(case.run.workflow.tasks, case)
        if not different:
            message = f"no payload runs a task of {job.workflow.name}: add a payload that does, "
            raise ChironError("no-trace", f"{message}and run chiron profile again", path="payloads")
        # With conflicts, the search places all functions, and has no bound.
        strict = bool(job.conflicts.process or job.conflicts.together)
        return [
            cls._of(
                job,
                mechanism,
                each,
                complete(case.run, job.workflow) if strict else case.run,
                case.spread,
                0.0 if strict else case.weight,
            )
            for case in different.values()
        ]

    @classmethod
    def _of(
        cls,
        job: Job,
        mechanism: str,
        each: tuple[Case, ...],
        run: Run,
        spread: Spread,
        share: float,
    ) -> Options:
        problem = Problem.of(
            run.workflow, run.profile, job.platform, mechanism, job.conflicts, job.path
        )
        options = cls(job, Search.of(problem, job.trigger), each, run, spread, share)
        if job.conflicts.process:
            return replace(options, baselines=tuple(map(options.judged, options._threads())))
        planners = [faastlane_t, faastlane, sand]
        planners += [] if job.conflicts.together else [faastlane_plus]
        baselines = dict.fromkeys(map(options.fixed, planners))
        baselines |= dict.fromkeys(_narrower(options.fixed(faastlane_t)))
        if options.weighs_objects and len(run.workflow.tasks) <= _GROUPED:
            grouped = options.of_planner("faasflow", called=DEFAULT_PLANNER)
            baselines |= dict.fromkeys([grouped])
        return replace(options, baselines=tuple(map(options.judged, baselines)))

    def fixed(self, make: Callable[[Workflow], Layout], label: str = DEFAULT_PLANNER) -> Plan:
        """Return the plan, not yet predicted, of a layout that depends on the workflow alone."""
        workflow = self.job.workflow
        if self.run.decided and PLANNERS[label].orchestrator == "wrap":
            workflow = outline(self.run.workflow)
        return self._planned(make(workflow), workflow, label, uniform=True)

    def of_planner(self, label: str, called: str = "") -> Plan:
        """Return the plan of a planner that does not search, not yet predicted.

        It is labelled `called`, or else `label`.
        """
        planner, job = PLANNERS[label], self.job
        if planner.layout:
            return self.fixed(planner.layout, label)
        if not planner.partition:
            raise ValueError(f"{label} searches")
        run = complete(self.run, job.workflow) if self.run.decided else self.run
        runs = [case.run for case in self.each]
        traffic = Traffic.of(runs, job.profile.mix, job.platform)
        room = Room(run, traffic, job.platform, job.conflicts, job.limits)
        processes, objects_mib = zip(*planner.partition(room), strict=True)
        plan = self._planned((processes,), run.workflow, called or label)
        wraps = tuple(
            wrap.model_copy(update={"memory_mib": wrap.memory_mib + mib})
            for wrap, mib in zip(plan.wraps, objects_mib, strict=True)
        )
        return plan.model_copy(update={"wraps": wraps})

    def _threads(self) -> Iterator[Plan]:
        """Yield plans of the fewest processes, with up to a CPU for each parallel thread."""
        if any(each.parallel for each in self.run.profile.functions.values()):
            for candidate in self.search.candidates(self.search.least_cpus, self.job.limits):
                if layout := candidate.layout():
                    plan = self._planned(layout, self.run.workflow, uniform=True)
                    yield from (plan, *_narrower(plan))

    def _planned(
        self,
        layout: Layout,
        workflow: Workflow,
        label: str = DEFAULT_PLANNER,
        *,
        uniform: bool = False,
    ) -> Plan:
        job, planner, decides = self.job, PLANNERS[label], self.run.decided
        client = planner.orchestrator == "client"
        plan = plan_from_layout(
            layout,
            workflow,
            self.run.profile,
            planner=label,
            mechanism=self.mechanism,
            orchestrator=planner.orchestrator,
            trigger="data" if client and decides else "stage" if client else job.trigger,
            path=job.path,
            conflicts=job.conflicts if respects_conflicts(label) else NO_CONFLICTS,
            node_cpus=job.platform.cpus,
            uniform=uniform,
            prefix=planner.prefix,
            names=planner.names(workflow) if planner.names else None,
        )
        if not decides:
            return plan
        runs = [case.run for case in self.each]
        return (with_memory if client else folded)(plan, job.workflow, runs)

    @property
    def mechanism(self) -> str:
        """The mechanism that starts the further processes of a wrap."""
        return self.search.problem.mechanism

    def bound_ms(self, judged_ms: float) -> float:
        """Return the longest latency of `run` with a plan that is judged at `judged_ms`."""
        if judged_ms not in self._bounds_ms:
            # All other requests may take longer, as far as the percentile allows.
            needed = self.share - (1 - self.job.percentile / 100)
            least = needed / self.share if self.share else 0.0
            self._bounds_ms[judged_ms] = (
                self.spread.most_ms(judged_ms, least) if least > 0 else math.inf
            )
        return self._bounds_ms[judged_ms]

    def counts(self, option: Option) -> bool:
        return option.fits or self.beyond_limits

    @property
    def cpus(self) -> list[int]:
        """The CPU counts to try: every count up to 40, then steps of a twentieth."""
        least, most = self.search.least_cpus, self.search.most_cpus
        counts = [least]
        while counts[-1] < most:
            counts.append(min(most, counts[-1] + max(1, counts[-1] // 20)))
        return counts

    def at(self, cpus: int, below_ms: float) -> Iterator[Option]:
        """Yield plans of at most `cpus` CPUs, few wraps first, that may reach `below_ms`."""
        below_ms = self.bound_ms(below_ms)
        if self.search.floor_ms(cpus) <= below_ms:
            for candidate in self.search.candidates(cpus, self.job.limits):
                if candidate.may_reach(below_ms):
                    option = self.made(candidate, below_ms)
                    if option is not None:
                        yield option

    def candidates(self) -> list[Candidate]:
        """Return every candidate, few CPUs and wraps first."""
        limits = self.job.limits
        return [c for cpus in self.cpus for c in self.search.candidates(cpus, limits)]

    def baselines_at(self, cpus: int) -> list[Option]:
        """Return the baseline plans with `cpus` CPUs, which the search has to beat."""
        return [one for one in self.baselines if one.plan.cpus == cpus and self.counts(one)]

    def judged(self, plan: Plan) -> Option:
        """Return `plan` with the latency that it is judged by, rounded as predictions are."""
        latencies_ms = (
            (case.weight, case.spread.each_ms(case.predictor.plan_ms(*case.run.placed(plan))))
            for case in self.each
        )
        judged_ms = round(percentile_ms(latencies_ms, self.job.percentile), 4)
        return Option(plan, judged_ms, fits=not exceeded(plan, self.job.limits))

    def made(self, candidate: Candidate, below_ms: float = math.inf) -> Option | None:
        """Return the fastest plan found of the candidate's shape, if it takes up to `below_ms`."""
        layout = candidate.layout(below_ms)
        if layout is None:
            return None
        layouts = [layout, self._closer(layout)]
        if not TASK_TRIGGERS[self.job.trigger].in_stages:
            layouts += [aligned(each, self.run.workflow) for each in dict.fromkeys(layouts)]
        plans = dict.fromkeys(self._planned(each, self.run.workflow) for each in layouts)
        return min(map(self.judged, plans), key=lambda option: option.judged_ms)

    @property
    def weighs_objects(self) -> bool:
        """Whether sending objects to other wraps costs anything."""
        return not way_of(self.job.path, self.run.workflow, self.job.platform).is_free

    def _closer(self, layout: Layout) -> Layout:
        """Return `layout` with less data between wraps, if transfers cost anything."""
        problem, workflow = self.search.problem, self.run.workflow
        if not self.weighs_objects:
            return layout
        return closer(
            layout,
            workflow,
            Sizes(workflow, self.run.profile).given,
            lambda task: problem.kinds[problem.number_of[workflow.function_of(task)]].group,
        )


def _narrower(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with fewer CPUs for each wrap, which its parallel threads share."""
    for most in range(1, max(wrap.cpus for wrap in plan.wraps)):
        each = [(wrap, min(most, wrap.cpus)) for wrap in plan.wraps]
        wraps = tuple(wrap.model_copy(update={"cpus": cpus}) for wrap, cpus in each)
        yield plan.model_copy(update={"wraps": wraps, "cpus": sum(cpus for _, cpus in each)})
