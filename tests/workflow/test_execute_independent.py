"""Machines do in the reference executor what they do in moto, which has an interpreter of its own.

Where the two differ by what the language leaves open, or by a fault of moto's, both are made alike:

- The Cause of a function's failure is JSON in different spacing: the message of both is compared.
- A path that finds nothing is States.Runtime, which no Catch takes on AWS (Developer Guide, "Error
  names"); moto has States.ALL catch it. So States.Runtime here is compared with nothing. moto has
  no such name: where a Catch has it, it is renamed.
- moto gives a function text that looks like JSON as what it stands for, and Lambda has no answers
  but JSON: text goes in quoted, and comes out so, though functions of OpenFaaS answer plain text.
- moto evaluates no JSONata: machines with it are left out.
- What fails within JSONPath and intrinsic functions has names of its own in moto in place of those
  of the language (Appendix A): that both fail is compared.
- TimeoutSeconds of a path has to be positive ("Task state"): moto takes 0, so no machine has that.
- The spacing of States.JsonToString is open: no machine hashes it.
- Where an argument of an intrinsic function is of a wrong type moto fails with what States.ALL does
  not catch, and not with States.IntrinsicFailure ("Intrinsic functions"): no machine tries that.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from state_machines import given, run, state_machine

from chiron.workflow.asl import parse_states
from chiron.workflow.execute import execute
from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.values import dump

_STATE_TASK = "moto.stepfunctions.parser.asl.component.state.exec.state_task."
_FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:"
#: Errors that are told by names of moto's own, where the language has others.
_OTHER_NAMES = {"Exception", "States.Runtime", "States.QueryEvaluationError"}
MACHINES = 6
Outcome = tuple[str, Any]


def answer(function: str, text: str) -> str:
    """What a function answers, as JSON."""
    found = run(function, text)
    return json.dumps(found) if function == "text" else found


def invoked(parameters: dict[str, Any], **_: Any) -> dict[str, Any]:
    """What Lambda answers, where the functions are those of the random machines."""
    name, given_to = parameters["FunctionName"].rpartition(":")[2], parameters["Payload"]
    with suppress(ValueError):
        given_to = dump(json.loads(given_to))
    try:
        found = json.loads(answer(name, given_to))
    except StatesError as error:
        told = json.loads(error.cause)
        return {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": told}
    return {"StatusCode": 200, "Payload": found}


def payload(value: Any) -> str:
    """What lambda:invoke hands on: a text as it is, and null as no payload."""
    return value if isinstance(value, str) else json.dumps({} if value is None else value)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    moto = pytest.importorskip("moto", reason="moto, an extra of dev, is not installed")
    modules = ["lambda_eval_utils", "state_task_lambda", "service.state_task_service_lambda"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "none")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "none")
        for module in (importlib.import_module(_STATE_TASK + name) for name in modules):
            patch.setattr(module, "_invoke_lambda_function", invoked, raising=False)
            patch.setattr(module, "to_payload_type", json.dumps, raising=False)
        service = importlib.import_module(_STATE_TASK + modules[-1])
        used = SimpleNamespace(**{**vars(service.lambda_eval_utils), "to_payload_type": payload})
        patch.setattr(service, "lambda_eval_utils", used)
        with moto.mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
            yield importlib.import_module("boto3").client("stepfunctions", region_name="us-east-1")


def theirs(client: Any, document: Any, request: str) -> Outcome:
    machine = client.create_state_machine(
        name="demo",
        definition=json.dumps(for_moto(document)),
        roleArn="arn:aws:iam::123456789012:role/any",
    )["stateMachineArn"]
    execution = client.start_execution(stateMachineArn=machine, input=request)["executionArn"]
    until = time.monotonic() + 60
    # Its status is told before its output or error is, or is the one from before with them.
    while not _told(done := client.describe_execution(executionArn=execution)):
        assert time.monotonic() < until
        time.sleep(0.003)
    client.delete_state_machine(stateMachineArn=machine)
    if "output" in done:
        return "output", json.loads(done["output"], object_hook=message)
    return "error", done.get("error")


def _told(done: dict[str, Any]) -> bool:
    return done["status"] == "TIMED_OUT" or not done.keys().isdisjoint(("output", "error"))


def ours(document: Any, request: str) -> Outcome:
    done = execute(parse_states(document, "demo"), request.encode(), answer)
    if done.error:
        return "error", done.error.name
    return "output", json.loads(done.output or "", object_hook=message)


def message(value: dict[str, Any]) -> Any:
    """An error as it is here."""
    cause = value.get("Cause")
    if value.keys() == {"Error", "Cause"} and isinstance(cause, str) and "errorMessage" in cause:
        return {**value, "Cause": json.loads(cause)["errorMessage"]}
    return value


def for_moto(value: Any) -> Any:
    """A document with functions by their ARNs."""
    if isinstance(value, list):
        return ["Runtime" if each == "States.Runtime" else for_moto(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _FUNCTION + each if name == "Resource" and ":" not in each else for_moto(each)
        for name, each in value.items()
    }


def is_comparable(document: Any) -> bool:
    text = json.dumps(document)
    left = ("TimeoutSecondsPath", "JsonToString", "ArrayLength", "MathAdd($.n, $.v)", "JSONata")
    return not any(each in text for each in left)


def assert_alike(client: Any, document: Any, request: str) -> None:
    expected, found = theirs(client, document, request), ours(document, request)
    if found == ("error", "States.Runtime"):
        return
    if expected[0] == "error" and expected[1] in _OTHER_NAMES:
        caught = "Catch" in json.dumps(document)  # an error that has another name in moto
        assert caught or found[0] == "error", (document, request, expected, found)
    else:
        assert found == expected, (document, request)


def test_random_machines_do_the_same(client: Any) -> None:
    compared = 0
    for seed in range(4 * MACHINES):
        order = Random(seed)
        document, request = state_machine(order, retries=False), json.dumps(given(order))
        if compared < MACHINES and is_comparable(document):
            assert_alike(client, document, request)
            compared += 1
    assert compared == MACHINES


def machine(*states: dict[str, Any], prefix: str = "S") -> dict[str, Any]:
    """States one after another, named by their places; those that say where to go on do so."""
    names = [f"{prefix}{place}" for place in range(len(states))]
    found = {}
    for name, following, state in zip(names, [*names[1:], None], states, strict=True):
        leads = state["Type"] in ("Choice", "Succeed", "Fail") or "Next" in state or "End" in state
        on = {} if leads else {"Next": following} if following else {"End": True}
        found[name] = state | on
    return {"StartAt": names[0], "States": found}


TASK = {"Type": "Task", "Resource": "echo"}
FAILS = {"Type": "Fail", "Error": "Odd", "Cause": "so it is"}
UNSEEN = {**TASK, "ResultPath": None}
SINGLE = machine(TASK, prefix="T")
BY_HAND: dict[str, dict[str, Any]] = {
    "a result is put into the input": machine({**TASK, "InputPath": "$.a", "ResultPath": "$.b.c"}),
    "a result is thrown away": machine({**TASK, "ResultPath": None}),
    "nothing goes in": machine({**TASK, "InputPath": None}),
    "nothing comes out": machine({**TASK, "OutputPath": None}),
    "a part comes out": machine({**TASK, "OutputPath": "$.a"}),
    "a template": machine({**TASK, "Parameters": {"x.$": "$.list[1:]", "y": {"z.$": "$.a"}}}),
    "a template of a result": machine({**TASK, "ResultSelector": {"x.$": "$.a", "y": [1]}}),
    "a pass with a result": machine(
        {"Type": "Pass", "Result": {"x": [1, None]}, "ResultPath": "$.a"}, TASK
    ),
    "a wait": machine({"Type": "Wait", "Seconds": 0}, TASK),
    "a wait for what is over": machine({"Type": "Wait", "Timestamp": "2016-03-14T01:59:00Z"}, TASK),
    "an end before the end": machine(UNSEEN, {"Type": "Succeed", "OutputPath": "$.list"}),
    "a failure": machine(UNSEEN, FAILS),
    "a path that finds nothing": machine({**TASK, "InputPath": "$.none"}),
    "a map": machine({"Type": "Map", "ItemsPath": "$.list", "ItemProcessor": SINGLE}),
    "a map of nothing": machine({"Type": "Map", "ItemsPath": "$.empty", "ItemProcessor": SINGLE}),
    "a map of no list": machine({"Type": "Map", "ItemsPath": "$.a", "ItemProcessor": SINGLE}),
    "a map that selects": machine(
        {
            "Type": "Map",
            "ItemsPath": "$.list",
            "MaxConcurrency": 1,
            "ItemSelector": {"i.$": "$$.Map.Item.Index", "v.$": "$$.Map.Item.Value", "a.$": "$.a"},
            "ItemProcessor": SINGLE,
            "ResultPath": "$.each",
        }
    ),
    "a map with an older name": machine(
        {"Type": "Map", "ItemsPath": "$.list", "Iterator": SINGLE, "Parameters": {"a.$": "$.a"}}
    ),
    "branches": machine(
        {"Type": "Parallel", "Branches": [SINGLE, machine({"Type": "Pass"}, prefix="P")]}
    ),
    "a branch that fails, caught": machine(
        {
            "Type": "Parallel",
            "Branches": [machine(UNSEEN, FAILS, prefix="T")],
            "Catch": [{"ErrorEquals": ["Odd"], "ResultPath": "$.e", "Next": "S1"}],
            "End": True,
        },
        {"Type": "Pass", "Parameters": {"error.$": "$.e.Error"}},
    ),
    "a function that fails, caught": machine(
        {
            **TASK,
            "Resource": "picky",
            "InputPath": "$.wrong",
            "Catch": [{"ErrorEquals": ["States.TaskFailed"], "ResultPath": "$.e", "Next": "S1"}],
            "End": True,
        },
        {"Type": "Pass", "Parameters": {"error.$": "$.e.Error"}},
    ),
    "a function that fails": machine({**TASK, "Resource": "picky", "InputPath": "$.wrong"}),
    "a choice without a rule that holds": machine(
        {"Type": "Choice", "Choices": [{"Variable": "$.a", "NumericEquals": 9, "Next": "S1"}]}, TASK
    ),
    "choices within each other": machine(
        {
            "Type": "Choice",
            "Choices": [
                {
                    "And": [
                        {"Variable": "$.none", "IsPresent": False},
                        {"Not": {"Variable": "$.text", "StringMatches": "b*"}},
                        {"Or": [{"Variable": "$.a", "NumericLessThanPath": "$.list[0]"}]},
                    ],
                    "Next": "S2",
                }
            ],
            "Default": "S1",
        },
        FAILS,
        {**TASK, "InputPath": "$.list"},
    ),
}
REQUEST = {"a": 1, "list": [3, "x", {"y": None}], "empty": [], "text": "abc", "wrong": "abcdef"}


@pytest.mark.parametrize("document", BY_HAND.values(), ids=BY_HAND)
def test_each_state_and_field_does_the_same(client: Any, document: dict[str, Any]) -> None:
    assert_alike(client, document, json.dumps(REQUEST))
