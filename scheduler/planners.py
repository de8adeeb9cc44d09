"""The planners in one table: PGP, which searches, and the baselines."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from chiron.scheduler.faasflow import faasflow
from chiron.scheduler.layout import Layout, StageLayout, numbered_name, wrap_name
from chiron.scheduler.room import Room
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Orchestrator, Processes

#: Faastlane+ runs this many processes in each sandbox (Chiron §2.2).
FAASTLANE_PLUS_PROCESSES = 5


def one_to_one(workflow: Workflow) -> Layout:
    """Return every task in a wrap of its own; the client calls all tasks.

    Wrap k is at index k of its stage only, so each stage is padded with empty wraps.
    """
    layout, before = list[StageLayout](), 0
    for stage in workflow.stages:
        layout.append(((),) * before + tuple(((task,),) for task in stage))
        before += len(stage)
    return tuple(layout)


def task_names(workflow: Workflow) -> list[str]:
    """Return a name for the wrap of every task of `one_to_one`."""
    names = list[str]()
    for stage in workflow.stages:
        for task in stage:
            names.append(_unused(workflow.name, workflow.function_of(task), names))
    return names


def sand(workflow: Workflow) -> Layout:
    """Return one wrap: each function in a process forked for it, the main process empty."""
    return tuple((((), *((task,) for task in stage)),) for stage in workflow.stages)


def faastlane(workflow: Workflow) -> Layout:
    """Return one wrap: parallel functions in processes, other functions in threads."""
    return tuple((tuple((task,) for task in stage),) for stage in workflow.stages)


def faastlane_t(workflow: Workflow) -> Layout:
    """Return one process with a thread for every function."""
    return tuple(((stage,),) for stage in workflow.stages)


def faastlane_plus(workflow: Workflow) -> Layout:
    """Return as many wraps as needed to run at most five processes in each."""
    size = FAASTLANE_PLUS_PROCESSES
    return tuple(
        tuple(
            tuple((task,) for task in stage[start : start + size])
            for start in range(0, len(stage), size)
        )
        for stage in workflow.stages
    )


def _unused(workflow: str, function: str, used: Collection[str]) -> str:
    number = 1
    while True:
        suffix = function if number == 1 else f"{function[:57]}-{number}"
        name = wrap_name(workflow, suffix)
        if name not in used:
            return name
        number += 1


@dataclass(frozen=True)
class Planner:
    """A way to make a plan."""

    #: The layout, if it depends on the workflow alone.
    layout: Callable[[Workflow], Layout] | None = None
    rule: str = ""
    #: The prefix of its wraps' names, so that plans of several planners can be deployed side by
    #: side.
    prefix: str = ""
    #: The wraps' names, if they are not numbered.
    names: Callable[[Workflow], list[str]] | None = None
    orchestrator: Orchestrator = "wrap"
    #: The processes of every wrap and the memory for its objects, in MiB, if that depends on
    #: measurements too. A planner with neither layout nor partition searches, for the SLO.
    partition: Callable[[Room], list[tuple[Processes, int]]] | None = None


PLANNERS = {
    "one-to-one": Planner(
        one_to_one,
        "every function has a sandbox of its own; the client calls them all",
        names=task_names,
        orchestrator="client",
    ),
    "sand": Planner(sand, "one sandbox, every function is forked as a process of its own", "sand-"),
    "faastlane": Planner(
        faastlane,
        "one sandbox, parallel functions are processes, sequential ones threads",
        "faastlane-",
    ),
    "faastlane-t": Planner(faastlane_t, "one process, every function is a thread", "faastlane-t-"),
    "faastlane+": Planner(faastlane_plus, "five processes in each sandbox", "faastlane-plus-"),
    "faasflow": Planner(
        partition=faasflow,
        rule="tasks that exchange most on the critical path share a sandbox, parallel ones are "
        "processes",
        prefix="faasflow-",
    ),
    "pgp": Planner(),
}


def first_names(label: str, workflow: Workflow) -> list[str]:
    """Return the names of the wraps that every plan of this planner for `workflow` has."""
    planner = PLANNERS[label]
    if planner.names:
        return planner.names(workflow)
    count = max(map(len, planner.layout(workflow))) if planner.layout else 1
    return [numbered_name(workflow.name, planner.prefix, number) for number in range(count)]


def searched(label: str) -> bool:
    """Return whether plans with that label are the best found for an SLO."""
    return label not in PLANNERS or PLANNERS[label] == Planner()


def respects_conflicts(label: str) -> bool:
    """Return whether plans with that label respect conflicts: fixed layouts do not."""
    return label not in PLANNERS or PLANNERS[label].layout is None


#: The default planner: the first that searches.
DEFAULT_PLANNER = next(filter(searched, PLANNERS))
