"""The plan under which functions are profiled."""

from __future__ import annotations

import json

import pytest

from chiron.profiler.inputs import run_alone
from chiron.profiler.solo import solo_plan, solo_workflow
from chiron.workflow.model import NOTHING, Stream, Task, Workflow
from chiron.workflow.names import NAME


def workflow(name: str, *functions: str) -> Workflow:
    tasks = [Task(f"task {number}", function, None) for number, function in enumerate(functions)]
    return Workflow(name, tuple(tasks), tasks[-1].name)


def test_every_function_is_one_task_alone_in_one_wrap() -> None:
    alone = solo_workflow(workflow("quotes", "fetch", "sum", "fetch"))
    plan = solo_plan(alone)
    plan.check_against(alone)
    assert plan.orchestrator == "client"
    assert [wrap.name for wrap in plan.wraps] == ["quotes-profile-fetch", "quotes-profile-sum"]
    assert [wrap.tasks for wrap in plan.wraps] == [("fetch",), ("sum",)]


def test_streams_come_with_the_request_as_the_first_task_calls_them() -> None:
    tasks = (
        Task("a", "write", None),
        Task("b", "read", NOTHING, (Stream("a", "a"),)),
        Task("c", "read", NOTHING, (Stream("b", "b"),)),
    )
    connected = Workflow("streams", tasks, "c")
    assert solo_workflow(connected).by_name["read"].streams == (Stream("a", None),)

    def run(function: str, text: str) -> tuple[dict[str, str], float]:
        return {"output": f"{function} {text}" if function == "write" else text}, 1.0

    inputs = run_alone(connected, b"now", run, {}).inputs
    assert json.loads(inputs["b"]) == {"input": "", "streams": {"a": "write now"}}
    assert json.loads(inputs["c"]) == {"input": "", "streams": {"a": inputs["b"]}}


def test_forked_functions_leave_the_main_process_of_their_wrap_empty() -> None:
    alone = solo_workflow(workflow("quotes", "fetch", "sum"))
    plan = solo_plan(alone, "fork")
    plan.check_against(alone)
    processes = [wrap.processes for wrap in plan.wraps]
    assert processes == [((), ("fetch",)), ((), ("sum",))]


@pytest.mark.parametrize("length", [1, 30, 55, 63])
def test_names_are_valid_and_distinct_however_long_the_parts_are(length: int) -> None:
    functions = [f"{'f' * size}{letter}" for letter in "abc" for size in (1, 20, 62)]
    alone = solo_workflow(workflow("w" * length, *functions))
    names = [wrap.name for wrap in solo_plan(alone).wraps]
    assert len(set(names)) == len(functions)
    assert all(NAME.fullmatch(name) for name in [alone.name, *names])
