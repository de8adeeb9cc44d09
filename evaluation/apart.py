"""Keeps what is deployed for an evaluation apart from what the user has deployed."""

from __future__ import annotations

from scheduler.layout import wrap_name
from workflow.plan import Plan


def apart(plan: Plan, mark: str = "eval") -> Plan:
    """`plan` with wraps of other names, so that nothing that is deployed is updated by it."""
    wraps = tuple(
        wrap.model_copy(update={"name": wrap_name(wrap.name, mark)}) for wrap in plan.wraps
    )
    return plan.model_copy(update={"wraps": wraps})
