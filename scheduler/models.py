"""The deployment models that PGP is compared with, as layouts of the same shape."""

from __future__ import annotations

from scheduler.layout import Layout, StageLayout, wrap_name
from workflow.model import Workflow

#: Faastlane+ runs this many processes in each sandbox (Chiron §2.2).
FAASTLANE_PLUS_PROCESSES = 5


def one_to_one(workflow: Workflow) -> tuple[Layout, list[str]]:
    """Every task in a wrap of its own, and the wraps' names; the client calls them all.

    Wrap k stands at place k of its stage only, so each stage is padded with wraps of no process.
    """
    layout, names, used = list[StageLayout](), list[str](), set[str]()
    for stage in workflow.stages:
        layout.append(((),) * len(names) + tuple(((task,),) for task in stage))
        for task in stage:
            names.append(_unused(workflow.name, workflow.function_of(task), used))
    return tuple(layout), names


def sand(workflow: Workflow) -> Layout:
    """All in one sandbox, every function in a process of its own that is forked for it.

    The main process runs no function, not even where a stage has only one.
    """
    return tuple((((), *((task,) for task in stage)),) for stage in workflow.stages)


def faastlane(workflow: Workflow) -> Layout:
    """All in one sandbox: processes for functions that run in parallel, threads for the others."""
    return tuple((tuple((task,) for task in stage),) for stage in workflow.stages)


def faastlane_t(workflow: Workflow) -> Layout:
    """All in one process, every function a thread."""
    return tuple(((stage,),) for stage in workflow.stages)


def faastlane_plus(workflow: Workflow) -> Layout:
    """As many sandboxes as needed to run at most five processes in each."""
    size = FAASTLANE_PLUS_PROCESSES
    return tuple(
        tuple(
            tuple((task,) for task in stage[start : start + size])
            for start in range(0, len(stage), size)
        )
        for stage in workflow.stages
    )


def _unused(workflow: str, function: str, used: set[str]) -> str:
    number = 1
    while True:
        suffix = function if number == 1 else f"{function[:57]}-{number}"
        name = wrap_name(workflow, suffix)
        if name not in used:
            used.add(name)
            return name
        number += 1
