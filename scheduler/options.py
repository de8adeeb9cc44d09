"""The plans that a strategy chooses from: those of the search, and the models it has to beat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from predictor.equations import workflow_latency_ms
from predictor.predict import predict
from scheduler.conflicts import Conflicts
from scheduler.layout import Layout, plan_from_layout
from scheduler.limits import Limits
from scheduler.models import faastlane, faastlane_plus, faastlane_t
from scheduler.pgp import Candidate, Search
from scheduler.problem import Problem
from workflow.model import Workflow
from workflow.plan import Mechanism, Plan
from workflow.platform import Platform
from workflow.profile import Profile

#: By how much a search may beat the estimate of a large stage.
ESTIMATE_MARGIN = 1.02


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


@dataclass(frozen=True)
class Option:
    """A plan, and the latency that it is judged by, in milliseconds."""

    plan: Plan
    judged_ms: float


@dataclass(frozen=True)
class Options:
    """Plans of one mechanism by their CPUs; the search's are made as they are asked for."""

    job: Job
    search: Search
    rivals: tuple[Plan, ...]

    @classmethod
    def of(cls, job: Job, mechanism: Mechanism) -> Options:
        """The options of a job; the models that break no conflict are among them."""
        problem = Problem.of(job.workflow, job.profile, job.platform, mechanism, job.conflicts)
        models = [faastlane_t, faastlane, *([] if job.conflicts.together else [faastlane_plus])]
        rivals = [
            _plan(job, mechanism, make(job.workflow))
            for make in models
            if not job.conflicts.process
        ]
        return cls(job, Search.of(problem), tuple(dict.fromkeys(rivals)))

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
            for candidate in self.search.candidates(cpus, self.job.limits.functions):
                if may_reach(candidate, below_ms):
                    yield self.made(candidate)

    def candidates(self) -> list[Candidate]:
        """Every candidate, of few CPUs and wraps first."""
        most = self.job.limits.functions
        return [c for cpus in self.cpus for c in self.search.candidates(cpus, most)]

    def rivals_at(self, cpus: int) -> list[Option]:
        """The plans with `cpus` CPUs of the models that the search has to beat."""
        return [self.judged(plan) for plan in self.rivals if plan.cpus == cpus]

    def judged(self, plan: Plan) -> Option:
        """`plan` with the latency that it is judged by, rounded as predictions are."""
        job = self.job
        if job.headroom:
            return Option(plan, predict(plan, job.workflow, job.profile, job.platform).high_ms)
        stages = self.search.problem.predictor.plan_stages_ms(plan, job.workflow)
        return Option(plan, round(workflow_latency_ms(stages, job.platform.request_ms), 4))

    def made(self, candidate: Candidate) -> Option:
        """The fastest plan found that has the candidate's shape."""
        layout = self.search.layout(candidate.shape)
        return self.judged(_plan(self.job, self.search.problem.mechanism, layout))


def may_reach(candidate: Candidate, latency_ms: float) -> bool:
    """Whether a search may find a layout of the candidate's shape that is as fast.

    Partitions of many functions are seldom faster than a greedy one whose threads cost nothing.
    """
    if candidate.bound_ms > latency_ms:
        return False
    return candidate.estimate_ms <= ESTIMATE_MARGIN * latency_ms


def _plan(job: Job, mechanism: Mechanism, layout: Layout) -> Plan:
    return plan_from_layout(
        layout,
        job.workflow,
        job.profile,
        model="pgp",
        mechanism=mechanism,
        node_cpus=job.platform.cpus,
    )
