"""Connectors call the wrap in the place of the function that has the trigger."""

from __future__ import annotations

import pytest

from chiron.generator.generate import Sources
from chiron.openfaas.sharing import TRIGGERS
from chiron.workflow.errors import ChironError
from tests.generator.building import built

TRIGGER = {"topic": "cron-function", "schedule": "*/5 * * * *"}


def test_a_connector_calls_the_entry_wrap_in_place_of_the_first_function(
    folder_of, plan_by_hand, tmp_path
):
    folder = folder_of({"split": {"annotations": TRIGGER | {"team": "a"}}})
    tasks = list(folder.workflow.by_name)
    plan = plan_by_hand({"w1": [tasks[1:]], "w2": [tasks[:1]]})  # the entry need not have it
    entry, other = built(folder, plan, tmp_path / "build")
    assert {key: entry.annotations.get(key) for key in TRIGGER} == TRIGGER
    assert other.annotations["team"] == "a"
    assert not TRIGGERS & other.annotations.keys()


def test_where_the_client_calls_every_wrap_each_has_the_triggers_of_its_function(
    folder_of, plan_of, tmp_path
):
    folder = folder_of({"join": {"annotations": TRIGGER}})
    plan = plan_of(folder.workflow, "one-to-one")
    wraps = built(folder, plan, tmp_path / "build")
    triggered = [
        folder.workflow.function_of(wrap.tasks[0])
        for wrap, function in zip(plan.wraps, wraps, strict=True)
        if TRIGGERS & function.annotations.keys()
    ]
    assert triggered == ["join"]


def test_where_a_workflow_begins_with_several_functions_none_may_have_a_trigger(
    write_folder, plan_of, tmp_path
):
    handler = "def handle(req):\n    return req\n"
    folder = write_folder(
        tmp_path / "f",
        {"tasks": {"a": "one", "b": "two"}},
        {"one": handler, "two": handler},
        {},
        {"one": {"annotations": TRIGGER}},
    )
    with pytest.raises(ChironError, match="does not begin with it alone"):
        built(folder, plan_of(folder.workflow), tmp_path / "build")


def test_a_state_machine_begins_with_its_first_task(write_folder, plan_of, tmp_path):
    task = {"Type": "Task", "Resource": "one", "Next": "C"}
    choice = {"Variable": "$.x", "NumericEquals": 1, "Next": "B"}
    states = {
        "P": {"Type": "Pass", "Next": "A"},
        "A": task,
        "C": {"Type": "Choice", "Choices": [choice], "Default": "B"},
        "B": {"Type": "Task", "Resource": "two", "End": True},
    }
    handler = "def handle(req):\n    return req\n"
    folder = write_folder(
        tmp_path / "f",
        {"StartAt": "P", "States": states},
        {"one": handler, "two": handler},
        {},
        {"one": {"annotations": TRIGGER}},
    )
    (wrap,) = built(folder, plan_of(folder.workflow), tmp_path / "build")
    assert wrap.annotations["topic"] == TRIGGER["topic"]


def test_what_is_deployed_to_be_tried_is_called_by_no_connector(folder_of):
    given = {"annotations": TRIGGER | {"team": "a"}}
    folder = folder_of({"split": given, "wave": given}, {"tasks": {"t": "split"}})
    sources = Sources.read(folder, {})
    assert sources.untriggered.stack.functions["split"].annotations == {"team": "a"}
    assert sources.untriggered.stack.functions["wave"].annotations == given["annotations"]
    assert sources.stack.functions["split"].annotations == given["annotations"]
