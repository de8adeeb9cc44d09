"""The replicas of a plan that was made for a load, as labels for OpenFaaS's scaling."""

from __future__ import annotations

import math
from collections.abc import Mapping

from chiron.openfaas.objects import (
    DEFAULT_MAX,
    MAX_LABEL,
    MIN_LABEL,
    PROPORTION_LABEL,
    TARGET_LABEL,
    TYPE_LABEL,
)
from chiron.scheduler.concurrency import concurrency
from chiron.workflow.plan import ALONE, Plan

#: The share of time that a replica computes at its target load.
BUSY = 0.7


def scale_labels(plan: Plan, index: int, own: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a wrap; `own` are labels that the user set, which take precedence.

    Only a function that is profiled has one replica, whatever its labels ask for.

    The minimum is the planned replicas, up to the user's maximum. The target is the capacity of a
    replica. It is in requests per second for a wrap called through the gateway. Otherwise it is in
    thousandths of a core, as the gateway does not count direct calls.
    """
    if plan.planner == ALONE:
        return {**own, MIN_LABEL: "1"}
    if plan.under_load is None:
        return dict(own)
    replicas, per_s = plan.wraps[index].replicas, plan.under_load.load.per_s
    most = _count(own, MAX_LABEL)
    labels = {MIN_LABEL: str(replicas if most is None else min(replicas, most))}
    if replicas > DEFAULT_MAX:
        labels[MAX_LABEL] = str(replicas)
    needed = needed_replicas(plan, index)
    if per_s is None or needed is None:
        return {**labels, **own}
    if index == 0 or plan.orchestrator == "client":
        counted, target = "rps", target_per_s(per_s, needed)
    elif cpu_ms := request_cpu_ms(plan, index):
        counted, target = "cpu", max(1, round(per_s * cpu_ms / needed))
    else:
        return {**labels, **own}
    scaling = {TYPE_LABEL: counted, TARGET_LABEL: str(target), PROPORTION_LABEL: "1"}
    return {**labels, **scaling, **own}


def needed_replicas(plan: Plan, index: int) -> float | None:
    """Return the number of replicas that the rate of the plan keeps busy; None without a rate.

    A plan has whole replicas, and the last may be almost idle. As the SLO would be missed without
    it, the number lies between that of the other replicas and that of all. The entry holds each
    request until its answer, and executes a limited number at once.
    """
    load = plan.under_load.load if plan.under_load else None
    if plan.under_load is None or load is None or load.per_s is None:
        return None
    wrap, cpu_ms = plan.wraps[index], request_cpu_ms(plan, index)
    if not cpu_ms or plan.orchestrator == "client":
        return float(wrap.replicas)
    busy = load.per_s * cpu_ms / (1000 * wrap.cpus)
    if index == 0 and plan.under_load.mean:
        busy = max(busy, load.per_s * plan.under_load.mean.ms / (1000 * concurrency(plan)))
    return min(float(wrap.replicas), max(float(wrap.replicas - 1), busy / BUSY))


def request_cpu_ms(plan: Plan, index: int) -> float:
    """Return the CPU time of a request in a wrap, in milliseconds; 0 if unknown.

    Each wrap gets an equal part of the CPU time that requests use beyond their functions.
    """
    demands = [wrap.demand.cpu_ms for wrap in plan.wraps if wrap.demand]
    own = plan.wraps[index].demand
    if own is None or plan.under_load is None:
        return 0.0
    beyond_ms = max(0.0, plan.under_load.cpu_ms - sum(demands))
    return own.cpu_ms + beyond_ms / len(demands)


def target_per_s(per_s: float, replicas: float) -> int:
    """Return the requests per second for each of `replicas`; OpenFaaS reads whole numbers."""
    return max(1, math.floor(per_s / replicas))


def fewer_than_planned(plan: Plan, index: int, labels: Mapping[str, str]) -> str | None:
    """Return a warning if the labels of a wrap allow fewer replicas than the load needs."""
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
    """Return the number in a label; None without one."""
    text = labels.get(label, "")
    return int(text) if text.isdecimal() else None
