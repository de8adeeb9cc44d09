"""The replicas of a plan that was made for a load, as OpenFaaS's scaling reads them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from chiron.openfaas.objects import (
    DEFAULT_MAX,
    MAX_LABEL,
    MIN_LABEL,
    TARGET_LABEL,
    TYPE_LABEL,
)
from chiron.workflow.plan import Plan


def scale_labels(plan: Plan, index: int, own: Mapping[str, str]) -> dict[str, str]:
    """The labels of a wrap, where `own` are those that the user set, which stay as they are.

    There are at least as many replicas as planned, as far as the user's maximum goes. Requests that
    come through the gateway are counted there: each replica is for its share of the rate.
    """
    if plan.under_load is None:
        return dict(own)
    replicas, per_s = plan.wraps[index].replicas, plan.under_load.load.per_s
    most = _count(own, MAX_LABEL)
    labels = {MIN_LABEL: str(replicas if most is None else min(replicas, most))}
    if replicas > DEFAULT_MAX:
        labels[MAX_LABEL] = str(replicas)
    if per_s is not None and (index == 0 or plan.orchestrator == "client"):
        labels[TYPE_LABEL] = "rps"
        labels[TARGET_LABEL] = str(target_per_s(per_s, replicas))
    return {**labels, **own}


def target_per_s(per_s: float, replicas: int) -> int:
    """Requests per second that each of so many replicas is for; OpenFaaS reads whole numbers."""
    return max(1, math.floor(per_s / replicas))


def fewer_than_planned(plan: Plan, index: int, labels: Mapping[str, str]) -> str | None:
    """A line where the labels of a wrap allow fewer replicas at once than the load needs."""
    wrap = plan.wraps[index]
    if plan.under_load is None:
        return None
    for label in (MIN_LABEL, MAX_LABEL):
        count = _count(labels, label)
        if count is not None and count < wrap.replicas:
            return (
                f"wrap {wrap.name}: label {label} is {count}, and the plan has "
                f"{wrap.replicas} replicas for {plan.under_load.load.shown}: raise or remove it"
            )
    return None


def _count(labels: Mapping[str, str], label: str) -> int | None:
    """The number in a label; None where there is none."""
    text = labels.get(label, "")
    return int(text) if text.isdecimal() else None
