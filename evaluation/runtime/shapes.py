"""Workflows of one function, and plans that run them as threads, processes and remote wraps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workflow.model import Source, Task, Workflow
from workflow.plan import Mechanism, Plan, Wrap, WrapStage

#: Tasks of each process of each wrap in a stage: ``((0, 1, 1),)`` is one wrap that starts two
#: further processes of one task each, and has nothing to do itself meanwhile.
Sizes = Sequence[Sequence[int]]
THREAD: Sizes = ((1,),)
PROCESS: Sizes = ((0, 1),)
REMOTE: Sizes = ((), (1,))

_CPUS, _MEMORY_MIB = 2, 512


@dataclass(frozen=True)
class Shape:
    """A workflow and the plan that it is deployed as."""

    name: str
    workflow: Workflow
    plan: Plan


def shape(
    name: str, function: str, stages: Sequence[Sizes], mechanism: Mechanism = "fork"
) -> Shape:
    """A workflow whose tasks all use `function`; each stage takes the outputs of the one before."""
    workflow_name = f"chiron-evaluate-{name}"
    tasks: list[Task] = []
    source: Source = None
    parts: dict[int, list[WrapStage]] = {}
    for number, sizes in enumerate(stages):
        names = iter([f"s{number}t{n}" for n in range(sum(map(sum, sizes)))])
        before = len(tasks)
        for index, processes in enumerate(sizes):
            if not processes:
                continue
            placed = tuple(tuple(next(names) for _ in range(size)) for size in processes)
            parts.setdefault(index, []).append(WrapStage(stage=number, processes=placed))
            tasks += [Task(task, function, source) for process in placed for task in process]
        source = _outputs([task.name for task in tasks[before:]])
    wraps = tuple(
        Wrap(
            name=f"{workflow_name}-wrap{index + 1}",
            cpus=_CPUS,
            memory_mib=_MEMORY_MIB,
            stages=tuple(parts[index]),
        )
        for index in sorted(parts)
    )
    plan = Plan(
        format=1,
        workflow=workflow_name,
        model="pgp",
        mechanism=mechanism,
        wraps=wraps,
        cpus=_CPUS * len(wraps),
    )
    return Shape(name, Workflow(workflow_name, tuple(tasks), source), plan)


def _outputs(names: list[str]) -> Source:
    return names[0] if len(names) == 1 else tuple(names)
