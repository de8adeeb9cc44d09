"""The verb `schedule`: from a workflow, a profile, a platform and an SLO to a predicted plan."""

from __future__ import annotations

import math

from predictor.mechanisms import MECHANISMS
from predictor.predict import predict
from scheduler.choices import NO_CHOICES, Choices, MechanismChoice, Strategy
from scheduler.conflict_rules import find_conflicts
from scheduler.deciding import plans_by_payload, sized_for_payloads, with_unreached
from scheduler.explain import explain
from scheduler.folder_settings import NO_SETTINGS, FolderSettings
from scheduler.limits import exceeded
from scheduler.options import Job, Option, Options, planned
from scheduler.planners import PLANNERS, searched
from scheduler.strategies import better, choose
from workflow.errors import ChironError
from workflow.model import Workflow
from workflow.plan import Plan
from workflow.platform import Platform
from workflow.profile import Profile


def schedule(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    slo_ms: float,
    choices: Choices = NO_CHOICES,
    settings: FolderSettings = NO_SETTINGS,
) -> Plan:
    """The plan for `workflow` by the user's `choices`, predicted, with whether it meets the SLO.

    An SLO that cannot be met is an answer: the fastest plan found, with ``meets_slo`` false.

    Parameters
    ----------
    slo_ms
        End-to-end latency that the plan has to stay within, in milliseconds, greater than 0.
    choices
        Of mechanisms, ``auto`` plans with each and takes the better plan. Where the client calls
        every task the trigger is ``stage``, unless the workflow decides while it runs.
    settings
        What is to be kept apart or together, the variables and secrets of each function. Fixed
        layouts cannot respect that, nor limits; ``why`` says where they do not, and what else can
        read a function's secrets.

    Raises ``bad-slo``; ``unknown-function`` where the profile or the workflow lacks a function;
    ``bad-requirement``; ``impossible-constraints``.
    """
    if workflow.machine is not None:
        return _decided(workflow, profile, platform, slo_ms, choices, settings)
    job = job_of(workflow, profile, platform, slo_ms, choices, settings)
    planner, strategy = choices.planner, choices.strategy
    options = {each: Options.of(job, each) for each in mechanisms_of(choices.mechanism)}
    fixed = PLANNERS[planner].layout
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


def _decided(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    slo_ms: float,
    choices: Choices,
    settings: FolderSettings,
) -> Plan:
    """The best of the plans for what each payload has a workflow do that decides while it runs."""
    profile = with_unreached(workflow, profile)
    job = job_of(workflow, profile, platform, slo_ms, choices, settings)
    planner = PLANNERS[choices.planner]
    if planner.layout is not None and planner.orchestrator == "client":
        layout = planner.layout(workflow)
        plans = [
            sized_for_payloads(planned(job, each, layout, choices.planner), profile, workflow)
            for each in mechanisms_of(choices.mechanism)
        ]
    else:
        plans = plans_by_payload(
            workflow,
            profile,
            lambda static, known: schedule(static, known, platform, slo_ms, choices, settings),
            searched=searched(choices.planner),
        )

    def judged(plan: Plan) -> Option:
        predicted = predict(plan, workflow, profile, platform)
        judged_ms = predicted.high_ms if job.headroom else predicted.latency_ms
        return Option(plan, judged_ms, fits=not exceeded(plan, job.limits))

    best = min(map(judged, plans), key=better(choices.strategy, slo_ms)).plan
    return assess(best, job, slo_ms, choices.strategy)


def mechanisms_of(choice: MechanismChoice) -> tuple[str, ...]:
    """The mechanisms that a choice stands for."""
    return tuple(MECHANISMS) if choice == "auto" else (choice,)


def job_of(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    slo_ms: float,
    choices: Choices = NO_CHOICES,
    settings: FolderSettings = NO_SETTINGS,
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
    return Job(
        workflow,
        profile,
        platform,
        conflicts,
        choices.limits,
        choices.headroom,
        settings.secrets,
        choices.trigger,
    )


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
