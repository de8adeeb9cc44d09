"""Limits of a cluster: the number of functions, and the size of a node."""

from __future__ import annotations

from dataclasses import dataclass

from chiron.scheduler.planners import DEFAULT_PLANNER, searched
from chiron.workflow.plan import Plan

#: The most functions in OpenFaaS Community Edition, by its end-user licence agreement.
COMMUNITY_EDITION_FUNCTIONS = 15


@dataclass(frozen=True)
class Limits:
    """How many functions may be deployed, and the memory of a node (None: unknown).

    `called` of these functions are not wraps. A node's CPUs are the platform's.
    """

    functions: int = COMMUNITY_EDITION_FUNCTIONS
    node_memory_mib: int | None = None
    called: int = 0

    @property
    def wraps(self) -> int:
        """How many wraps are allowed, at least 1."""
        return max(1, self.functions - self.called)


def exceeded(plan: Plan, limits: Limits) -> tuple[str, ...]:
    """Return a line for every limit that `plan` exceeds, with the necessary change."""
    lines, found = list[str](), searched(plan.planner)
    count = len(plan.wraps) + limits.called
    if count > limits.functions:
        mend = "remove what conflicts" if found else f"--planner {DEFAULT_PLANNER} needs fewer"
        lines.append(
            f"limit: {count} functions to deploy, {limits.functions} allowed "
            f"(Community Edition: {COMMUNITY_EDITION_FUNCTIONS}): {mend}, or raise --max-functions"
        )
    memory = limits.node_memory_mib
    large = [wrap for wrap in plan.wraps if memory is not None and wrap.memory_mib > memory]
    mend = "smaller ones were not found" if found else f"--planner {DEFAULT_PLANNER} may need less"
    lines += [
        f"limit: {wrap.name} needs {wrap.memory_mib} MiB, a node has {memory}: "
        f"{mend}, or raise --node-memory"
        for wrap in large
    ]
    return tuple(lines)
