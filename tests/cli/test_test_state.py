"""`chiron test-state` answers for a state, or a machine, as AWS's TestState does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rows import each_row

PAY = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Parameters": {"FunctionName": "pay", "Payload.$": "$"},
    "ResultSelector": {"paid.$": "$.Payload"},
    "Retry": [{"ErrorEquals": ["Busy"], "MaxAttempts": 2}],
    "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Sorry"}],
    "Next": "Large",
}
SHIP = {"Type": "Task", "Resource": "arn:aws:states:::dynamodb:putItem", "End": True}
STATES = {
    "Pay": PAY,
    "Large": {
        "Type": "Choice",
        "Choices": [{"Variable": "$.paid", "NumericGreaterThan": 9, "Next": "Both"}],
        "Default": "Later",
    },
    "Later": {"Type": "Wait", "Seconds": 3600, "Next": "Both"},
    "Both": {
        "Type": "Parallel",
        "Branches": [{"StartAt": "Ship", "States": {"Ship": SHIP}}],
        "Catch": [{"ErrorEquals": ["States.BranchFailed"], "Next": "Sorry"}],
        "Next": "Each",
    },
    "Each": {
        "Type": "Map",
        "ItemProcessor": {"StartAt": "One", "States": {"One": SHIP}},
        "End": True,
    },
    "Sorry": {"Type": "Fail", "Error": "Sorry", "Cause": "no goods"},
}
JSONATA = {
    "QueryLanguage": "JSONata",
    "StartAt": "Total",
    "States": {
        "Total": {
            "Type": "Task",
            "Resource": "price",
            "Output": "{% $states.result * $rate %}",
            "Retry": [{"ErrorEquals": ["States.QueryEvaluationError"]}],
            "Next": "Done",
        },
        "Done": {"Type": "Succeed"},
    },
}
BUSY = {"error": "Busy", "cause": "a queue"}


@pytest.fixture
def tested(chiron, tmp_path):
    """Runs the command on a machine."""

    def run(document: Any, *options: Any):
        file = tmp_path / "machine.json"
        file.write_text(json.dumps(document))
        return chiron("test-state", file, *options)

    return run


def of(state: str, mock: Any = None, *options: str) -> list[str]:
    mocked = [] if mock is None else ["--mock", json.dumps(mock)]
    return ["--state-name", state, *mocked, *options]


@each_row(
    ("options", "told"),
    [
        (
            of("Pay", {"result": {"Payload": 5}}),
            {"status": "SUCCEEDED", "output": '{"paid":5}', "nextState": "Large"},
        ),
        (
            of("Pay", {"result": '{"Payload": [5]}'}),
            {"status": "SUCCEEDED", "output": '{"paid":[5]}', "nextState": "Large"},
        ),
        (of("Pay", {"errorOutput": BUSY}), {"status": "RETRIABLE", **BUSY}),
        (
            of("Pay", {"errorOutput": BUSY}, "--retrier-retry-count", "2", "--input", '{"a": 1}'),
            {
                "status": "CAUGHT_ERROR",
                "output": '{"a":1,"error":{"Error":"Busy","Cause":"a queue"}}',
                "nextState": "Sorry",
                **BUSY,
            },
        ),
        (
            of("Pay", {"result": {}}),
            {
                "status": "FAILED",
                "error": "States.Runtime",
                "cause": "state 'Pay': path $.Payload finds nothing in the input",
            },
        ),
        (
            of("Large", None, "--input", '{"paid": 10}'),
            {"status": "SUCCEEDED", "output": '{"paid":10}', "nextState": "Both"},
        ),
        (
            of("Large", None, "--input", '{"paid": 1}'),
            {"status": "SUCCEEDED", "output": '{"paid":1}', "nextState": "Later"},
        ),
        (of("Later"), {"status": "SUCCEEDED", "output": "{}", "nextState": "Both"}),
        (
            of("Both", {"errorOutput": BUSY}),
            {
                "status": "CAUGHT_ERROR",
                "output": '{"Error":"Busy","Cause":"a queue"}',
                "nextState": "Sorry",
                **BUSY,
            },
        ),
        (
            of("Both", {"result": [1]}),
            {"status": "SUCCEEDED", "output": "[1]", "nextState": "Each"},
        ),
        (of("Each", {"result": [1]}), {"status": "SUCCEEDED", "output": "[1]"}),
        (of("Each", {"errorOutput": BUSY}), {"status": "FAILED", **BUSY}),
        (of("Sorry"), {"status": "FAILED", "error": "Sorry", "cause": "no goods"}),
        (of("Ship", {"result": "null"}), {"status": "SUCCEEDED", "output": "null"}),
    ],
)
def test_a_state_is_told_as_aws_tells_it(tested, options, told) -> None:
    result = tested({"StartAt": "Pay", "States": STATES}, *options)
    assert (result.status, result.stderr) == (0, "")
    assert result.json == told


@each_row(
    ("variables", "told"),
    [
        ({"rate": 2}, {"status": "SUCCEEDED", "output": "10", "nextState": "Done"}),
        ({"rate": "{% 2 %}"}, {"status": "RETRIABLE", "error": "States.QueryEvaluationError"}),
        ({}, {"status": "RETRIABLE", "error": "States.QueryEvaluationError"}),
    ],
)
def test_a_state_sees_variables_as_they_are(tested, variables, told) -> None:
    options = of("Total", {"result": 5}, "--variables", json.dumps(variables))
    found = tested(JSONATA, *options).json
    assert {field: found[field] for field in told} == told


SEEING = {
    "Path": {"Type": "Pass", "InputPath": "$$", "Next": "Query"},
    "Query": {
        "Type": "Pass",
        "QueryLanguage": "JSONata",
        "Output": "{% $states.context %}",
        "End": True,
    },
}
ITEM = {"Index": 2, "Value": "v"}


@pytest.mark.parametrize("state", SEEING)
@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ((), {"Execution": {"Input": {}, "RedriveCount": 0}}),
        (("--retrier-retry-count", "3"), {"State": {"RetryCount": 3}}),
    ],
)
def test_a_state_sees_the_context_of_an_execution(tested, state, options, seen) -> None:
    result = tested({"StartAt": "Path", "States": SEEING}, *of(state, None, *options))
    context = json.loads(result.json["output"])
    assert context["State"]["Name"] == state
    found = {name: {field: context[name][field] for field in seen[name]} for name in seen}
    assert found == seen


@pytest.mark.parametrize("state", SEEING)
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"Execution": {}, "State": {"RetryCount": 2}},
        {"Map": {"Item": ITEM}, "Task": {"Token": "t"}},
    ],
)
def test_a_state_sees_the_context_that_it_is_given_and_no_more(tested, state, given) -> None:
    options = of(state, None, "--context", json.dumps(given))
    result = tested({"StartAt": "Path", "States": SEEING}, *options)
    assert json.loads(result.json["output"]) == given


def test_the_states_of_a_map_see_their_own_context(tested) -> None:
    template = {"n.$": "$$.State.Name", "i.$": "$$.Map.Item.Index"}
    inner = {"Type": "Pass", "Parameters": template, "End": True}
    each = {
        "Type": "Map",
        "ItemProcessor": {"StartAt": "In", "States": {"In": inner}},
        "End": True,
    }
    context = json.dumps({"Map": {"Item": ITEM}, "State": {"Name": "Other"}})
    options = of("Each", None, "--context", context, "--input", "[1]")
    document = {"StartAt": "First", "States": {"First": {**PAY, "Next": "Each"}, "Each": each}}
    document["States"]["First"].pop("Catch")
    assert tested(document, *options).json["output"] == '[{"n":"In","i":0}]'


@each_row(
    ("mocks", "told"),
    [
        (
            {"Pay": {"0": {"Return": {"Payload": 5}}}, "Ship": {"0": {"Return": [1]}}},
            {"status": "SUCCEEDED", "output": "[[1]]"},
        ),
        (
            {
                "Pay": {"0-1": {"Throw": {"Error": "Busy"}}, "2": {"Return": {"Payload": 5}}},
                "Ship": {"0": {"Throw": {"Error": "Lost"}}},
            },
            {"status": "FAILED", "error": "Sorry", "cause": "no goods"},
        ),
    ],
)
def test_a_machine_runs_with_mocks_by_attempt(tested, tmp_path, mocks, told) -> None:
    (tmp_path / "mocks.json").write_text(json.dumps(mocks | {"One": {"0": {"Return": [1]}}}))
    document = {"StartAt": "Pay", "States": STATES}
    assert tested(document, "--mocks", tmp_path / "mocks.json").json == told


def test_a_mock_is_the_file_that_a_map_reads(tested, tmp_path) -> None:
    file = {"Map.ItemReader": {"0": {"Return": "a\n1\n2\n"}}}
    (tmp_path / "mocks.json").write_text(json.dumps(file))
    reader = {
        "Resource": "arn:aws:states:::s3:getObject",
        "Parameters": {"Bucket": "b", "Key": "k"},
        "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"},
    }
    each = {"StartAt": "Each", "States": {"Each": {"Type": "Pass", "End": True}}}
    processor = each | {"ProcessorConfig": {"Mode": "DISTRIBUTED"}}
    spread = {"Type": "Map", "ItemReader": reader, "ItemProcessor": processor, "End": True}
    document = {"StartAt": "Map", "States": {"Map": spread}}
    told = tested(document, "--mocks", tmp_path / "mocks.json").json
    assert told == {"status": "SUCCEEDED", "output": '[{"a":"1"},{"a":"2"}]'}


def test_what_writes_the_results_of_a_map_needs_no_mock(tested, tmp_path) -> None:
    writer = {"Resource": "arn:aws:states:::s3:putObject", "Parameters": {"Bucket": "b"}}
    each = {"StartAt": "Each", "States": {"Each": {"Type": "Pass", "End": True}}}
    processor = each | {"ProcessorConfig": {"Mode": "DISTRIBUTED"}}
    spread = {"Type": "Map", "ResultWriter": writer, "ItemProcessor": processor, "End": True}
    document = {"StartAt": "Map", "States": {"Map": spread}}
    mocks = tmp_path / "mocks.json"
    mocks.write_text("{}")
    told = tested(document, "--mocks", mocks).json
    assert told["status"] == "SUCCEEDED"
    assert json.loads(told["output"])["ResultWriterDetails"]["Bucket"] == "b"
    mocks.write_text(json.dumps({"Map.ResultWriter": {"0": {"Throw": {"Error": "Full"}}}}))
    assert tested(document, "--mocks", mocks).json["error"] == "States.ResultWriterFailed"


@each_row(
    ("mocks", "words"),
    [
        ({}, ["attempt 0", "'Pay'"]),
        ({"Pay": {"0": {"Throw": {"Error": "Busy"}}}}, ["attempt 1", "'Pay'"]),
        ({"Pai": {}}, ["'Pai'", "no state"]),
        ({"Later": {}}, ["'Later'", "Wait"]),
        ({"Pay": {"first": {"Return": 1}}}, ["'first'", "0"]),
        ({"Pay": {"0": {"Answer": 1}}}, ["Pay.0", "Return or Throw"]),
        ({"Pay": {"0": {"Throw": {"Error": 1}}}}, ["Pay.0.Throw", "strings"]),
        ({"Pay": [1]}, ["Pay", "objects"]),
    ],
)
def test_mocks_that_do_not_fit_are_refused(tested, tmp_path, mocks, words) -> None:
    (tmp_path / "mocks.json").write_text(json.dumps(mocks))
    document = {"StartAt": "Pay", "States": STATES}
    result = tested(document, "--mocks", tmp_path / "mocks.json")
    assert result.status == 2
    assert [word for word in words if word not in result.error()] == []


@each_row(
    ("document", "options", "word"),
    [
        (STATES, of("Pay"), "States"),
        ({"StartAt": "Pay", "States": STATES}, of("Pai"), "'Pai'"),
        ({"StartAt": "Pay", "States": STATES}, of("Pay"), "no mock"),
        ({"StartAt": "Pay", "States": STATES}, of("Pay", {"results": 1}), "errorOutput"),
        ({"StartAt": "Pay", "States": STATES}, of("Later", {"result": 1}), "Wait"),
        ({"StartAt": "Pay", "States": STATES}, ["--mock", "{}"], "--state-name"),
        ({"StartAt": "Pay", "States": STATES}, ["--context", "{}"], "--state-name"),
        *[
            ({"StartAt": "Pay", "States": STATES}, of("Later", None, "--context", context), word)
            for context, word in [
                ("[]", "an object"),
                ('{"Execution": 1}', "context.Execution"),
                ('{"Executions": {}}', "'Executions'"),
                ('{"State": {"Retries": 1}}', "'Retries'"),
            ]
        ],
        ({"StartAt": "Pai", "States": STATES}, of("Pay"), "StartAt"),
    ],
)
def test_what_cannot_be_tested_is_refused(tested, document, options, word) -> None:
    result = tested(document, *options)
    assert result.status == 2
    assert word in result.stderr
