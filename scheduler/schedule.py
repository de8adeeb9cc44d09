"""The verb `schedule`: from a workflow, a profile, a platform and an SLO to a predicted plan."""

from __future__ import annotations

import math
from typing import get_args

from predictor.predict import predict
from scheduler.choices import Choices, MechanismChoice, Strategy
from scheduler.conflict_rules import find_conflicts
from scheduler.environments import Environments
from scheduler.explain import explain
from scheduler.folder_settings import FolderSettings
from scheduler.layout import plan_from_layout
from scheduler.limits import Limits
from scheduler.models import faastlane, faastlane_plus, faastlane_t, one_to_one, sand
from scheduler.options import Job, Options
from scheduler.secrets import Secrets
from scheduler.strategies import better, choose
from scheduler.wishes import NO_WISHES, Wishes
from workflow.errors import ChironError
from workflow.model import Workflow
from workflow.plan import Mechanism, Model, Plan
from workflow.platform import Platform
from workflow.profile import Profile

_FIXED_LAYOUTS = {
    "sand": sand,
    "faastlane": faastlane,
    "faastlane-t": faastlane_t,
    "faastlane+": faastlane_plus,
}


def schedule(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    slo_ms: float,
    *,
    model: Model = "pgp",
    mechanism: MechanismChoice = "fork",
    strategy: Strategy = "cost",
    wishes: Wishes = NO_WISHES,
    environments: Environments | None = None,
    secrets: Secrets | None = None,
    limits: Limits | None = None,
    headroom: bool = False,
) -> Plan:
    """The plan of `model` for `workflow`, predicted, with whether it meets the SLO.

    An SLO that cannot be met is an answer: the fastest plan found, with ``meets_slo`` false.

    Parameters
    ----------
    slo_ms
        End-to-end latency that the plan has to stay within, in milliseconds, greater than 0.
    mechanism
        ``auto`` plans with each and takes the better plan.
    strategy
        What is best among the plans of model ``pgp`` that meet the SLO.
    wishes, environments, limits
        What the user wants kept apart or together, the variables of each function, and what the
        cluster bears. The fixed models cannot respect them; ``why`` says where they do not.
    secrets
        The names of each function's secrets: ``why`` says who else can read them.
    headroom
        Whether the high end of the prediction has to stay within the SLO, not its middle.

    Raises
    ------
    ChironError
        ``bad-slo``; ``unknown-function`` where the profile or the workflow lacks a function;
        ``bad-requirement``; ``impossible-wishes``.
    """
    job = job_of(
        workflow,
        profile,
        platform,
        slo_ms,
        wishes=wishes,
        environments=environments,
        secrets=secrets,
        limits=limits,
        headroom=headroom,
    )
    options = {each: Options.of(job, each) for each in mechanisms_of(mechanism)}
    if model == "pgp":
        found = [choose(each, strategy, slo_ms) for each in options.values()]
    else:
        found = [each.judged(_fixed(job, model, m)) for m, each in options.items()]
    best = min(found, key=better(strategy, slo_ms)).plan
    if model == "pgp" and strategy == "cost" and best.cpus > 1:
        fewer_ms = options[best.mechanism].search.floor_ms(best.cpus - 1)
    else:
        fewer_ms = None
    return assess(best, job, slo_ms, strategy, fewer_ms)


def schedule_as(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    slo_ms: float,
    choices: Choices,
    settings: FolderSettings,
) -> Plan:
    """What `schedule` plans with the user's `choices` and the `settings` of the folder."""
    return schedule(
        workflow,
        profile,
        platform,
        slo_ms,
        model=choices.model,
        mechanism=choices.mechanism,
        strategy=choices.strategy,
        wishes=settings.wishes,
        environments=settings.environments,
        secrets=settings.secrets,
        limits=choices.limits,
        headroom=choices.headroom,
    )


def mechanisms_of(choice: MechanismChoice) -> tuple[Mechanism, ...]:
    """The mechanisms that a choice stands for."""
    return get_args(Mechanism) if choice == "auto" else (choice,)


def job_of(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    slo_ms: float,
    *,
    wishes: Wishes = NO_WISHES,
    environments: Environments | None = None,
    secrets: Secrets | None = None,
    limits: Limits | None = None,
    headroom: bool = False,
) -> Job:
    """What is to be scheduled, checked; raises as `schedule` does."""
    if not 0 < slo_ms < math.inf:
        raise ChironError(
            "bad-slo", f"the SLO has to be greater than 0 ms and finite, not {slo_ms:g}"
        )
    profile.require(workflow.functions)
    conflicts = find_conflicts(workflow.functions, profile, wishes, environments or {})
    limits = limits or Limits()
    return Job(workflow, profile, platform, conflicts, limits, headroom, secrets or {})


def assess(
    plan: Plan,
    job: Job,
    slo_ms: float,
    strategy: Strategy = "cost",
    fewer_ms: float | None = None,
) -> Plan:
    """`plan` with its prediction, the verdict on `slo_ms`, and the reasons in words.

    `fewer_ms` is what a plan with one CPU less takes at least, where the search has tried that.
    """
    prediction = predict(plan, job.workflow, job.profile, job.platform)
    judged_ms = prediction.high_ms if job.headroom else prediction.latency_ms
    assessed = plan.model_copy(
        update={"slo_ms": slo_ms, "predicted": prediction, "meets_slo": judged_ms <= slo_ms}
    )
    why = explain(assessed, job, strategy, fewer_ms if assessed.meets_slo else None)
    return assessed.model_copy(update={"why": why})


def _fixed(job: Job, model: Model, mechanism: Mechanism) -> Plan:
    names = None
    if model == "one-to-one":
        layout, names = one_to_one(job.workflow)
    else:
        layout = _FIXED_LAYOUTS[model](job.workflow)
    return plan_from_layout(
        layout,
        job.workflow,
        job.profile,
        model=model,
        mechanism=mechanism,
        node_cpus=job.platform.cpus,
        names=names,
    )
