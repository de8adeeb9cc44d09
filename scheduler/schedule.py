"""The verb `schedule`: from a workflow, a profile, a platform and an SLO to a predicted plan."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from chiron.predictor.mechanisms import MECHANISMS
from chiron.predictor.predict import predict
from chiron.predictor.speed import profile_at
from chiron.scheduler.choices import NO_CHOICES, Choices, MechanismChoice, Strategy
from chiron.scheduler.conflict_rules import find_conflicts
from chiron.scheduler.explain import explain
from chiron.scheduler.folder_settings import NO_SETTINGS, FolderSettings
from chiron.scheduler.options import Job, Option, Options
from chiron.scheduler.planners import searched
from chiron.scheduler.strategies import better, choose
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan, Unforkable
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile


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

    Args:
        slo_ms: end-to-end latency that the plan has to stay within, in milliseconds, greater than
            0.
        choices: of mechanisms, ``auto`` plans with each and takes the better plan. Where the client
            calls every task the trigger is ``stage``, unless the workflow decides while it runs.
        settings: what is to be kept apart or together, the variables and secrets of each function.
            Fixed layouts cannot respect that, nor limits; ``why`` says where they do not, and what
            else can read a function's secrets.

    Raises ``bad-slo``; ``unknown-function`` where the profile or the workflow lacks a function;
    ``bad-requirement``; ``impossible-constraints``.
    """
    job = job_of(workflow, profile, platform, slo_ms, choices, settings)
    planner, strategy = choices.planner, choices.strategy
    options = options_of(job, choices.mechanism)
    if searched(planner):
        found = [choose(each, strategy, slo_ms) for each in options]
    else:
        found = fixed_by(planner, options)
    best = min(found, key=better(strategy, slo_ms)).plan
    fewer_ms = None
    if searched(planner) and strategy == "cost" and best.cpus > 1 and workflow.machine is None:
        (floor_ms,) = (o.search.floor_ms for o in options if o.mechanism == best.mechanisms)
        fewer_ms = floor_ms(best.cpus - 1)
    return assess(best, job, slo_ms, strategy, fewer_ms)


def fixed_by(planner: str, options: Iterable[Options]) -> list[Option]:
    """The plan of a planner that does not search, with each of the mechanisms."""
    # Of what payloads do, the most: all that goes by none of it has a place as well.
    most = {
        each.mechanism: each for each in sorted(options, key=lambda o: len(o.run.workflow.tasks))
    }
    return [each.judged(each.of_planner(planner)) for each in most.values()]


def options_of(job: Job, choice: MechanismChoice) -> list[Options]:
    """The options of a job, with each of the mechanisms that `choice` stands for."""
    mechanisms = MECHANISMS if choice == "auto" else (choice,)
    return [each for mechanism in mechanisms for each in Options.all_of(job, mechanism)]


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
    profile = profile_at(profile, platform.cpu_probe_ms)
    conflicts = find_conflicts(
        workflow.functions, profile, settings.constraints, settings.environments
    )
    limits = replace(choices.limits, called=len(settings.called))
    if workflow.buckets is not None:
        limits = replace(limits, functions=1 + limits.called)
    return Job(
        workflow,
        profile,
        platform,
        conflicts,
        limits,
        settings.secrets,
        choices.trigger,
        choices.percentile,
        choices.path,
        choices.attempts,
    )


def assess(
    plan: Plan, job: Job, slo_ms: float, strategy: Strategy = "cost", fewer_ms: float | None = None
) -> Plan:
    """`plan` with its prediction, the verdict on `slo_ms`, and the reasons in words.

    `fewer_ms` is what a plan with one CPU less takes at least, where the search has tried that.
    """
    prediction = predict(plan, job.workflow, job.profile, job.platform, job.percentile)
    meets_slo = prediction.judged_ms <= slo_ms
    assessed = plan.model_copy(
        update={
            "slo_ms": slo_ms,
            "predicted": prediction,
            "meets_slo": meets_slo,
            "attempts": job.attempts,
            "unforkable": tuple(
                Unforkable(function=name, reason=reason)
                for name in job.workflow.functions
                if (reason := job.profile.functions[name].unforkable)
            ),
            "apart": job.conflicts.told,
        }
    )
    why = explain(assessed, job, strategy, fewer_ms if assessed.meets_slo else None)
    return assessed.model_copy(update={"why": why})
