"""Which functions are called for one request of a workflow, and with what."""

from __future__ import annotations

from dataclasses import dataclass

from workflow.model import Source, Workflow
from workflow.plan import Plan


@dataclass(frozen=True)
class Call:
    """One call of a function: its body is what `source` stands for, its answer `task`'s output."""

    function: str
    task: str
    source: Source


@dataclass(frozen=True)
class Route:
    """The calls of a request, stage by stage, and which of their answers are the workflow's."""

    stages: tuple[tuple[Call, ...], ...]
    output: Source


def route_of(plan: Plan, workflow: Workflow) -> Route:
    """The route of `plan`: one call of the entry wrap, or one a task where the client calls."""
    if not plan.called_by_client:
        entry = plan.wraps[0].name
        return Route(((Call(entry, entry, None),),), entry)
    stages: list[list[Call]] = [[] for _ in workflow.stages]
    for wrap in plan.wraps:
        task = wrap.tasks[0]
        source = workflow.by_name[task].source
        stages[wrap.stages[0].stage].append(Call(wrap.name, task, source))
    return Route(tuple(map(tuple, stages)), workflow.output)
