"""What a wrap's handler.py declares, derived from the plan and the workflow.

Task names are free text, so they are numbers here: in the order of the workflow's definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from workflow.model import Source, Workflow
from workflow.plan import Plan, Wrap
from workflow.reference import HandlerStyle

#: A source with numbers for names: the runtime's form.
NumberedSource = int | list[int] | None


@dataclass(frozen=True)
class EntryDeclaration:
    """The workflow as the wrap knows it that receives its requests."""

    inputs: dict[int, NumberedSource]
    output: NumberedSource
    stages: list[dict[str, list[int]]]
    fail: tuple[str, str] | None
    functions: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WrapDeclaration:
    """The fields of the runtime's ``Wrap``, in its order."""

    workflow: str
    name: str
    mechanism: str
    functions: dict[str, HandlerStyle]
    tasks: dict[int, str]
    stages: dict[int, list[list[int]]]
    timeout_s: float
    entry: EntryDeclaration | None
    timeouts_s: dict[str, float] = field(default_factory=dict)


def task_numbers(workflow: Workflow) -> dict[str, int]:
    """The number of every task."""
    return {task.name: number for number, task in enumerate(workflow.tasks)}


def numbered(source: Source, numbers: Mapping[str, int]) -> NumberedSource:
    """`source` in the runtime's form."""
    if source is None:
        return None
    return numbers[source] if isinstance(source, str) else [numbers[name] for name in source]


def declare(
    plan: Plan,
    index: int,
    workflow: Workflow,
    styles: Mapping[str, HandlerStyle],
    timeout_s: float,
    timeouts_s: Mapping[str, float] = MappingProxyType({}),
) -> WrapDeclaration:
    """The declaration of the wrap at `index` of `plan`.

    The first wrap of a plan is its entry. Where the client calls every wrap, each is the entry
    of its own task: request in, output out.

    Parameters
    ----------
    timeout_s
        Seconds that a request may take.
    timeouts_s
        Function -> seconds that it may take, for those that have a limit of their own.
    """
    wrap = plan.wraps[index]
    numbers = task_numbers(workflow)
    functions = functions_in(wrap, workflow)
    stages = {
        stage: [[numbers[task] for task in process] for process in processes]
        for stage, processes in enumerate(map(wrap.part, workflow.stages))
        if processes
    }
    tasks = {numbers[task]: workflow.function_of(task) for task in wrap.tasks}
    entry = None
    if plan.orchestrator == "client":
        stages = {0: next(iter(stages.values()))}
        task = next(iter(tasks))
        entry = EntryDeclaration(inputs={task: None}, output=task, stages=[{}], fail=None)
    elif index == 0:
        entry = _entry(plan, workflow, numbers)
    return WrapDeclaration(
        workflow=workflow.name,
        name=wrap.name,
        mechanism=wrap.mechanism,
        functions={name: styles[name] for name in functions},
        tasks=dict(sorted(tasks.items())),
        stages=stages,
        timeout_s=timeout_s,
        entry=entry,
        timeouts_s={name: timeouts_s[name] for name in functions if name in timeouts_s},
    )


def functions_in(wrap: Wrap, workflow: Workflow) -> list[str]:
    """The functions whose code a wrap needs, each once."""
    return sorted({workflow.function_of(task) for task in wrap.tasks})


def _entry(plan: Plan, workflow: Workflow, numbers: Mapping[str, int]) -> EntryDeclaration:
    remote: list[dict[str, list[int]]] = [
        {
            plan.wraps[index].name: [numbers[task] for process in processes for task in process]
            for index, processes in plan.parts(stage)
            if index > 0
        }
        for stage in workflow.stages
    ]
    failure = workflow.failure
    return EntryDeclaration(
        inputs={numbers[task.name]: numbered(task.source, numbers) for task in workflow.tasks},
        output=numbered(workflow.output, numbers),
        stages=remote,
        fail=(failure.error, failure.cause) if failure else None,
        functions={
            numbers[task]: workflow.function_of(task)
            for wrap in plan.wraps[1:]
            for task in wrap.tasks
        },
    )
