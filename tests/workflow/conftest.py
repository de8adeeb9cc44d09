"""What the tests of the vocabulary share: refusals, machines, plans and reference runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from chiron.evaluation.reference.executor import Handler, ReferenceRun, run_reference
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow

Refused = Callable[..., ChironError]
Machine = Callable[..., dict[str, Any]]
Run = Callable[..., ReferenceRun]


@pytest.fixture
def refused() -> Refused:
    """Calls a function that has to raise ChironError; returns the error."""

    def refused(call: Callable[..., object], *args: object, **kwargs: object) -> ChironError:
        with pytest.raises(ChironError) as caught:
            call(*args, **kwargs)
        error = caught.value
        assert error.message and str(error).isprintable(), "an error is one line"
        return error

    return refused


@pytest.fixture
def machine() -> Machine:
    """A state machine whose states run in the order given; a string value is a Task's function.

    ``machine(A="f", B=[["g"], ["h"]])`` runs task A, then a Parallel B whose branches are Tasks
    named after their functions.
    """

    def task(function: str, following: dict[str, Any]) -> dict[str, Any]:
        return {"Type": "Task", "Resource": function, **following}

    def chain(states: dict[str, Any]) -> dict[str, Any]:
        names = list(states)
        result = {}
        for name, after in zip(names, [*names[1:], None], strict=True):
            following = {"Next": after} if after else {"End": True}
            state = states[name]
            if isinstance(state, str):
                result[name] = task(state, following)
            elif isinstance(state, list):
                branches = [chain({function: function for function in branch}) for branch in state]
                result[name] = {"Type": "Parallel", "Branches": branches, **following}
            else:
                result[name] = {
                    **state,
                    **({} if state["Type"] in ("Succeed", "Fail") else following),
                }
        return {"StartAt": names[0], "States": result}

    return lambda **states: chain(states)


@pytest.fixture
def plan() -> dict[str, Any]:
    """A sound plan as JSON: tasks a and b in two processes of one wrap, then c in another wrap."""
    return {
        "format": 2,
        "workflow": "demo",
        "planner": "pgp",
        "cpus": 3,
        "wraps": [
            {
                "name": "demo-wrap1",
                "cpus": 2,
                "memory_mib": 64,
                "mechanism": "fork",
                "processes": [["a"], ["b"]],
            },
            {
                "name": "demo-wrap2",
                "cpus": 1,
                "memory_mib": 64,
                "mechanism": "fork",
                "processes": [["c"]],
            },
        ],
    }


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs functions given by their code; those of one stage by default.

    A function's code is that of handler.py, or its files by name.
    """

    def run(
        functions: Mapping[str, str | Mapping[str, str]],
        request: bytes = b"{}",
        *,
        edges: tuple[str, ...] = (),
        style: str = "flask",
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
        of_function: Mapping[str, Mapping[str, str]] | None = None,
    ) -> ReferenceRun:
        handlers = {}
        for name, code in functions.items():
            files = {"handler.py": code} if isinstance(code, str) else code
            for file, text in files.items():
                path = tmp_path / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            handlers[name] = Handler(tmp_path / name, style, (of_function or {}).get(name, {}))
        dag = {"tasks": {name: name for name in functions}, "edges": [list(e) for e in edges]}
        return run_reference(
            parse_workflow(dag), handlers, request, environment=environment, timeout_s=timeout_s
        )

    return run


@pytest.fixture
def failure(refused: Refused, run: Run) -> Callable[..., ChironError]:
    """Runs functions as `run` does, which has to fail; returns the error."""
    return functools.partial(refused, run)
