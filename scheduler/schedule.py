"""The verb `schedule`: from a workflow, a profile, a platform and an SLO to a predicted plan."""

from __future__ import annotations

import math

from predictor.mechanisms import DEFAULT_MECHANISM, MECHANISMS
from predictor.predict import predict
from scheduler.choices import Choices, MechanismChoice, PlannerChoice, Strategy
from scheduler.conflict_rules import find_conflicts
from scheduler.explain import explain
from scheduler.folder_settings import NO_SETTINGS, FolderSettings
from scheduler.limits import Limits
from scheduler.options import Job, Options, planned
from scheduler.planners import DEFAULT_PLANNER, PLANNERS
from scheduler.strategies import better, choose
from workflow.errors import ChironError
from workflow.model import Workflow
from workflow.plan import DEFAULT_TRIGGER, Plan
from workflow.platform import Platform
from workflow.profile import Profile
from workflow.triggers import TriggerKind


def schedule(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    slo_ms: float,
    *,
    planner: PlannerChoice = DEFAULT_PLANNER,
    mechanism: MechanismChoice = DEFAULT_MECHANISM,
    trigger: TriggerKind = DEFAULT_TRIGGER,
    strategy: Strategy = "cost",
    settings: FolderSettings = NO_SETTINGS,
    limits: Limits | None = None,
    headroom: bool = False,
) -> Plan:
    """The plan of `planner` for `workflow`, predicted, with whether it meets the SLO.

    An SLO that cannot be met is an answer: the fastest plan found, with ``meets_slo`` false.

    Parameters
    ----------
    slo_ms
        End-to-end latency that the plan has to stay within, in milliseconds, greater than 0.
    mechanism
        ``auto`` plans with each and takes the better plan.
    trigger
        What tasks wait for; where the client calls every task it is ``stage``.
    strategy
        What is best among the plans that a search finds and that meet the SLO.
    settings, limits
        What the user wants kept apart or together, the variables and secrets of each function, and
        what the cluster bears. Fixed layouts cannot respect them; ``why`` says where they do not,
        and what else can read a function's secrets.
    headroom
        Whether the high end of the prediction has to stay within the SLO, not its middle.

    Raises ``bad-slo``; ``unknown-function`` where the profile or the workflow lacks a function;
    ``bad-requirement``; ``impossible-constraints``.
    """
    job = job_of(
        workflow,
        profile,
        platform,
        slo_ms,
        settings=settings,
        limits=limits,
        headroom=headroom,
        trigger=trigger,
    )
    options = {each: Options.of(job, each) for each in mechanisms_of(mechanism)}
    fixed = PLANNERS[planner].layout if planner in PLANNERS else None
    if fixed is None:
        found = [choose(each, strategy, slo_ms) for each in options.values()]
    else:
        layout = fixed(workflow)
        found = [each.judged(planned(job, m, layout, planner)) for m, each in options.items()]
    best = min(found, key=better(strategy, slo_ms)).plan
    fewer_ms = None
    if fixed is None and strategy == "cost" and best.cpus > 1:
        fewer_ms = options[best.mechanisms].search.floor_ms(best.cpus - 1)
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
        planner=choices.planner,
        mechanism=choices.mechanism,
        trigger=choices.trigger,
        strategy=choices.strategy,
        settings=settings,
        limits=choices.limits,
        headroom=choices.headroom,
    )


def mechanisms_of(choice: MechanismChoice) -> tuple[str, ...]:
    """The mechanisms that a choice stands for."""
    return tuple(MECHANISMS) if choice == "auto" else (choice,)


def job_of(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    slo_ms: float,
    *,
    settings: FolderSettings = NO_SETTINGS,
    limits: Limits | None = None,
    headroom: bool = False,
    trigger: TriggerKind = DEFAULT_TRIGGER,
) -> Job:
    """What is to be scheduled, checked; raises as `schedule` does."""
    if not 0 < slo_ms < math.inf:
        raise ChironError(
            "bad-slo", f"the SLO has to be greater than 0 ms and finite, not {slo_ms:g}"
        )
    profile.require(workflow.functions)
    conflicts = find_conflicts(
        workflow.functions, profile, settings.constraints, settings.environments
    )
    limits = limits or Limits()
    return Job(workflow, profile, platform, conflicts, limits, headroom, settings.secrets, trigger)


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
