"""A task uses a function that is deployed by itself; a handler stands in for other languages."""

from __future__ import annotations

import json

import pytest

from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources
from chiron.openfaas.objects import FunctionSpec
from chiron.openfaas.readiness import wait_ready
from chiron.workflow.errors import ChironError

WAVE = "def handle(req):\n    return req\n"
DEPLOYED = """
import json
def handle(event, context):
    given = json.loads(event.body)
    if given == "late":
        import time; time.sleep(20)
    if given == "fail":
        return {"statusCode": 503, "body": "overloaded"}
    return {"statusCode": 200, "body": json.dumps([given])}
"""
CALL = {
    "Type": "Task",
    "Resource": "deployed-before",
    "TimeoutSeconds": 1,
    "Retry": [{"ErrorEquals": ["status"], "MaxAttempts": 1, "IntervalSeconds": 1}],
    "Catch": [
        {"ErrorEquals": ["States.Timeout"], "Next": "Late"},
        {"ErrorEquals": ["status"], "Next": "Sorry"},
    ],
    "Next": "After",
}
MACHINE = {
    "StartAt": "Before",
    "States": {
        "Before": {"Type": "Task", "Resource": "wave", "Next": "Call"},
        "Call": CALL,
        "After": {"Type": "Task", "Resource": "wave", "End": True},
        "Late": {"Type": "Pass", "Result": "was late", "End": True},
        "Sorry": {"Type": "Pass", "OutputPath": "$.Cause", "End": True},
    },
}


@pytest.fixture(scope="module")
def before(place, write_folder, tmp_path_factory):
    """A function that is deployed before any workflow is."""
    folder = write_folder(
        tmp_path_factory.mktemp("before"),
        {"tasks": {"t": "deployed-before"}},
        {"deployed-before": DEPLOYED},
        {},
    )
    place.launcher.build(folder.stack_file)
    place.gateway.deploy(FunctionSpec(service="deployed-before", image="deployed-before:latest"))
    wait_ready(place.gateway, "deployed-before")
    yield
    place.gateway.remove("deployed-before")


def test_it_answers_fails_and_is_late_as_a_task(before, place, write_folder, plan_of, tmp_path):
    folder = write_folder(tmp_path / "f", MACHINE, {"wave": WAVE}, {})
    plan = plan_of(folder.workflow, "sand")
    with place.launcher.launch(folder.workflow, folder, plan) as deployment:
        answer = deployment.invoke(b'"well"', trace=True)
        assert json.loads(answer.output) == ["well"]
        assert "Call#1" in {span.task for span in answer.timeline.tasks}
        reference = reference_run(Sources.read(folder), b'"well"', place.gateway.url)
        assert reference.output == answer.output
        said = "the handler answered 503: overloaded"
        cause = json.loads(deployment.invoke(b'"fail"').output)
        assert json.loads(cause)["errorMessage"] == said
        assert json.loads(deployment.invoke(b'"late"').output) == "was late"
    assert "deployed-before" in place.names()


def test_other_backends_are_named_where_processes_cannot_run_it(
    place, write_folder, plan_of, tmp_path
):
    functions = {"wave": WAVE, "gopher": "package function\n"}
    workflow = {"tasks": {"t": "wave", "u": "gopher"}, "edges": [["t", "u"]]}
    fields = {"gopher": {"lang": "golang-http"}}
    folder = write_folder(tmp_path / "f", workflow, functions, {}, fields)
    plan = plan_of(folder.workflow, "sand")
    with (
        pytest.raises(ChironError, match=r"gopher: .*--backend docker, or another gateway"),
        place.launcher.launch(folder.workflow, folder, plan),
    ):
        pass
