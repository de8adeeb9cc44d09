"""What a machine answers is what the documentation of the language and of its platform says.

Each case has its source: a section of the Amazon States Language specification (ASL,
states-language.net/spec.html) or a page of the AWS Step Functions Developer Guide (AWS).
"""

from __future__ import annotations

import json
from functools import partial
from random import Random
from typing import Any, NamedTuple

import pytest

from chiron.workflow.asl import parse_states
from chiron.workflow.execute import execute
from chiron.wrap.core.statemachine.context import execution_context
from chiron.wrap.core.statemachine.errors import LONGEST, StatesError, cause_of, failure_of
from chiron.wrap.core.statemachine.machine import Machine
from chiron.wrap.core.statemachine.values import dump
from chiron.wrap.values.jsonata import Jsonata
from tests.rows import each_row

#: A machine has a Task: this one precedes the states of a case and changes nothing.
FIRST = {"Type": "Task", "Resource": "f", "ResultPath": None}
ALL = [{"ErrorEquals": ["States.ALL"], "Next": "Caught", "ResultPath": "$.error"}]
RUNTIME = [{"ErrorEquals": ["States.Runtime", "States.TaskFailed"], "Next": "Caught"}]
CAUGHT = {"Caught": {"Type": "Pass", "End": True}}
WAIT = {"Type": "Wait", "End": True}
TASK = {"Type": "Task", "Resource": "f", "End": True}
PASS = {"Type": "Pass", "End": True}
INVOKE = {**TASK, "Resource": "arn:aws:states:::lambda:invoke"}


class Ran(NamedTuple):
    """What a machine ended with, what its tasks got, and how long it waited, in seconds."""

    outcome: Any
    given: list[str]
    waits: list[float]


def run(states: dict[str, Any], request: Any, answers: tuple[str | StatesError, ...] = ()) -> Ran:
    """Run the first of `states`; its tasks answer, or fail with, the next of `answers`.

    A second passes before each end of a task.
    """
    first, *_ = states
    document = {"StartAt": "First", "States": {"First": {**FIRST, "Next": first}, **states}}
    machine = Machine(
        parse_states(document, "demo").machine or {},
        partial(execution_context, "demo", "1"),
        Random(1),
        Jsonata(),
    )
    now, left, given, waits = 0.0, ["null", *answers], [], []
    waiting: list[Any] = []
    step = machine.start(json.dumps(request), now)
    while not machine.over:
        waiting = [
            each
            for each in (*waiting, *step.begins, *step.delays)
            if each.number not in step.dropped
        ]
        each = waiting.pop(0)
        if each in step.delays:
            waits.append(each.seconds)
            step = machine.due(each.number, now := now + each.seconds)
            continue
        given.append(dump(each.given))
        now += 1
        answer = left.pop(0)
        end = machine.failed if isinstance(answer, StatesError) else machine.ended
        step = end(each.number, answer, now)
    outcome = machine.outcome
    return Ran(outcome.name if isinstance(outcome, StatesError) else outcome, given[1:], waits)


#: Where it is said, the states, the request, what tasks answer, and the outcome.
CASES: list[tuple[str, dict[str, Any], Any, tuple[str | StatesError, ...], Any]] = [
    (
        "AWS, Paths: an indefinite path gives a list, here of nothing",
        {"P": {**PASS, "Parameters": {"n.$": "$.orders[*].name", "a.$": "$[*]", "s.$": "$.o[:1]"}}},
        {},
        (),
        {"n": [], "a": [], "s": []},
    ),
    (
        "AWS, Paths: the items of a Map may be a list of nothing",
        {
            "M": {
                "Type": "Map",
                "ItemsPath": "$.no[*]",
                "End": True,
                "ItemProcessor": {"StartAt": "I", "States": {"I": PASS}},
            }
        },
        {},
        (),
        [],
    ),
    *(
        (
            "AWS, Error names: States.Runtime always causes the execution to fail",
            {"T": {**TASK, "Parameters": parameters, "Catch": catch}, **CAUGHT},
            {},
            ("1",),
            "States.Runtime",
        )
        for parameters in ({"a.$": "$.no"}, {"a.$": "States.Format('{}', $.no)"}, {"a.$": "$$.no"})
        for catch in (ALL, RUNTIME)
    ),
    (
        "AWS, Error names: no Retry takes States.Runtime",
        {
            "T": {
                **TASK,
                "ResultSelector": {"a.$": "$.no"},
                "Retry": [{"ErrorEquals": ["States.ALL"]}],
            }
        },
        {},
        ("{}", "{}"),
        "States.Runtime",
    ),
    (
        "AWS, Lambda errors: the cause is JSON text",
        {
            "T": {**TASK, "Catch": ALL},
            "Caught": {**PASS, "Parameters": {"said.$": "States.StringToJson($.error.Cause)"}},
        },
        {},
        (failure_of("raised", "", ("E", cause_of("E", 'only "3"', ["a.py:1 in f"]))),),
        {
            "said": {
                "errorMessage": 'only "3"',
                "errorType": "E",
                "stackTrace": ["a.py:1 in f"],
            }
        },
    ),
    (
        "AWS, Error names: States.Timeout, whose cause is empty",
        {"T": {**TASK, "Catch": ALL}, **CAUGHT},
        {},
        (failure_of("timeout", "it took 3 s"),),
        {"error": {"Error": "States.Timeout", "Cause": ""}},
    ),
    (
        "AWS, Context object: EnteredTime is when the state was entered, also at a retry",
        {
            "T": {
                **TASK,
                "Parameters": {"at.$": "$$.State.EnteredTime", "n.$": "$$.State.RetryCount"},
                "ResultSelector": {"at.$": "$$.State.EnteredTime"},
                "Retry": [{"ErrorEquals": ["E"]}],
            }
        },
        {},
        (StatesError("E", ""), "{}"),
        {"at": "1970-01-01T00:00:01.000Z"},
    ),
    *(
        (
            "AWS, Wait: SecondsPath has to be a whole number",
            {"W": {**WAIT, "SecondsPath": "$.s"}},
            {"s": seconds},
            (),
            outcome,
        )
        for seconds, outcome in ((1.5, "States.Runtime"), (-1, "States.Runtime"), (2, {"s": 2}))
    ),
    *(
        (
            "AWS, Wait: a timestamp, which may be 99,999,999 s away",
            {"W": {**WAIT, "TimestampPath": "$.t"}},
            {"t": text},
            (),
            outcome,
        )
        for text, outcome in (
            ("9999-12-31T23:59:59Z", "States.Runtime"),
            ("1972-01-01T00:00:00Z", {"t": "1972-01-01T00:00:00Z"}),
            ("1960-01-01T00:00:00Z", {"t": "1960-01-01T00:00:00Z"}),
            ("tomorrow", "States.Runtime"),
        )
    ),
    *(
        (
            "a number that a function answered stays a text until a number is needed",
            {
                "T": {**TASK, "ResultPath": "$.v", "Next": "C", "End": None},
                "C": {"Type": "Choice", "Choices": [{**rule, "Next": "Yes"}], "Default": "No"},
                "Yes": {**PASS, "Result": "yes"},
                "No": {**PASS, "OutputPath": "$.v"},
            },
            {},
            ("3.10",),
            outcome,
        )
        for rule, outcome in (
            ({"Variable": "$.v", "StringEquals": "3.10"}, "yes"),
            ({"Variable": "$.v", "NumericEquals": 3.1}, "yes"),
            ({"Variable": "$.v", "NumericLessThan": 3}, "3.10"),
            ({"Variable": "$.v", "IsNumeric": False}, "3.10"),
        )
    ),
]


@each_row("case", CASES, ids=lambda case: case[0])
def test_as_documented(case: Any) -> None:
    _, states, request, answers, outcome = case
    states = {
        name: {k: v for k, v in each.items() if v is not None or k != "End"}
        for name, each in states.items()
    }
    assert run(states, request, answers).outcome == outcome


@each_row(
    ("payload", "given"),
    [({"a": 1}, '{"a":1}'), ("no JSON", "no JSON"), ('{"a": 1}', '{"a": 1}'), (5, "5")],
)
def test_a_payload_that_is_a_text_goes_as_it_is(payload: Any, given: str) -> None:
    state = {**INVOKE, "Parameters": {"FunctionName": "f", "Payload": payload}}
    assert run({"T": state}, {}, ("1",)).given == [given]


@each_row(
    ("answer", "given"),
    [
        ("3.10", "3.10"),
        ("5.0", "5.0"),
        ("5", "5"),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        ("0.1000000000000000055", "0.1000000000000000055"),
        ("0.000001", "1e-06"),
        ("1.7645234561234567E9", "1764523456.1234567"),
        ("1234567890123456789e-400", "1234567890123456789e-400"),
        ('{"v":3.10}', '{"v":3.1}'),
    ],
)
def test_a_number_is_handed_on_with_the_digits_that_a_function_answered(
    answer: str, given: str
) -> None:
    states = {"A": {**TASK, "Next": "B"}, "B": TASK}
    del states["A"]["End"]
    assert run(states, {}, (answer, "1")).given[1] == given


def test_backoff_has_any_rate() -> None:
    retry = {"ErrorEquals": ["States.ALL"], "BackoffRate": 1e200, "MaxDelaySeconds": 1}
    states = {"T": {**TASK, "Retry": [{**retry, "MaxAttempts": 4}], "Catch": ALL}, **CAUGHT}
    ran = run(states, {}, (StatesError("E", "no"),) * 5)
    assert ran.waits == [1.0] * 4
    assert ran.outcome == {"error": {"Error": "E", "Cause": "no"}}


def test_what_begins_and_is_cancelled_in_one_step_is_in_none_of_its_lists() -> None:
    waits = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 5, "End": True}}}
    works = {"StartAt": "T", "States": {"T": TASK}}
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Sunk"}}}
    state = {"Type": "Parallel", "Branches": [waits, works, fails], "End": True}
    machine = Machine({"StartAt": "P", "States": {"P": state}}, lambda *_: {}, Random(1), Jsonata())
    assert machine.start("{}", 0.0) == ([], [], [])
    assert machine.outcome.name == "Sunk"


@each_row("message", ["x" * 100_000, '"' * 100_000, "\ud800" * 50_000, "\n\\é" * 20_000])
def test_a_cause_is_whole_json_however_long_the_message_is(message: str) -> None:
    cause = cause_of("E", message, ["frame"] * 20)
    assert LONGEST - 6 <= len(cause) <= LONGEST
    found = json.loads(cause)
    assert found["errorType"] == "E"
    assert message.encode(errors="backslashreplace").decode().startswith(found["errorMessage"])


def limited(most_bytes: float, catch: list[dict[str, Any]], answer: str) -> Any:
    """The outcome of a machine whose states may give so many bytes."""
    states = {"T": {**TASK, "Catch": catch}, **CAUGHT}
    document = {"StartAt": "T", "States": states}
    machine = Machine(document, lambda *_: {}, Random(1), Jsonata(), most_bytes=most_bytes)
    (task,) = machine.start("{}", 0.0).begins
    machine.ended(task.number, answer, 0.0)
    outcome = machine.outcome
    return outcome.name if isinstance(outcome, StatesError) else outcome


def test_a_result_over_the_limit_is_an_error_that_no_wildcard_takes() -> None:
    # AWS, Error names: States.ALL does not catch States.DataLimitExceeded.
    name = "States.DataLimitExceeded"
    assert limited(6, ALL, '"éé"') == "éé"
    assert limited(5, ALL, '"éé"') == name
    named = [{"ErrorEquals": [name], "Next": "Caught", "ResultPath": None}]
    assert limited(5, named, '"éé"') == {}
    assert limited(float("inf"), ALL, '"' + "x" * 300_000 + '"') == "x" * 300_000


def test_an_output_over_the_limit_fails_its_state() -> None:
    state = {"Type": "Pass", "Parameters": {"a.$": "$", "b.$": "$"}, "End": True}
    document = {"StartAt": "P", "States": {"P": state}}
    machine = Machine(document, lambda *_: {}, Random(1), Jsonata(), most_bytes=10)
    machine.start('"1234"', 0.0)
    assert machine.outcome.name == "States.DataLimitExceeded"


def test_an_evaluation_that_takes_too_long_fails_its_state_and_is_caught() -> None:
    looks = iter([None] * 5 + [StatesError("States.Timeout", "too long")] + [None] * 100)

    def check() -> None:
        if error := next(looks):
            raise error

    catch = [{**ALL[0], "ResultPath": None}]
    task = {**TASK, "Parameters": {"all.$": "$[*]"}, "Catch": catch}
    document = {"StartAt": "T", "States": {"T": task, **CAUGHT}}
    machine = Machine(document, lambda *_: {}, Random(1), Jsonata(), check)
    machine.start(json.dumps([*range(10)]), 0.0)
    assert machine.outcome == [*range(10)]


def mapped(**fields: Any) -> dict[str, Any]:
    """A distributed Map of one task, and what it fails with."""
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "T",
        "States": {"T": TASK},
    }
    state = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "End": True}
    return {"M": {**state, **fields}}


ITEMS = {"items": [1, 2, 3, 4, 5], "two": 2}
NO = StatesError("E", "no")
EXCEEDED = "States.ExceedToleratedFailureThreshold"


@each_row(
    ("fields", "given"),
    [
        ({}, ["1", "2", "3", "4", "5"]),
        (
            {"ItemBatcher": {"MaxInputBytesPerBatch": 18}},
            ['{"Items":[1,2,3]}', '{"Items":[4,5]}'],
        ),
        (
            {
                "ItemBatcher": {"MaxInputBytesPerBatch": 20, "MaxItemsPerBatch": 3},
                "ItemSelector": {"v.$": "$$.Map.Item.Value"},
            },
            [f'{{"Items":[{{"v":{value}}}]}}' for value in range(1, 6)],
        ),
    ],
)
def test_a_distributed_map_gives_its_items(fields: dict[str, Any], given: list[str]) -> None:
    # AWS, Using Map state in Distributed mode; ItemBatcher.
    ran = run(mapped(**fields), ITEMS, ("0",) * 5)
    assert ran.given == given
    assert ran.outcome == [0] * len(given)


@each_row(
    ("fields", "answers", "outcome"),
    [
        (
            {"ToleratedFailureCountPath": "$.two"},
            ("1", NO, NO, "4", "5"),
            [1, "FAILED", "FAILED", 4, 5],
        ),
        (
            {"ToleratedFailurePercentage": 40},
            ("1", NO, NO, "4", "5"),
            [1, "FAILED", "FAILED", 4, 5],
        ),
        ({"ToleratedFailurePercentage": 39.9}, ("1", NO, NO), EXCEEDED),
        (
            {"ToleratedFailureCount": 1, "ItemBatcher": {"MaxItemsPerBatch": 2}},
            (NO,),
            EXCEEDED,
        ),
        (
            {"ToleratedFailureCount": 2, "ItemBatcher": {"MaxItemsPerBatch": 2}},
            (NO, "2", "3"),
            ["FAILED", 2, 3],
        ),
        ({"ToleratedFailureCountPath": "$.items"}, (), "States.Runtime"),
    ],
)
def test_a_distributed_map_tolerates_failures(
    fields: dict[str, Any], answers: tuple[Any, ...], outcome: Any
) -> None:
    # AWS, Setting failure thresholds for Distributed Map states; ResultWriter, Transformation.
    found = run(mapped(**fields), ITEMS, answers).outcome
    if isinstance(found, list):
        found = [each["Status"] if isinstance(each, dict) else each for each in found]
    assert found == outcome


def test_a_threshold_is_caught_and_what_still_runs_is_dropped() -> None:
    states = {**mapped(Catch=ALL), "Caught": {**PASS, "OutputPath": "$.error.Error"}}
    assert run(states, ITEMS, (NO,)).outcome == EXCEEDED


def test_a_distributed_map_runs_a_bounded_number_of_items_at_once() -> None:
    document = {
        "StartAt": "M",
        "States": parse_states({"StartAt": "M", "States": mapped()}, "demo").machine["States"],
    }
    machine = Machine(document, lambda *_: {}, Random(1), Jsonata())
    step = machine.start(json.dumps({"items": [*range(5000)]}), 0.0)
    assert len(step.begins) == 1000
    assert len(machine.ended(step.begins[0].number, "1", 0.0).begins) == 1


def test_a_task_that_ran_into_its_limit_takes_that_long_in_a_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 1.5])
    monkeypatch.setattr("chiron.workflow.execute.time.monotonic", lambda: next(clock))
    states = {"T": {**TASK, "TimeoutSeconds": 1, "Catch": ALL}, **CAUGHT}
    workflow = parse_states({"StartAt": "T", "States": states}, "demo")
    done = execute(workflow, b"{}", lambda _, text: text)
    assert done.output == '{"error":{"Error":"States.Timeout","Cause":""}}'
    (instance,) = done.trace
    assert (instance.task, instance.failed, instance.wait_ms) == ("T", True, 1000.0)
