"""The client decides what a state machine runs: it answers as the reference executor does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from chiron.deployment.invoke import Invoker, find_invoker
from chiron.deployment.route import entry_route, state_machine_route
from chiron.generator.annotations import MACHINE, annotate, read_machine
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.asl import parse_states
from chiron.workflow.errors import ChironError
from chiron.workflow.execute import execute
from chiron.workflow.model import Workflow
from chiron.wrap.core.statemachine.errors import StatesError, cause_of
from chiron.wrap.core.triggers import MOST_AT_ONCE

#: A choice, a map over a parallel with a retry, and an error that is caught.
ORDER = {
    "StartAt": "Check",
    "States": {
        "Check": {
            "Type": "Task",
            "Resource": "check",
            "ResultPath": "$.count",
            "Catch": [{"ErrorEquals": ["ValueError"], "ResultPath": "$.error", "Next": "Refused"}],
            "Next": "Any",
        },
        "Any": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.count", "NumericGreaterThan": 0, "Next": "Items"}],
            "Default": "Refused",
        },
        "Items": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": {
                "StartAt": "Both",
                "States": {
                    "Both": {
                        "Type": "Parallel",
                        "Branches": [
                            {
                                "StartAt": "Price",
                                "States": {
                                    "Price": {"Type": "Task", "Resource": "price", "End": True}
                                },
                            },
                            {
                                "StartAt": "Stock",
                                "States": {
                                    "Stock": {"Type": "Task", "Resource": "price", "End": True}
                                },
                            },
                        ],
                        "End": True,
                    }
                },
            },
            "End": True,
        },
        "Refused": {"Type": "Pass", "InputPath": "$.error.Cause", "End": True},
    },
}


def one(function: str = "f", **fields: Any) -> dict[str, Any]:
    """A machine that decides for the state ``Only``; what that catches is its answer."""
    only = {"Type": "Task", "Resource": function, "End": True, **fields}
    rule = {"Variable": "$.never", "IsPresent": True, "Next": "Caught"}
    choice = {"Type": "Choice", "Choices": [rule], "Default": "Only"}
    states = {"Choice": choice, "Only": only, "Caught": {"Type": "Succeed"}}
    return {"StartAt": "Choice", "States": states}


CATCH = {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]}


def mapped(**fields: Any) -> dict[str, Any]:
    """A machine that has ``f`` called for every item."""
    only = {"Type": "Task", "Resource": "f", "End": True}
    processor = {"StartAt": "Only", "States": {"Only": only}}
    state = {"Type": "Map", "ItemProcessor": processor, "End": True, **fields}
    return {"StartAt": "All", "States": {"All": state}}


def raised(error: Exception) -> tuple[int, bytes]:
    """What a wrap answers whose function has raised `error`."""
    message = f"{type(error).__name__}: {error} (handler.py:3)"
    told = {"code": "raised", "message": message, "function": "check", "wrap": "w"}
    told |= {"error": type(error).__name__, "cause": str(error)}
    return 500, json.dumps(told).encode()


@pytest.fixture
def invoke(behind) -> Callable[..., str]:
    """What the client answers that runs a machine on functions that are called by their names."""

    def run(document: dict[str, Any], request: str = "{}", **options: Any) -> str:
        workflow = parse_states(document, "order")
        names = {task.name: task.function for task in workflow.tasks}
        route = state_machine_route(workflow.name, workflow.machine, names)
        with Invoker(behind.url, route, **options) as invoker:
            return invoker.invoke(request.encode()).output

    return run


def check(text: str) -> int:
    items = json.loads(text)["items"]
    if -1 in items:
        raise ValueError("one is negative")
    return len(items)


@pytest.mark.parametrize("items", [[], [3], [-1, 3], list(range(60))])
def test_the_client_answers_as_the_reference_executor_does(items, behind, invoke):
    def checked(body: bytes) -> tuple[int, bytes]:
        try:
            return 200, str(check(body.decode())).encode()
        except ValueError as error:
            return raised(error)

    def alone(function: str, text: str) -> str:
        if function == "price":
            return str(2 * int(text))
        try:
            return str(check(text))
        except ValueError as error:
            raise StatesError("ValueError", str(error)) from error

    behind.functions |= {"check": checked, "price": lambda b: (200, str(2 * int(b)).encode())}
    request = json.dumps({"items": items, "error": {"Cause": "none"}})
    expected = execute(parse_states(ORDER, "order"), request.encode(), alone)
    assert invoke(ORDER, request) == expected.output


def test_items_are_called_at_once_but_not_all_of_them(behind, invoke):
    now, most, lock = 0, 0, threading.Lock()

    def f(body: bytes) -> tuple[int, bytes]:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1
        return 200, body

    behind.functions["f"] = f
    assert json.loads(invoke(mapped(), json.dumps([*range(300)]))) == [*range(300)]
    assert 1 < most <= MOST_AT_ONCE
    most = 0
    invoke(mapped(MaxConcurrency=2), json.dumps([*range(10)]))
    assert most == 2


@pytest.mark.parametrize(
    ("reply", "error", "cause"),
    [
        (raised(KeyError("x")), "KeyError", "'x'"),
        (
            (500, b'{"code": "exited", "message": "status 3"}'),
            "exited",
            cause_of("exited", "status 3"),
        ),
        ((504, b'{"code": "timeout", "message": "late"}'), "States.Timeout", ""),
        ((504, b"gateway timeout"), "States.Timeout", ""),
        (
            (500, b"oh\n no"),
            "States.TaskFailed",
            cause_of("States.TaskFailed", "status 500: oh\n no"),
        ),
        ((429, b""), "States.TaskFailed", cause_of("States.TaskFailed", "status 429: no body")),
    ],
)
def test_rules_see_the_name_that_a_function_tells(reply, error, cause, behind, invoke):
    behind.functions["f"] = lambda _: reply
    assert json.loads(invoke(one(**CATCH))) == {"Error": error, "Cause": cause}


def test_a_task_that_takes_longer_than_it_may_has_timed_out(behind, invoke):
    hang, ended = threading.Event(), threading.Event()

    def slow(_: bytes) -> tuple[int, bytes]:
        hang.wait(30)
        ended.set()
        return 200, b"late"

    behind.functions["f"] = slow
    try:
        assert json.loads(invoke(one(TimeoutSeconds=1, **CATCH)))["Error"] == "States.Timeout"
        assert not ended.is_set()
    finally:
        hang.set()


def test_a_task_is_tried_again_after_its_interval(behind, invoke):
    replies = iter([raised(OSError("busy")), (200, b"7")])
    behind.functions["f"] = lambda _: next(replies)
    retry = {"ErrorEquals": ["OSError"], "IntervalSeconds": 1}
    begin = time.monotonic()
    assert invoke(one(Retry=[retry])) == "7"
    assert time.monotonic() - begin >= 1.0


def test_what_nobody_awaits_any_more_is_not_waited_for(behind, invoke):
    hang, ended = threading.Event(), threading.Event()

    def slow(_: bytes) -> tuple[int, bytes]:
        hang.wait(30)
        ended.set()
        return 200, b"1"

    behind.functions |= {"slow": slow, "f": lambda _: raised(ValueError("no"))}
    branches = [
        {"StartAt": name, "States": {name: {"Type": "Task", "Resource": name, "End": True}}}
        for name in ("slow", "f")
    ]
    both = {"Type": "Parallel", "Branches": branches, "End": True, **CATCH}
    document = {"StartAt": "Both", "States": {"Both": both, "Caught": {"Type": "Succeed"}}}
    try:
        assert json.loads(invoke(document))["Error"] == "ValueError"
        assert not ended.is_set()
    finally:
        hang.set()


def test_an_error_that_is_not_caught_is_the_functions_own(behind, invoke):
    behind.functions["f"] = lambda _: raised(ValueError("no"))
    with pytest.raises(ChironError) as failed:
        invoke(one())
    assert (failed.value.code, failed.value.functions) == ("raised", ("check",))
    assert failed.value.message == "function check failed: ValueError: no (handler.py:3)"


def test_a_machine_that_fails_says_with_what(behind, invoke):
    document = one(Next="Caught")
    del document["States"]["Only"]["End"]
    document["States"]["Caught"] = {"Type": "Fail", "Error": "Sunk", "Cause": "ice"}
    behind.functions["f"] = lambda _: (200, b"1")
    with pytest.raises(ChironError) as failed:
        invoke(document)
    assert (failed.value.code, failed.value.message) == ("workflow-failed", "Sunk: ice")


def test_a_state_that_cannot_go_on_is_named(invoke):
    document = one()
    document["States"]["Choice"]["Default"] = "Shaped"
    document["States"]["Shaped"] = {"Type": "Pass", "InputPath": "$.none", "Next": "Only"}
    with pytest.raises(ChironError) as failed:
        invoke(document)
    assert failed.value.message.startswith("States.")
    assert "state 'Shaped': path $.none" in failed.value.message


def test_half_a_surrogate_pair_reaches_a_function_as_it_was_written(behind, invoke):
    behind.functions["f"] = lambda body: (200, body)
    assert invoke(one(), '{"a": "\\ud800", "\u00fc": 1}') == '{"a":"\\ud800","\u00fc":1}'
    assert behind.calls[0][1] == '{"a": "\\ud800", "\u00fc": 1}'.encode()


def test_what_an_entry_says_of_its_workflow_is_not_said_of_a_function(behind):
    told = {"code": "workflow-failed", "message": "Sunk: ice", "function": None}
    behind.functions["entry"] = lambda _: (500, json.dumps(told).encode())
    with Invoker(behind.url, entry_route("entry")) as invoker, pytest.raises(ChironError) as failed:
        invoker.invoke(b"{}")
    assert (failed.value.code, failed.value.message) == ("workflow-failed", "Sunk: ice")


def test_a_gateway_that_is_gone_is_no_failure_of_a_task(free_port):
    workflow = parse_states(one(**CATCH), "order")
    route = state_machine_route("order", workflow.machine, {"Only": "f"})
    url = f"http://127.0.0.1:{free_port}"
    with Invoker(url, route) as invoker, pytest.raises(ChironError) as gone:
        invoker.invoke(b"{}")
    assert gone.value.code == "no-gateway"


@pytest.fixture
def deploy(fake, behind, plan_by_hand) -> Callable[[dict[str, Any]], Workflow]:
    """Deploys each task of a machine as a function of its own, which answers what it gets."""

    def run(document: dict[str, Any]) -> Workflow:
        workflow = parse_states(document, "order")
        wraps = {f"order-{number}": [[task]] for number, task in enumerate(workflow.by_name)}
        plan = plan_by_hand(wraps, workflow="order", orchestrator="client")
        fake.url = behind.url
        for index, wrap in enumerate(plan.wraps):
            annotations = annotate(plan, index, workflow)
            fake.deployed[wrap.name] = FunctionStatus(name=wrap.name, annotations=annotations)
            behind.functions[wrap.name] = lambda body, name=wrap.name: (200, body)
        return workflow

    return run


def test_a_deployed_machine_is_found_by_its_annotations(fake, behind, deploy):
    document = one(Next="Zwei \u00fc")
    del document["States"]["Only"]["End"]
    document["States"]["Zwei \u00fc"] = {"Type": "Task", "Resource": "g", "End": True}
    deploy(document)
    fake.deployed = dict(reversed(fake.deployed.items()))
    with find_invoker(fake, "order") as invoker:
        assert invoker.invoke(b'{"a": 1}').output == '{"a":1}'
    assert [name for name, _, _ in behind.calls] == ["order-0", "order-1"]


def large(states: int) -> dict[str, Any]:
    """A machine with data in each state that gets little shorter when it is packed."""
    draw = Random(1)
    names = [f"S{number}" for number in range(states)]
    made = {
        name: {
            "Type": "Pass",
            "Result": draw.randbytes(500).hex(),
            "Next": following,
        }
        for name, following in zip(names, [*names[1:], "Choice"], strict=True)
    }
    return {"StartAt": "S0", "States": made | one()["States"]}


def test_a_large_machine_is_told_in_parts_that_faasd_takes(fake, deploy):
    workflow = deploy(large(40))
    annotations = fake.deployed["order-0"].annotations
    parts = [name for name in annotations if name.startswith(MACHINE)]
    assert len(parts) > 2
    assert max(len(name) + len(annotations[name]) for name in parts) < 4096 - 30
    assert read_machine(annotations) == (workflow.machine, ["Only"])


def test_a_machine_that_is_too_large_to_be_told_is_refused(deploy):
    with pytest.raises(ChironError, match=r"order takes \d+ KiB of annotations") as refused:
        deploy(large(500))
    assert refused.value.code == "machine-too-large"
