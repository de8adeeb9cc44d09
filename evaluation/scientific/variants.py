"""What is compared: plans of several planners, and what differs of them in trigger and path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from predictor.predict import predict
from scheduler.choices import Choices
from scheduler.schedule import schedule
from workflow.model import Workflow
from workflow.plan import Plan
from workflow.platform import Platform
from workflow.profile import Profile

#: Any SLO: the fastest plan is wanted.
_ANY_SLO_MS = 1e6


class Variant(NamedTuple):
    """The fastest plan that a planner finds, with `changes` of its fields."""

    planner: str
    changes: Mapping[str, Any] = {}


#: What all are compared with: the client drives every task, as a master does, and has all data.
BASELINE = "one-to-one"
OURS = "pgp"
#: By their labels.
VARIANTS = {
    BASELINE: Variant("one-to-one"),
    OURS: Variant("pgp"),
    "pgp by stage": Variant("pgp", {"trigger": "stage"}),
}


def plans_of(workflow: Workflow, profile: Profile, platform: Platform) -> dict[str, Plan]:
    """The plan of every variant, predicted."""
    made: dict[str, Plan] = {}
    plans = {}
    for label, variant in VARIANTS.items():
        if variant.planner not in made:
            choices = Choices(planner=variant.planner, mechanism="auto", strategy="latency")
            made[variant.planner] = schedule(workflow, profile, platform, _ANY_SLO_MS, choices)
        plan = made[variant.planner].model_copy(update=dict(variant.changes))
        predicted = predict(plan, workflow, profile, platform)
        plans[label] = plan.model_copy(update={"predicted": predicted})
    return plans


def critical_path_ms(workflow: Workflow, profile: Profile) -> float:
    """The longest way through the solo latencies of the tasks, however many cores there are."""
    ends: dict[str, float] = {}
    for stage in workflow.stages:
        for name in stage:
            task = workflow.by_name[name]
            begin = max((ends[each] for each in task.predecessors), default=0.0)
            ends[name] = begin + profile.functions[task.function].latency_ms
    return round(max(ends.values()), 3)


def computing_ms(workflow: Workflow, profile: Profile) -> float:
    """What all tasks of a request compute together: no plan takes less than that by the cores."""
    functions = (profile.functions[task.function] for task in workflow.tasks)
    periods = (period for function in functions for period in function.periods)
    spent = (p.duration_ms * p.parallelism for p in periods if p.kind != "block")
    return round(sum(spent), 3)
