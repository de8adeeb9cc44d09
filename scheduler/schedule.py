"""The verb `schedule`: from a workflow, a profile, a platform and an SLO to a predicted plan."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from chiron.predictor.mechanisms import DEFAULT_MECHANISM, mechanism_of, mechanisms_on
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
    """Return the plan for `workflow` by the user's `choices`, predicted and judged by the SLO.

    If no plan meets the SLO, return the fastest plan found, with ``meets_slo`` false.

    Args:
        slo_ms: upper bound of the plan's end-to-end latency, in milliseconds, greater than 0.
        choices: for the mechanism ``auto``, the better plan of all mechanisms is returned. If the
            client calls every task, the trigger is ``stage``, unless the workflow decides at run
            time.
        settings: placement constraints, and the variables and secrets of each function. Fixed
            layouts ignore constraints and limits; ``why`` lists the violations, and which functions
            can read another function's secrets.

    Raises ``bad-slo``; ``unknown-function`` if the profile or the workflow lacks a function;
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
    """Return the plans of a planner that does not search, one for each mechanism."""
    # The run with the most tasks, so that the plan places the tasks of every run.
    most = {
        each.mechanism: each for each in sorted(options, key=lambda o: len(o.run.workflow.tasks))
    }
    return [each.judged(each.of_planner(planner)) for each in most.values()]


def options_of(job: Job, choice: MechanismChoice) -> list[Options]:
    """Return the options of a job for each mechanism that `choice` stands for."""
    mechanisms = mechanisms_on(job.platform) if choice == "auto" else (choice,)
    return [each for mechanism in mechanisms for each in Options.all_of(job, mechanism)]


def job_of(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    slo_ms: float,
    choices: Choices = NO_CHOICES,
    settings: FolderSettings = NO_SETTINGS,
) -> Job:
    """Return the validated job; raises as `schedule` does."""
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
    """Return `plan` with its prediction, the verdict on `slo_ms`, and the reasons in words.

    `fewer_ms` is a lower bound of the latency with one CPU less, if the search computed that bound.
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
                Unforkable(function=name, reason=reason, mechanism=mechanism)
                for mechanism in dict.fromkeys(
                    (DEFAULT_MECHANISM, *(wrap.mechanism for wrap in plan.wraps))
                )
                for name in job.workflow.functions
                if (reason := mechanism_of(mechanism).refusal(job.profile.functions[name]))
            ),
            "apart": job.conflicts.rules,
        }
    )
    why = explain(assessed, job, strategy, fewer_ms if assessed.meets_slo else None)
    return assessed.model_copy(update={"why": why})
