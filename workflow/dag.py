"""Workflows written as a plain DAG: ``{"tasks": {name: function}, "edges": [[from, to]]}``.

An edge ``[from, to, "stream"]`` is read while it is written.
"""

from __future__ import annotations

from typing import Any

from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.model import NOTHING, Stream, Task, Workflow, giver_of, output_name, source_of
from chiron.workflow.names import (
    OUTPUT_NAME,
    TASK_NAME_LIMIT,
    FunctionNames,
    check_distinct,
    check_task_name,
    meant,
    shown,
    workflow_name,
)

_FIELDS = {"name", "comment", "tasks", "edges", "http"}
#: The third item of an edge whose output is read as a stream.
STREAM = "stream"


def parse_dag(
    document: dict[str, Any], default_name: str, names: FunctionNames | None = None
) -> Workflow:
    """Parse a plain DAG; `names` resolves the functions' names.

    A task with one incoming edge gets that output; with several, the JSON list of them in the order
    of the edges. An edge from ``a#left`` passes the output that a emits as ``left``, instead of its
    answer. An edge ``["a", "b", "stream"]`` is no input: b opens it by its name, ``a`` or
    ``a#left``. The workflow's answer is that of its last task, or the list of all tasks without an
    outgoing edge, in the order of ``tasks``. ``"http": {"answer": "a"}`` selects one of these as
    the only answer.

    Raises all faults, each with its path: ``unknown-field``, ``bad-field``, ``unknown-task``,
    ``duplicate-edge``, ``cycle``, ``bad-name``, ``alike-names``.

    >>> parse_dag({"tasks": {"a": "f", "b": "g"}, "edges": [["a", "b"]]}, "demo").output
    'b'
    """
    faults = Faults()
    for field in document:
        with faults.noting():
            if field not in _FIELDS:
                raise ChironError(
                    "unknown-field",
                    f"{shown(field)} is not known; known: {', '.join(sorted(_FIELDS))}",
                    path=field,
                )
    functions = _functions(document.get("tasks"), names or FunctionNames({}), faults)
    edges = _edges(document.get("edges", []), functions, faults)
    sources: dict[str, list[str]] = {name: [] for name in functions}
    streams: dict[str, list[Stream]] = {name: [] for name in functions}
    for (before, after), streamed in edges.items():
        if streamed:
            streams[after].append(Stream(before, before))
        else:
            sources[after].append(before)
    starts = {giver_of(before) for before, _ in edges}
    last = [name for name in functions if name not in starts]
    with faults.noting():
        last = _answering(document.get("http", {}), functions, last)
    name = document.get("name", default_name)
    with faults.noting():
        name = workflow_name(name, "name")
    faults.raise_all()
    return Workflow(
        name=name,
        tasks=tuple(
            Task(
                name,
                functions[name],
                NOTHING if streams[name] and not sources[name] else source_of(sources[name]),
                tuple(streams[name]),
            )
            for name in functions
        ),
        output=source_of(last),
    )


def _answering(http: Any, functions: dict[str, str], last: list[str]) -> list[str]:
    """Return the last tasks that answer: all of them, or the task named by `http`."""
    if not isinstance(http, dict) or not http.keys() <= {"answer"}:
        what = 'http has to be an object with "answer", which names a task'
        raise ChironError("bad-field", what, path="http")
    if "answer" not in http:
        return last
    name = http["answer"]
    if not isinstance(name, str) or name not in functions:
        what = f"{shown(str(name))} is no task; {meant(str(name), functions)}"
        raise ChironError("unknown-task", what, path="http.answer")
    if name not in last:
        what = f"{shown(name)} has edges out of it: name one of {', '.join(map(shown, last))}"
        raise ChironError("bad-field", what, path="http.answer", functions=[name])
    return [name]


def _functions(tasks: Any, names: FunctionNames, faults: Faults) -> dict[str, str]:
    if not isinstance(tasks, dict) or not tasks:
        raise ChironError(
            "bad-field",
            'tasks has to be an object of at least one "task": "function"',
            path="tasks",
        )
    with faults.noting():
        check_distinct(tasks, "tasks")
    functions = dict.fromkeys(tasks, "")  # edges may name a faulty task too
    for name, function in tasks.items():
        with faults.noting():
            check_task_name(name, f"tasks.{name}", TASK_NAME_LIMIT)
            if not isinstance(function, str):
                what = f"the function of task {shown(name)} has to be a string"
                raise ChironError("bad-field", what, path=f"tasks.{name}")
            functions[name] = names.function(function, f"tasks.{name}")
    with faults.noting():
        names.check()
    return functions


def _edges(edges: Any, functions: dict[str, str], faults: Faults) -> dict[tuple[str, str], bool]:
    """Map each edge (from, to) to whether it is a stream."""
    if not isinstance(edges, list):
        raise ChironError("bad-field", 'edges has to be a list of ["from", "to"]', path="edges")
    result: dict[tuple[str, str], bool] = {}
    for index, edge in enumerate(edges):
        with faults.noting():
            before, after, streamed = _edge(edge, functions, f"edges[{index}]")
            if (pair := (before, after)) in result:
                raise ChironError(
                    "duplicate-edge",
                    "the edge is there twice",
                    path=f"edges[{index}]",
                    functions=pair,
                )
            result[pair] = streamed
    return result


def _edge(edge: Any, functions: dict[str, str], path: str) -> tuple[str, str, bool]:
    if not (
        isinstance(edge, list)
        and all(isinstance(end, str) for end in edge)
        and (len(edge) == 2 or edge[2:] == [STREAM])
    ):
        what = 'an edge has to be ["from", "to"], or ["from", "to", "stream"]'
        raise ChironError("bad-field", what, path=path)
    before, after, *streamed = edge
    task = giver_of(before)
    for end in (task, after):
        if end not in functions:
            what = f"{shown(end)} is no task; {meant(end, functions)}"
            raise ChironError("unknown-task", what, path=path, functions=[end])
    if task != before and not OUTPUT_NAME.fullmatch(output_name(before)):
        what = "letters, digits, _ and -, a letter first, other than output"
        raise ChironError("bad-name", f"the output in {shown(before)} has to be {what}", path=path)
    return before, after, bool(streamed)
