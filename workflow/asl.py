"""Workflows written in Amazon States Language.

A machine that only chains Tasks, or runs them in branches of a Parallel, and passes their answers
on is a static graph of tasks. Every other machine decides while it runs. Unsupported fields are
refused by name and path: dropping them silently would deploy another workflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from chiron.workflow.asl_queries import is_jsonata
from chiron.workflow.asl_shapes import Reading, listed
from chiron.workflow.asl_states import read_machine
from chiron.workflow.asl_variables import check_scopes
from chiron.workflow.documents import check_size
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Failure, Source, Task, Workflow, names_in
from chiron.workflow.names import FunctionNames, check_distinct, workflow_name

#: The fields of states that pass data on unchanged.
_STATIC = {
    "Task": {"Type", "Resource", "Next", "End"},
    "Parallel": {"Type", "Branches", "Next", "End"},
    "Pass": {"Type", "Next", "End"},
    "Succeed": {"Type"},
    "Fail": {"Type", "Error", "Cause"},
}
#: Fields that have no effect -> why.
_UNUSED = {
    "ClientContext": "functions get the Payload alone",
    "Credentials": "functions have the rights of their deployment, and no role",
    "ItemsPath": "the items are what the ItemReader reads, of which ItemsPointer selects",
    "LogType": "no log is part of a function's answer",
    "Qualifier": "a function has one version: the one that is deployed",
}
#: Why other ignored fields have no effect: they belong to distributed Maps.
_INLINE = "an inline Map fails with the first failed item, without Mode DISTRIBUTED"


def parse_states(
    document: dict[str, Any], default_name: str, names: FunctionNames | None = None
) -> Workflow:
    """Return the workflow of a state machine; `default_name` replaces a missing Name.

    `names` maps its Resources to functions.

    Raises all faults, each with the path of its field: ``unknown-field``, ``missing-field``,
    ``bad-field``, ``unsupported-field``, ``unsupported-state``, ``unsupported-resource``,
    ``unknown-next``, ``cycle``, ``unreachable``, ``duplicate-state``, ``empty-parallel``,
    ``no-tasks``, ``bad-name``, ``alike-names``; ``bad-json`` if the document is nested too deeply.

    >>> machine = {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": "f", "End": True}}}
    >>> parse_states(machine, "demo").tasks
    (Task(name='A', function='f', source=None, streams=()),)
    """
    machine, reading = read_states(document, names or FunctionNames({}))
    if not reading.tasks and not reading.faults:
        raise ChironError("no-tasks", "the workflow has no Task: add one", path="States")
    with reading.faults.noting():
        reading.functions.check()
    with reading.faults.noting():
        check_distinct(dict.fromkeys(task.name for task in reading.tasks), "States")
    name = document.get("Name", default_name)
    with reading.faults.noting():
        name = workflow_name(name, "Name")
    reading.faults.raise_all()
    warnings = tuple(_warnings(reading))
    if _is_static(machine):
        return replace(_static(machine, name), warnings=warnings)
    tasks = tuple(reading.tasks)
    return Workflow(name=name, tasks=tasks, output=None, machine=machine, warnings=warnings)


def _warnings(reading: Reading) -> Iterator[str]:
    """Return warnings about fields without effect."""
    for field, names in reading.unused.items():
        states = f"state{'s' * (len(names) > 1)} {listed(names)}"
        yield f"{field} of {states}: {_UNUSED.get(field, _INLINE)}"


def read_states(document: dict[str, Any], names: FunctionNames) -> tuple[dict[str, Any], Reading]:
    """Return the normalised machine of a document, and the reading with its faults."""
    check_size(document, "the workflow")
    reading = Reading(names, jsonata=is_jsonata(document, "QueryLanguage", False))
    machine: dict[str, Any] = {}
    with reading.faults.noting():
        machine = read_machine(document, reading)
    if not reading.faults:
        check_scopes(machine, "", reading.faults)
    return machine, reading


def _is_static(machine: dict[str, Any]) -> bool:
    if set(machine) != {"StartAt", "States"} or not _is_plain(machine, set(_STATIC)):
        return False
    branches = [b for state in machine["States"].values() for b in state.get("Branches", ())]
    return all(_has_task(b) and _is_plain(b, {"Task", "Pass", "Succeed"}) for b in branches)


def _is_plain(scope: dict[str, Any], kinds: set[str]) -> bool:
    states = scope["States"].values()
    return all(state["Type"] in kinds and set(state) <= _STATIC[state["Type"]] for state in states)


def _has_task(scope: dict[str, Any]) -> bool:
    return any(state["Type"] == "Task" for state in scope["States"].values())


def _static(machine: dict[str, Any], name: str) -> Workflow:
    """Return the static workflow of a machine that decides nothing."""
    tasks: list[Task] = []
    output, failure = _run(machine, None, tasks)
    return Workflow(name=name, tasks=tuple(tasks), output=output, failure=failure)


def _run(scope: dict[str, Any], source: Source, tasks: list[Task]) -> tuple[Source, Failure | None]:
    """Add the tasks of a chain of states with the input `source`; return the chain's output."""
    failure = None
    for name, state in _chain(scope):
        if state["Type"] == "Task":
            tasks.append(Task(name, state["Resource"], source))
            source = name
        elif state["Type"] == "Parallel":
            ends = [_run(branch, source, tasks)[0] for branch in state["Branches"]]
            source = tuple(chain.from_iterable(map(names_in, ends)))
        elif state["Type"] == "Fail":
            failure = Failure(state.get("Error", ""), state.get("Cause", ""))
    return source, failure


def _chain(scope: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = scope["StartAt"]
    while name is not None:
        state = scope["States"][name]
        yield name, state
        name = state.get("Next")
