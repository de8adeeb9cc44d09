"""Which of a workflow's inputs a function is profiled with, and what the others take beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chiron.deployment.function_error import ErrorAnswer, FunctionFailedError
from chiron.deployment.local_launcher import LocalLauncher
from chiron.profiler.inputs import (
    Typical,
    WorkflowRun,
    inputs_of,
    run_alone,
    typical_tasks,
    weighed,
)
from chiron.profiler.invocation import Invocation, RunFailedError
from chiron.profiler.profile import profile
from chiron.workflow.asl import parse_states
from chiron.workflow.buckets import parse_buckets
from chiron.workflow.data import Request, Typed
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task, Workflow
from chiron.workflow.trace import unrolled
from chiron.wrap.core.buckets.routes import ALL

EACH = {"StartAt": "Each", "States": {"Each": {"Type": "Task", "Resource": "work", "End": True}}}
WORKFLOW = parse_states(
    {"StartAt": "Items", "States": {"Items": {"Type": "Map", "ItemProcessor": EACH, "End": True}}},
    "demo",
)


def run(took_ms: list[float], times: float = 1.0) -> WorkflowRun:
    def takes(_: str, text: str, __: float | None = None) -> tuple[dict[str, str], float]:
        return {"output": text}, times * json.loads(text)

    return run_alone(WORKFLOW, json.dumps(took_ms).encode(), takes, {})


def work(repeats: list[WorkflowRun]) -> tuple[bytes, list[float]]:
    typical = typical_tasks(WORKFLOW, repeats)
    given = inputs_of(repeats[:1], [typical])["work"][0]
    return given, [instance.work for instance in weighed(WORKFLOW, repeats, typical)]


def test_a_function_is_profiled_with_the_input_that_takes_nearest_to_the_mean() -> None:
    assert work([run([1, 2, 30, 9])]) == (b"9", [0.11, 0.22, 3.3, 1.0])


def test_times_that_hardly_differ_are_one_time() -> None:
    assert work([run([10, 10.5, 9.5])]) == (b"10", [1.0, 1.0, 1.0])
    assert work([run([0.01, 0.05])])[1] == [1.0, 1.0]


@pytest.mark.parametrize("times", [0.5, 2.0])
def test_of_several_runs_the_shorter_one_counts(times: float) -> None:
    disturbed = run([1, 2, 30, 9])
    disturbed.took_ms["Each#1"] = 500.0
    assert work([disturbed, run([1, 2, 30, 9], times)])[1][1:] == [0.22, 3.3, 1.0]


def flowed(trigger: dict[str, Any], emitted: str) -> tuple[WorkflowRun, dict[str, ChironError]]:
    """One run of a function that emits so for the bucket `held`, where that alone gets it."""
    buckets = {
        "in": {"trigger": "immediate", "function": "first"},
        "held": {**trigger, "function": "last"},
    }
    document = {"entry": "in", "buckets": buckets, "functions": {"first": {"gives": "held"}}}
    failures: dict[str, ChironError] = {}
    told = json.dumps([[emitted, "g", "1"], [emitted, "h", "2"], [emitted, "g", "3"]])

    def run(function: str, text: str, _: float | None = None) -> tuple[dict[str, str], float]:
        return ({"output": "", ALL: told} if function == "first" else {"output": text}), 1.0

    return run_alone(parse_buckets(document, "demo"), b"0", run, failures), failures


def test_functions_behind_buckets_get_what_is_emitted() -> None:
    done, failures = flowed({"trigger": "dynamic-group"}, "held")
    assert (done.inputs["last"], done.output, failures) == ("[1,3]", '{"last":[[1,3],[2]]}', {})


def test_what_no_bucket_takes_is_the_failure_of_what_emits_it() -> None:
    done, failures = flowed({"trigger": "dynamic-group"}, "hled")
    assert list(failures) == ["first"] and "first emits hled" in failures["first"].message
    assert done.output is None


def test_a_trigger_of_the_users_is_not_run_and_what_it_would_fire_comes_at_once() -> None:
    done, failures = flowed({"trigger": "nowhere.Nothing"}, "held")
    assert (done.inputs["last"], done.output, failures) == ("[1,2,3]", None, {})


CAUGHT = parse_states(
    {
        "StartAt": "Tried",
        "States": {
            "Tried": {
                "Type": "Task",
                "Resource": "tried",
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Instead"}],
                "Next": "After",
            },
            "Instead": {"Type": "Pass", "Result": "instead", "Next": "After"},
            "After": {"Type": "Task", "Resource": "after", "End": True},
        },
    },
    "demo",
)


def test_a_failure_that_is_caught_took_no_time_of_others() -> None:
    def run(function: str, text: str, _: float | None = None) -> tuple[dict[str, str], float]:
        if function == "tried":
            raise FunctionFailedError("function-failed", "no", functions=["tried"])
        return {"output": text}, 7.0

    failures: dict[str, ChironError] = {}
    done = run_alone(CAUGHT, b"0", run, failures)
    assert (done.output, done.took_ms, failures) == ('"instead"', {"After#1": 7.0}, {})
    assert done.lost_ms.keys() == {"Tried#1"}


def test_an_answer_after_its_timeout_took_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr("chiron.workflow.execute.time.monotonic", lambda: now_s)
    document = {"StartAt": "Late", "States": {"Late": {"Type": "Task", "Resource": "late"}}}
    document["States"]["Late"] |= {
        "TimeoutSeconds": 1,
        "End": True,
        "Catch": [{"ErrorEquals": ["States.Timeout"], "Next": "Instead"}],
    }
    document["States"]["Instead"] = {"Type": "Pass", "Result": "instead", "End": True}

    def run(_: str, text: str, limit_s: float | None) -> tuple[dict[str, str], float]:
        nonlocal now_s
        now_s += 2
        assert limit_s == 1
        return {"output": text}, 2000.0

    done = run_alone(parse_states(document, "demo"), b"0", run, {})
    assert (done.output, done.took_ms, done.lost_ms) == ('"instead"', {}, {"Late#1": 2000.0})


def failing(function: str, took_ms: float) -> RunFailedError:
    error = RunFailedError("function-failed", "no", functions=[function])
    error.run = Invocation("", took_ms)
    return error


def test_a_failure_took_what_its_wrap_tells_however_long_the_call_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    monkeypatch.setattr("chiron.profiler.inputs.time.monotonic", lambda: now_s)

    def run(function: str, text: str, _: float | None = None) -> tuple[dict[str, str], float]:
        nonlocal now_s
        if function == "tried":
            now_s += 0.06
            raise failing(function, 0.02)
        return {"output": text}, 7.0

    done = run_alone(CAUGHT, b"0", run, {})
    assert (done.took_ms, done.lost_ms) == ({"Tried#1": 0.02, "After#1": 7.0}, {})
    typical = typical_tasks(CAUGHT, [done])
    assert typical == {"tried": Typical("Tried#1", fails=True), "after": Typical("After#1", False)}
    assert inputs_of([done], [typical])["tried"] == {0: b"0"}
    assert [each.work for each in weighed(CAUGHT, [done], typical)] == [1.0, 1.0]


def test_an_attempt_that_fails_takes_its_own_time_beside_those_that_answer() -> None:
    document = tasks(A={"Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1}]})
    workflow, calls = parse_states(document, "demo"), 0

    def run(function: str, text: str, _: float | None = None) -> tuple[dict[str, str], float]:
        nonlocal calls
        calls += 1
        if calls in (1, 3):
            raise failing(function, 2.0)
        return {"output": text}, 20.0

    repeats = [run_alone(workflow, b"0", run, {}) for _ in range(3)]  # the last does not fail
    typical = typical_tasks(workflow, repeats)
    assert typical == {"a": Typical("A#1", fails=False)}
    trace = [each for each in weighed(workflow, repeats, typical) if each.task]
    assert [(each.failed, each.work) for each in trace] == [(True, 0.1), (False, 1.0)]


def branch(name: str) -> dict[str, Any]:
    task = {"Type": "Task", "Resource": name.lower(), "End": True}
    return {"StartAt": name, "States": {name: task}}


@pytest.mark.parametrize("order", [["Fails", "Echo"], ["Echo", "Fails"]])
def test_a_function_is_known_whose_branch_is_dropped_at_once(order: list[str]) -> None:
    both = {
        "Type": "Parallel",
        "Branches": list(map(branch, order)),
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Last"}],
        "Next": "Last",
    }
    last = {"Type": "Task", "Resource": "echo", "End": True}
    workflow = parse_states({"StartAt": "Both", "States": {"Both": both, "Last": last}}, "demo")

    def run(function: str, text: str, _: float | None = None) -> tuple[dict[str, str], float]:
        if function == "fails":
            raise FunctionFailedError("function-failed", "no", functions=["fails"])
        return {"output": text}, 7.0

    done = run_alone(workflow, b"0", run, {})
    assert done.inputs["Echo#1"] == "0"
    assert {each.task for each in done.trace if each.dropped} == {"Echo"} & {order[1]}
    static = unrolled(workflow, done.trace)
    assert [task.name for task in static.tasks if task.name != "Echo#1"] == ["Fails#1", "Last#1"]
    assert static.output == ("Last#1" if order[0] == "Fails" else ("Echo#1", "Last#1"))


def tasks(**limits: dict[str, Any]) -> dict[str, Any]:
    """A machine of Tasks, one after another, each with its function and its limits."""
    names = [*limits]
    states = {
        name: {"Type": "Task", "Resource": name[0].lower(), **limits[name], "Next": following}
        for name, following in zip(names, [*names[1:], "Last"], strict=True)
    }
    return {"StartAt": names[0], "States": states | {"Last": {"Type": "Succeed"}}}


def test_a_function_runs_no_longer_than_its_tasks_may() -> None:
    seen = dict[str, float | None]()

    def run(function: str, text: str, limit_s: float | None) -> tuple[dict[str, str], float]:
        seen[function] = limit_s
        return {"output": text}, 1.0

    document = tasks(
        A1={"TimeoutSeconds": 3},
        A2={"TimeoutSeconds": 9, "HeartbeatSeconds": 5},
        B1={"TimeoutSeconds": 3},
        B2={},
        C={"TimeoutSecondsPath": "$.n"},
    )
    run_alone(parse_states(document, "demo"), b'{"n": 7}', run, {})
    assert seen == {"a": 5, "b": None, "c": None}


def fails(function: str, _: str, __: float | None = None) -> tuple[dict[str, str], float]:
    error = FunctionFailedError("raised", "why", functions=[function])
    error.answer = ErrorAnswer("raised", "why", function, ("ValueError", "why"))
    raise error


def test_a_fail_state_is_what_a_payload_is_answered_with() -> None:
    document = tasks(A={"Catch": [{"ErrorEquals": ["ValueError"], "Next": "Last"}]})
    document["States"]["Last"] = {"Type": "Fail", "Error": "Sunk", "Cause": "ice"}
    failures = dict[str, ChironError]()
    done = run_alone(parse_states(document, "demo"), b"0", fails, failures)
    assert (done.fails, failures) == (True, {})
    assert json.loads(done.output or "") == {"error": "Sunk", "cause": "ice"}
    del document["States"]["A"]["Catch"]
    done = run_alone(parse_states(document, "demo"), b"0", fails, failures)
    assert (done.fails, done.output, [*failures]) == (False, None, ["a"])


def test_a_workflow_without_decisions_can_end_in_a_fail_state() -> None:
    document = tasks(A={})
    document["States"]["Last"] = {"Type": "Fail", "Error": "Sunk"}
    workflow = parse_states(document, "demo")
    assert workflow.machine is None
    done = run_alone(workflow, b"0", lambda _, text, __=None: ({"output": text}, 1.0), {})
    assert done.fails
    assert json.loads(done.output or "") == {"error": "Sunk", "cause": ""}


def test_a_workflow_that_fails_by_itself_blames_no_function() -> None:
    document = tasks(A={"Catch": [{"ErrorEquals": ["ValueError"], "Next": "Last"}]})
    document["States"]["Last"] = {"Type": "Succeed", "OutputPath": "$.nothing"}
    failures = dict[str, ChironError]()
    with pytest.raises(ChironError, match=r"States.Runtime.*payloads") as raised:
        run_alone(parse_states(document, "demo"), b"0", fails, failures)
    assert (raised.value.code, failures) == ("workflow-failed", {})


def test_an_output_keeps_its_content_type_on_the_way_to_one_task() -> None:
    tasks = (
        Task("a", "draw", None),
        Task("b", "scale", "a"),
        Task("c", "list", ("a", "b")),
    )
    found = {}

    def run(function: str, text: str, *_: object) -> tuple[dict[str, str], float]:
        found[function] = Request(text).content_type
        return {"output": Typed(text, "image/png")}, 1.0

    done = run_alone(Workflow("drawn", tasks, "c"), b"now", run, {})
    assert found == {"draw": None, "scale": "image/png", "list": None}
    typical = {"draw": Typical("a", fails=False), "scale": Typical("b", fails=False)}
    requests = inputs_of([done], [typical])
    assert {name: each[0].content_type for name, each in requests.items()} == {
        "draw": None,
        "scale": "image/png",
    }


def test_a_machine_calls_what_it_hands_on_json_but_for_its_request_and_plain_text() -> None:
    states = {
        "Same": {"Type": "Task", "Resource": "same", "Next": "Number"},
        "Number": {"Type": "Task", "Resource": "number", "InputPath": "$.n", "Next": "Text"},
        "Text": {"Type": "Task", "Resource": "text", "Next": "Last"},
        "Last": {"Type": "Task", "Resource": "last", "End": True},
    }
    found = {}

    def run(function: str, text: str, *_: object) -> tuple[dict[str, str], float]:
        found[function] = Request(text).content_type
        return {"output": "no JSON" if function == "text" else text}, 1.0

    run_alone(parse_states({"StartAt": "Same", "States": states}, "demo"), b'{"n": 7}', run, {})
    kind = "application/json"
    assert found == {"same": None, "number": kind, "text": kind, "last": ""}


@pytest.mark.slow
@pytest.mark.usefixtures("briefly_profiled")
def test_a_function_is_profiled_with_the_content_type_that_a_wrap_hands_on(
    write_folder: Any, plan_of: Any, tmp_path: Path
) -> None:
    sees = "from flask import request\ndef handle(req):\n    return str(request.content_type)\n"
    draws = "def handle(req):\n    return 'x', 200, {'Content-Type': 'image/png'}\n"
    says = "def handle(req):\n    return '[1]'\n"
    folder = write_folder(
        tmp_path,
        {
            "tasks": {"a": "draws", "b": "says", "c": "sees", "d": "sees"},
            "edges": [["a", "c"], ["b", "d"]],
        },
        {"draws": draws, "says": says, "sees": sees},
        {},
    )
    found = profile(folder, LocalLauncher(str), samples=4, probe_alone=True)
    payload = folder.payloads()[0].content
    answer = found.answer_to(payload)
    assert answer is not None
    assert json.loads(answer.output) == ["image/png", "None"]
    plan = plan_of(folder.workflow)
    with LocalLauncher(str).launch(folder.workflow, folder, plan) as running:
        given = running.gateway.invoke(running.names[0], payload)
    assert given.json() == ["image/png", "None"]
