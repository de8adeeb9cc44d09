"""The plans that a strategy chooses from: those of the search, and the planners it has to beat."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from predictor.predict import Predictor, mean_ms, predict
from scheduler.conflicts import NO_CONFLICTS, Conflicts
from scheduler.folder_settings import Secrets
from scheduler.layout import Layout, aligned, plan_from_layout
from scheduler.limits import Limits, exceeded
from scheduler.pgp import Candidate, Search
from scheduler.planners import (
    DEFAULT_PLANNER,
    PLANNERS,
    faastlane,
    faastlane_plus,
    faastlane_t,
    searched,
)
from scheduler.problem import Problem
from workflow.model import Workflow
from workflow.plan import DEFAULT_TRIGGER, Plan
from workflow.platform import Platform
from workflow.profile import Profile
from workflow.triggers import TriggerKind


@dataclass(frozen=True)
class Job:
    """What is to be scheduled, where, and within which bounds.

    With ``headroom`` a plan counts by the high end of its prediction.
    """

    workflow: Workflow
    profile: Profile
    platform: Platform
    conflicts: Conflicts
    limits: Limits = field(default_factory=Limits)
    headroom: bool = False
    secrets: Secrets = field(default_factory=dict)
    trigger: TriggerKind = DEFAULT_TRIGGER


@dataclass(frozen=True)
class Option:
    """A plan, the latency that it is judged by, in milliseconds, and whether it fits the limits."""

    plan: Plan
    judged_ms: float
    fits: bool


@dataclass(frozen=True)
class Options:
    """Plans of one mechanism by their CPUs; the search's are made as they are asked for.

    The search goes by what functions do in the mean of all payloads, and `each` has a predictor for
    each payload, by which what is found is judged.
    Plans that exceed the job's limits count only where ``beyond_limits`` says so.
    """

    job: Job
    search: Search
    each: tuple[Predictor, ...]
    baselines: tuple[Option, ...] = ()
    beyond_limits: bool = False

    @classmethod
    def of(cls, job: Job, mechanism: str) -> Options:
        """The options of a job; the planners that break no conflict are among them."""
        problem = Problem.of(job.workflow, job.profile, job.platform, mechanism, job.conflicts)
        planners = [faastlane_t, faastlane, *([] if job.conflicts.together else [faastlane_plus])]
        baselines = [
            planned(job, mechanism, make(job.workflow))
            for make in planners
            if not job.conflicts.process
        ]
        each = tuple(
            problem.predictor
            if one.profile is job.profile
            else Predictor(one.profile, job.platform)
            for one in job.profile.mix
        )
        options = cls(job, Search.of(problem, job.trigger), each)
        return replace(options, baselines=tuple(map(options.judged, dict.fromkeys(baselines))))

    def counts(self, option: Option) -> bool:
        """Whether `option` may be chosen."""
        return option.fits or self.beyond_limits

    @property
    def cpus(self) -> list[int]:
        """The numbers of CPUs of the plans that are looked at: every one, later every 20th part."""
        least, most = self.search.least_cpus, self.search.most_cpus
        counts = [least]
        while counts[-1] < most:
            counts.append(min(most, counts[-1] + max(1, counts[-1] // 20)))
        return counts

    def at(self, cpus: int, below_ms: float) -> Iterator[Option]:
        """Plans of at most `cpus` CPUs, few wraps first, that may be as fast as `below_ms`."""
        if self.search.floor_ms(cpus) <= below_ms:
            for candidate in self.search.candidates(cpus, self.job.limits):
                if candidate.may_reach(below_ms):
                    option = self.made(candidate, below_ms)
                    if option is not None:
                        yield option

    def candidates(self) -> list[Candidate]:
        """Every candidate, of few CPUs and wraps first."""
        limits = self.job.limits
        return [c for cpus in self.cpus for c in self.search.candidates(cpus, limits)]

    def baselines_at(self, cpus: int) -> list[Option]:
        """The plans with `cpus` CPUs of the planners that the search has to beat."""
        return [one for one in self.baselines if one.plan.cpus == cpus and self.counts(one)]

    def judged(self, plan: Plan) -> Option:
        """`plan` with the latency that it is judged by, rounded as predictions are."""
        job = self.job
        if job.headroom:
            judged_ms = predict(plan, job.workflow, job.profile, job.platform).high_ms
        else:
            latencies_ms = (each.plan_ms(plan, job.workflow) for each in self.each)
            judged_ms = mean_ms(job.profile.mix, latencies_ms)
        return Option(plan, judged_ms, fits=not exceeded(plan, job.limits))

    def made(self, candidate: Candidate, below_ms: float = math.inf) -> Option | None:
        """The fastest plan found that has the candidate's shape, if it takes up to `below_ms`."""
        layout = candidate.layout(below_ms)
        if layout is None:
            return None
        mechanism, layouts = self.search.problem.mechanism, [layout]
        if self.job.trigger == "data":
            layouts.append(aligned(layout, self.job.workflow))
        each = (self.judged(planned(self.job, mechanism, one)) for one in dict.fromkeys(layouts))
        return min(each, key=lambda option: option.judged_ms)


def planned(job: Job, mechanism: str, layout: Layout, label: str = DEFAULT_PLANNER) -> Plan:
    """The plan, not yet predicted, that deploys `layout` as the planner `label` does."""
    planner = PLANNERS[label]
    in_stages = planner.orchestrator == "client" and job.workflow.machine is None
    return plan_from_layout(
        layout,
        job.workflow,
        job.profile,
        planner=label,
        mechanism=mechanism,
        orchestrator=planner.orchestrator,
        trigger="stage" if in_stages else job.trigger,
        conflicts=job.conflicts if searched(label) else NO_CONFLICTS,
        node_cpus=job.platform.cpus,
        prefix=planner.prefix,
        names=planner.names(job.workflow) if planner.names else None,
    )
