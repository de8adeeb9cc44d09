"""Workflows written as a plain DAG: ``{"tasks": {name: function}, "edges": [[from, to]]}``."""

from __future__ import annotations

from typing import Any

from workflow.errors import ChironError
from workflow.model import Source, Task, Workflow
from workflow.names import check_distinct, check_name, check_task_name, shown, workflow_name

_FIELDS = {"name", "comment", "tasks", "edges"}


def parse_dag(document: dict[str, Any], default_name: str) -> Workflow:
    """The workflow that a plain DAG defines.

    A task with one edge into it gets that output, with several the JSON list of them in the
    order of the edges. The workflow answers what its last task answers, or the list of all tasks
    with no edge out of them in the order of ``tasks``.

    Raises
    ------
    ChironError
        ``unknown-field``, ``bad-field``, ``unknown-task``, ``duplicate-edge``, ``cycle``,
        ``bad-name``, ``alike-names``.

    Examples
    --------
    >>> parse_dag({"tasks": {"a": "f", "b": "g"}, "edges": [["a", "b"]]}, "demo").output
    'b'
    """
    for field in document:
        if field not in _FIELDS:
            raise ChironError(
                "unknown-field",
                f"{shown(field)} is not known; known: {', '.join(sorted(_FIELDS))}",
                path=field,
            )
    functions = _functions(document.get("tasks"))
    edges = _edges(document.get("edges", []), functions)
    sources: dict[str, list[str]] = {name: [] for name in functions}
    for before, after in edges:
        sources[after].append(before)
    starts = {before for before, _ in edges}
    name = document.get("name", default_name)
    if not isinstance(name, str):
        raise ChironError("bad-field", "name has to be a string", path="name")
    return Workflow(
        name=workflow_name(name, "name"),
        tasks=tuple(Task(name, functions[name], _source(sources[name])) for name in functions),
        output=_source([name for name in functions if name not in starts]),
    )


def _functions(tasks: Any) -> dict[str, str]:
    if not isinstance(tasks, dict) or not tasks:
        raise ChironError(
            "bad-field",
            'tasks has to be an object of at least one "task": "function"',
            path="tasks",
        )
    check_distinct(tasks, "tasks")
    return {
        check_task_name(name, f"tasks.{name}"): check_name(function, "function", f"tasks.{name}")
        for name, function in tasks.items()
    }


def _edges(edges: Any, functions: dict[str, str]) -> list[tuple[str, str]]:
    if not isinstance(edges, list):
        raise ChironError("bad-field", 'edges has to be a list of ["from", "to"]', path="edges")
    result: dict[tuple[str, str], None] = {}
    for index, edge in enumerate(edges):
        path = f"edges[{index}]"
        if not (
            isinstance(edge, list) and len(edge) == 2 and all(isinstance(end, str) for end in edge)
        ):
            raise ChironError("bad-field", 'an edge has to be ["from", "to"]', path=path)
        for end in edge:
            if end not in functions:
                raise ChironError(
                    "unknown-task", f"{shown(end)} is no task", path=path, functions=[end]
                )
        pair = (edge[0], edge[1])
        if pair in result:
            raise ChironError(
                "duplicate-edge", "the edge is there twice", path=path, functions=pair
            )
        result[pair] = None
    return list(result)


def _source(names: list[str]) -> Source:
    if not names:
        return None
    return names[0] if len(names) == 1 else tuple(names)
