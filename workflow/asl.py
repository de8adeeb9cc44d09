"""Workflows written in Amazon States Language, of which a strict subset is understood.

Task, Parallel (branches of one or more Tasks), Pass, Succeed and Fail, joined by Next and End.
Whatever else the language has is refused by its name and path: silently dropping a Choice or a
Retry would deploy another workflow than the one that was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workflow.errors import ChironError, Faults
from workflow.model import Failure, Source, Task, Workflow
from workflow.names import FunctionNames, check_distinct, check_task_name, shown, workflow_name

_FIELDS = {
    "Task": {"Resource", "Next", "End"},
    "Parallel": {"Branches", "Next", "End"},
    "Pass": {"Next", "End"},
    "Succeed": set[str](),
    "Fail": {"Error", "Cause"},
}
_MACHINE_FIELDS = {"Comment", "Name", "StartAt", "States"}


def parse_states(
    document: dict[str, Any], default_name: str, names: FunctionNames | None = None
) -> Workflow:
    """The workflow that a state machine defines; `default_name` stands in for a missing Name.

    `names` says which functions its Resources are.

    Raises all faults, each with the path of its state: ``unknown-field``, ``missing-field``,
    ``bad-field``, ``unsupported-state``, ``unknown-next``, ``cycle``, ``unreachable``,
    ``duplicate-state``, ``empty-parallel``, ``bad-name``, ``alike-names``.

    Examples
    --------
    >>> machine = {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": "f", "End": True}}}
    >>> parse_states(machine, "demo").tasks
    (Task(name='A', function='f', source=None),)
    """
    found = _Found([], set(), Faults(), names or FunctionNames({}))
    output, failure = None, None
    with found.faults.noting():
        output, failure = _walk(document, "", None, found)
    if not found.tasks and not found.faults:
        raise ChironError("no-tasks", "the workflow has no Task: add one", path="States")
    with found.faults.noting():
        found.functions.check()
    with found.faults.noting():
        check_distinct((task.name for task in found.tasks), "States")
    name = document.get("Name", default_name)
    with found.faults.noting():
        name = workflow_name(name, "Name")
    found.faults.raise_all()
    return Workflow(name=name, tasks=tuple(found.tasks), output=output, failure=failure)


@dataclass(frozen=True)
class _Found:
    """What a walk has come upon: the tasks in order, the names of all states, and faults."""

    tasks: list[Task]
    names: set[str]
    faults: Faults
    functions: FunctionNames


def _walk(
    machine: dict[str, Any], path: str, source: Source, found: _Found, in_branch: bool = False
) -> tuple[Source, Failure | None]:
    """Follow a chain of states from StartAt; returns what comes out of its end."""
    known = _MACHINE_FIELDS - {"Name"} if in_branch else _MACHINE_FIELDS
    _refuse_unknown(machine, known, path, found.faults)
    states: dict[str, Any] = _required(machine, "States", dict, path)
    at = f"{path}StartAt"
    name = _required(machine, "StartAt", str, path)
    visited: dict[str, None] = {}
    failure = None
    while True:
        if name not in states:
            raise ChironError(
                "unknown-next",
                f"{shown(name)} is no state: the states are {_listed(states)}",
                path=at,
                functions=[name],
            )
        if name in visited:
            chain = list(visited)
            cycle = chain[chain.index(name) :]
            raise ChironError(
                "cycle",
                f"states form a cycle: {' -> '.join([*cycle, name])}: mend the Next of one of them",
                path=at,
                functions=cycle,
            )
        visited[name] = None
        here = f"{path}States.{name}"
        state = _state(states[name], name, here, in_branch, found.faults)
        if name in found.names:
            raise ChironError(
                "duplicate-state",
                f"two states are named {shown(name)}: a state's name is its own in a workflow",
                path=here,
                functions=[name],
            )
        found.names.add(name)
        if state["Type"] == "Fail":
            failure = Failure(state.get("Error", ""), state.get("Cause", ""))
        else:
            with found.faults.noting():
                source = _run(state, name, here, source, found)
        following = _next(state, here)
        if following is None:
            break
        name, at = following, f"{here}.Next"
    unreachable = [state for state in states if state not in visited]
    if unreachable:
        raise ChironError(
            "unreachable",
            f"no state leads to {_listed(unreachable)}: remove it or point a Next at it",
            path=f"{path}States.{unreachable[0]}",
            functions=unreachable,
        )
    return source, failure


def _run(state: dict[str, Any], name: str, here: str, source: Source, found: _Found) -> Source:
    """Add what the state runs to `found`; returns what comes out of it."""
    if state["Type"] == "Task":
        resource = _required(state, "Resource", str, f"{here}.")
        function = found.functions.function(resource, f"{here}.Resource")
        found.tasks.append(Task(check_task_name(name, here), function, source))
        return name
    if state["Type"] == "Parallel":
        return _parallel(state, here, source, found)
    return source


def _parallel(state: dict[str, Any], here: str, source: Source, found: _Found) -> Source:
    branches = _required(state, "Branches", list, f"{here}.")
    if not branches:
        raise ChironError(
            "empty-parallel", "a Parallel needs at least one branch", path=f"{here}.Branches"
        )
    ends: list[str] = []
    for index, branch in enumerate(branches):
        path = f"{here}.Branches[{index}]"
        with found.faults.noting():
            if not isinstance(branch, dict):
                raise ChironError("bad-field", "a branch has to be an object", path=path)
            before, faults = len(found.tasks), len(found.faults)
            end, _ = _walk(branch, f"{path}.", source, found, in_branch=True)
            if isinstance(end, str) and len(found.tasks) > before:
                ends.append(end)
            elif len(found.faults) == faults:
                raise ChironError("empty-parallel", "a branch needs at least one Task", path=path)
    return tuple(ends)


def _state(state: Any, name: str, here: str, in_branch: bool, faults: Faults) -> dict[str, Any]:
    if not isinstance(state, dict):
        raise ChironError("bad-field", f"state {shown(name)} has to be an object", path=here)
    kind = _required(state, "Type", str, f"{here}.")
    supported = [k for k in _FIELDS if not (in_branch and k in ("Parallel", "Fail"))]
    if kind not in supported:
        where = " in a branch" if in_branch else ""
        raise ChironError(
            "unsupported-state",
            f"state {shown(name)} is of type {shown(kind)}; supported{where}: "
            f"{', '.join(supported)}",
            path=f"{here}.Type",
            functions=[name],
        )
    _refuse_unknown(state, _FIELDS[kind] | {"Type", "Comment"}, f"{here}.", faults)
    for field in ("Comment", "Error", "Cause"):
        with faults.noting():
            if not isinstance(state.get(field, ""), str):
                what = f"{field} has to be a string"
                raise ChironError("bad-field", what, path=f"{here}.{field}")
    return state


def _next(state: dict[str, Any], here: str) -> str | None:
    """The state that follows, None at the end of the chain."""
    if state["Type"] in ("Succeed", "Fail"):
        return None
    if "Next" in state:
        if "End" in state:
            raise ChironError("bad-field", "a state has Next or End, not both", path=f"{here}.End")
        following: str = _required(state, "Next", str, f"{here}.")
        return following
    if state.get("End") is not True:
        raise ChironError("missing-field", 'a state needs "Next" or "End": true', path=here)
    return None


def _required(holder: dict[str, Any], field: str, kind: type, path: str) -> Any:
    if field not in holder:
        raise ChironError("missing-field", f"{field} is missing", path=f"{path}{field}")
    if not isinstance(holder[field], kind):
        names: dict[type, str] = {str: "a string", dict: "an object", list: "a list"}
        raise ChironError("bad-field", f"{field} has to be {names[kind]}", path=f"{path}{field}")
    return holder[field]


def _refuse_unknown(holder: dict[str, Any], known: set[str], path: str, faults: Faults) -> None:
    for field in holder:
        with faults.noting():
            if field not in known:
                raise ChironError(
                    "unknown-field",
                    f"{shown(field)} is not supported here; known: {', '.join(sorted(known))}",
                    path=f"{path}{field}",
                )


def _listed(names: Any, most: int = 8) -> str:
    listed = [shown(name) for name in names]
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")
