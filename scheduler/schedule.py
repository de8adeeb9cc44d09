"""The verb `schedule`: from a workflow, a profile, a platform and an SLO to a predicted plan."""

from __future__ import annotations

import math

from predictor.predict import predict
from scheduler.explain import explain
from scheduler.layout import plan_from_layout
from scheduler.models import faastlane, faastlane_plus, faastlane_t, one_to_one, sand
from scheduler.pgp import Search, pgp
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
    mechanism: Mechanism = "fork",
) -> Plan:
    """The plan of `model` for `workflow`, predicted, with whether it meets the SLO.

    An SLO that cannot be met is an answer: the fastest plan found, with ``meets_slo`` false.

    Parameters
    ----------
    slo_ms
        End-to-end latency that the plan has to stay within, in milliseconds, greater than 0.

    Raises
    ------
    ChironError
        ``bad-slo``, or ``unknown-function`` where the profile lacks a function.
    """
    if not 0 < slo_ms < math.inf:
        raise ChironError(
            "bad-slo", f"the SLO has to be greater than 0 ms and finite, not {slo_ms:g}"
        )
    profile.require(workflow.functions)
    names = None
    if model == "pgp":
        layout = pgp(Search.of(workflow, profile, platform, mechanism), slo_ms)
    elif model == "one-to-one":
        layout, names = one_to_one(workflow)
    else:
        layout = _FIXED_LAYOUTS[model](workflow)
    plan = plan_from_layout(
        layout, workflow, profile, model=model, mechanism=mechanism, names=names
    )
    return assess(plan, workflow, profile, platform, slo_ms)


def assess(
    plan: Plan, workflow: Workflow, profile: Profile, platform: Platform, slo_ms: float
) -> Plan:
    """`plan` with its prediction, the verdict on `slo_ms`, and the reasons in words."""
    prediction = predict(plan, workflow, profile, platform)
    assessed = plan.model_copy(
        update={
            "slo_ms": slo_ms,
            "predicted": prediction,
            "meets_slo": prediction.latency_ms <= slo_ms,
        }
    )
    return assessed.model_copy(update={"why": explain(assessed, workflow, profile, platform)})
