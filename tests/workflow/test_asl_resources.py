"""What a Task names becomes a function's name, or is refused with what to do instead."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chiron.workflow.asl import parse_states
from chiron.workflow.execute import execute
from chiron.workflow.model import Task
from chiron.workflow.names import FunctionNames
from tests.rows import each_row

INVOKE = "arn:aws:states:::lambda:invoke"


def machine_of(resource: Any, **fields: Any) -> dict[str, Any]:
    state = {"Type": "Task", "Resource": resource, "End": True, **fields}
    return {"StartAt": "A", "States": {"A": state}}


@each_row(
    "resource",
    [
        INVOKE,
        "arn:aws-cn:states:::lambda:invoke",
        "arn:${AWS::Partition}:states:::lambda:invoke",
        "arn:aws:states:eu-west-1:123456789012:lambda:invoke",
    ],
)
def test_an_invocation_keeps_its_parameters_but_for_the_function(resource):
    parameters = {"FunctionName": "f", "Payload.$": "$.a", "Qualifier": "1"}
    workflow = parse_states(machine_of(resource, Parameters=parameters), "demo")
    assert workflow.tasks == (Task("A", "f", None),)
    assert workflow.machine is not None
    assert workflow.machine["States"]["A"] == {
        "Type": "Task",
        "Resource": "f",
        "Parameters": {"Payload.$": "$.a", "Qualifier": "1"},
        "Invoke": True,
        "End": True,
    }
    assert parameters["FunctionName"] == "f", "the document stays as it is"


@each_row(
    ("given", "proposed"),
    [
        ("arn:aws:lambda:eu-west-1:123456789012:function:WordCount", "word-count"),
        ("arn:aws:lambda:eu-west-1:123456789012:function:WordCount:$LATEST", "word-count"),
        ("arn:aws:lambda:eu-west-1:123456789012:function:WordCount:live", "word-count"),
        ("arn:aws:lambda:${AWS::Region}:${AWS::AccountId}:function:count", "count"),
        ("123456789012:function:count:3", "count"),
        ("count:$LATEST", "count"),
        ("count:live", "count"),
        ("${WordCount}", "word-count"),
        ("${WordCount.Arn}:$LATEST", "word-count"),
        ("${aws_lambda_function.word_count.arn}", "word-count"),
        ("${WordCount.Alias}", "alias"),
        ("1st", "function-1st"),
    ],
)
@each_row("invoked", [False, True])
def test_a_name_of_another_platform_gets_a_proposal_that_mends_it(
    refused, given, proposed, invoked
):
    document = machine_of(given)
    path = "States.A.Resource"
    if invoked:
        document = machine_of(INVOKE, Parameters={"FunctionName": given})
        path = "States.A.Parameters.FunctionName"
    error = refused(parse_states, document, "demo")
    assert (error.code, error.path, error.functions) == ("bad-name", path, (given,))
    proposal = json.loads(error.message[error.message.index("{") :])
    assert proposal == {given: proposed}
    workflow = parse_states(document, "demo", FunctionNames(proposal))
    assert workflow.functions == (proposed,)


@each_row(
    ("resource", "what"),
    [
        ("arn:aws:states:::dynamodb:putItem", "a service integration"),
        ("arn:aws:states:::aws-sdk:s3:getObject", "a service integration"),
        ("arn:aws:states:::states:startExecution.sync:2", "a service integration"),
        ("arn:aws:states:us-east-1:123456789012:sqs:sendMessage", "a service integration"),
        ("arn:${AWS::Partition}:states:::sns:publish", "a service integration"),
        ("arn:aws:states:::sqs:sendMessage.waitForTaskToken", "a wait for a callback"),
        ("arn:aws:states:us-east-1:123456789012:activity:cook", "an activity"),
    ],
)
@each_row(
    "fields",
    [{"Parameters": {"a.$": "$.b"}}, {"QueryLanguage": "JSONata", "Arguments": {"a": 1}}],
)
def test_what_is_no_function_is_named_with_how_to_have_one_instead(refused, resource, what, fields):
    document = machine_of(resource, **fields)
    error = refused(parse_states, document, "demo")
    assert (error.code, error.path) == ("unsupported-resource", "States.A.Resource")
    assert f"is {what}:" in error.message
    assert f"given its {[*fields][-1]}," in error.message
    proposal = json.loads(error.message[error.message.index('{"') :])
    assert parse_states(document, "demo", FunctionNames(proposal)).functions == tuple(
        proposal.values()
    )


@each_row(
    ("pattern", "what"),
    [(".sync", "a service integration"), (".waitForTaskToken", "a wait for a callback")],
)
def test_what_would_call_a_function_otherwise_is_named_with_that_function(refused, pattern, what):
    document = machine_of(INVOKE + pattern, Parameters={"FunctionName": "f"})
    names = FunctionNames({INVOKE + pattern: "g"})
    error = refused(parse_states, document, "demo", names)
    assert (error.code, error.path) == ("unsupported-resource", "States.A.Resource")
    assert f"is {what}:" in error.message
    assert error.message.endswith('"Resource": "f"')


@each_row(
    ("parameters", "code", "path"),
    [
        ({"FunctionName.$": "$.f"}, "unsupported-field", "Parameters.FunctionName.$"),
        (
            {"FunctionName": "f", "InvocationType": "Event"},
            "unsupported-field",
            "Parameters.InvocationType",
        ),
        (
            {"FunctionName": "f", "InvocationType.$": "$.t"},
            "unsupported-field",
            "Parameters.InvocationType.$",
        ),
        ({"FunctionName": "f", "payload.$": "$.a"}, "unknown-field", "Parameters.payload.$"),
        ({}, "missing-field", "Parameters.FunctionName"),
        ({"FunctionName": 1}, "bad-field", "Parameters.FunctionName"),
        ([], "bad-field", "Parameters"),
    ],
)
def test_an_invocation_names_one_function_and_waits_for_it(refused, parameters, code, path):
    error = refused(parse_states, machine_of(INVOKE, Parameters=parameters), "demo")
    assert (error.code, error.path) == (code, f"States.A.{path}")


def test_a_path_as_payload_of_a_call_in_jsonata_is_refused(refused):
    arguments = {"FunctionName": "f", "Payload.$": "$.a"}
    document = machine_of(INVOKE, QueryLanguage="JSONata", Arguments=arguments)
    error = refused(parse_states, document, "demo")
    assert (error.code, error.path) == ("unknown-field", "States.A.Arguments.Payload.$")
    assert "did you mean Payload?" in error.message


def test_fields_of_a_call_without_effect_are_said():
    parameters = {"FunctionName": "f", "Qualifier": "1", "LogType": "Tail"}
    warnings = parse_states(machine_of(INVOKE, Parameters=parameters), "demo").warnings
    assert [line.partition(":")[0] for line in warnings] == [
        "Qualifier of state 'A'",
        "LogType of state 'A'",
    ]


ARN = "arn:aws:lambda:eu-west-1:123456789012:function:Sort"
TABLE = {ARN: "sort", "Find": "find", "arn:aws:states:::sqs:sendMessage": "send"}


@each_row(
    "fields",
    [
        {"Parameters": {"FunctionName.$": "$.f", "Payload.$": "$.p"}},
        {
            "QueryLanguage": "JSONata",
            "Arguments": {
                "FunctionName": "{% $states.input.f %}",
                "Payload": "{% $states.input.p %}",
            },
            "Output": "{% $states.result.Payload %}",
        },
        {
            "QueryLanguage": "JSONata",
            "Arguments": "{% {'FunctionName': $states.input.f, 'Payload': $states.input.p} %}",
            "Output": "{% $states.result.Payload %}",
        },
    ],
    ids=["JSONPath", "JSONata", "an expression"],
)
@each_row(("called", "function"), [(ARN, "sort"), ("sort", "sort"), ("Find", "find")])
def test_a_function_is_chosen_at_run_time_among_those_of_functions_json(fields, called, function):
    missing = ["Lambda.ResourceNotFoundException"]
    catch = [{"ErrorEquals": missing, "Next": "None"}]
    document = machine_of(INVOKE, Catch=catch, **fields)
    document["States"]["None"] = {"Type": "Pass", "Result": "none", "End": True}
    workflow = parse_states(document, "demo", FunctionNames(TABLE))
    assert {task.name: task.function for task in workflow.tasks} == {
        "A.sort": "sort",
        "A.find": "find",
    }
    ran = list[tuple[str, str]]()

    def run(name: str, text: str) -> str:
        ran.append((name, text))
        return '"done"'

    done = execute(workflow, json.dumps({"f": called, "p": 7}).encode(), run)
    assert (ran, done.output) == ([(function, "7")], done.output)
    assert "done" in (done.output or "")
    for other in ("send", 7):
        done = execute(workflow, json.dumps({"f": other, "p": 7}).encode(), run)
        assert done.output == '"none"'
    assert len(ran) == 1


def test_a_function_that_is_chosen_without_a_table_is_refused_with_how_to_write_it(refused):
    document = machine_of(INVOKE, Parameters={"FunctionName.$": "$.f"})
    error = refused(parse_states, document, "demo", FunctionNames({INVOKE: "f"}))
    assert 'functions.json beside workflow.json: {"NAME": "function"}' in error.message


@pytest.mark.timeout(180)
@each_row("piece", ["${", "${a}", "${a", ":", ":function:", ".arn", "a:", "aB"])
@each_row("start", ["", "arn:aws:states:::"])
def test_a_name_that_goes_on_and_on_is_refused_soon(refused, start, piece):
    assert refused(parse_states, machine_of(start + piece * 100_000), "demo").code in (
        "bad-name",
        "unsupported-resource",
    )
