"""The planners: PGP, which searches, and those that it is compared with, in one table."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from chiron.scheduler.faasflow import faasflow
from chiron.scheduler.layout import Layout, StageLayout, wrap_name
from chiron.scheduler.room import Room
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Orchestrator, Processes

#: Faastlane+ runs this many processes in each sandbox (Chiron §2.2).
FAASTLANE_PLUS_PROCESSES = 5


def one_to_one(workflow: Workflow) -> Layout:
    """Every task in a wrap of its own; the client calls them all.

    Wrap k stands at place k of its stage only, so each stage is padded with wraps of no process.
    """
    layout, before = list[StageLayout](), 0
    for stage in workflow.stages:
        layout.append(((),) * before + tuple(((task,),) for task in stage))
        before += len(stage)
    return tuple(layout)


def task_names(workflow: Workflow) -> list[str]:
    """A name for the wrap of every task of `one_to_one`."""
    names = list[str]()
    for stage in workflow.stages:
        for task in stage:
            names.append(_unused(workflow.name, workflow.function_of(task), names))
    return names


def sand(workflow: Workflow) -> Layout:
    """All in one sandbox, each function in a process forked for it, none in the main one."""
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

    #: Which task runs where, if that goes by the workflow alone.
    layout: Callable[[Workflow], Layout] | None = None
    #: How it goes, in words.
    rule: str = ""
    #: What distinguishes its wraps' names from those of others, so that the plans of several can be
    #: deployed side by side.
    prefix: str = ""
    #: The wraps' names where they are not numbered.
    names: Callable[[Workflow], list[str]] | None = None
    #: What drives its plans.
    orchestrator: Orchestrator = "wrap"
    #: The processes of every wrap and the memory for what its tasks give one another, in MiB, if
    #: that goes by what was measured, too. A planner that has neither searches, for the SLO.
    partition: Callable[[Room], list[tuple[Processes, int]]] | None = None


#: Every planner by its label.
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


def searched(label: str) -> bool:
    """Whether plans of that label are the best that were found for an SLO."""
    return label not in PLANNERS or PLANNERS[label] == Planner()


def respects_conflicts(label: str) -> bool:
    """Whether plans of that label keep apart what must not share: no fixed layout does."""
    return label not in PLANNERS or PLANNERS[label].layout is None


#: The one that is taken where nothing is said: it searches.
DEFAULT_PLANNER = next(filter(searched, PLANNERS))
