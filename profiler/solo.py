"""The plan under which functions are profiled: each alone, in a wrap of its own."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from workflow.model import Task, Workflow
from workflow.plan import Plan, Wrap, WrapStage

#: Names of OpenFaaS functions end here.
_LONGEST_NAME = 63
#: A limit far above what small functions need, since one that is hit kills.
_MEMORY_MIB = 1024
#: A core for the function and, where there is one, another for what looks at it: the probe.
_CPUS = min(2, len(os.sched_getaffinity(0)))


def solo_workflow(workflow: Workflow, without: Collection[str] = ()) -> Workflow:
    """Every function of `workflow` once, as tasks that need nothing of each other.

    Those `without` which it goes are left out.
    """
    names = tuple(name for name in workflow.functions if name not in without)
    tasks = tuple(Task(name, name, None) for name in names)
    return Workflow(_short(workflow.name, "profile"), tasks, names)


def solo_plan(workflow: Workflow, *, forked: bool = False) -> Plan:
    """The one-to-one plan of a `solo_workflow`; wraps are in the order of its functions.

    Each function runs in the main process of its wrap or, `forked`, in one that is forked for the
    request.
    """
    main: tuple[tuple[str, ...], ...] = ((),) if forked else ()
    wraps = tuple(
        Wrap(
            name=name,
            cpus=_CPUS,
            memory_mib=_MEMORY_MIB,
            stages=(WrapStage(stage=0, processes=(*main, (task.name,))),),
        )
        for task, name in zip(workflow.tasks, _wrap_names(workflow), strict=True)
    )
    return Plan(
        format=1,
        workflow=workflow.name,
        model="one-to-one",
        mechanism="fork",
        wraps=wraps,
        cpus=_CPUS * len(wraps),
    )


def _wrap_names(workflow: Workflow) -> Sequence[str]:
    """``WORKFLOW-FUNCTION``, with a number for the function where that is too long."""
    whole = [f"{workflow.name}-{function}" for function in workflow.functions]
    return [
        name if len(name) <= _LONGEST_NAME else _short(workflow.name, f"{number}")
        for number, name in enumerate(whole)
    ]


def _short(name: str, suffix: str) -> str:
    """``name-suffix``, at the cost of the name's end where it would be too long."""
    return f"{name[: _LONGEST_NAME - len(suffix) - 1].rstrip('-')}-{suffix}"
