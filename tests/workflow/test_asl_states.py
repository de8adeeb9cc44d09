"""A state machine that decides while it runs: what is kept of it, and what is refused of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chiron.workflow.asl import parse_states
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task
from tests.rows import each_row

TASK = {"Type": "Task", "Resource": "f", "End": True}
#: Instead of a field's value: the state is without it.
ABSENT = object()
INNER = {"StartAt": "X", "States": {"X": {"Type": "Pass", "End": True}}}
IN_JSONATA = {"QueryLanguage": "JSONata"}
DISTRIBUTED = INNER | {"ProcessorConfig": {"Mode": "DISTRIBUTED"}}
MAP = {"Type": "Map", "Iterator": INNER, "End": True}
RETRY = {"ErrorEquals": ["E"]}
CATCH = {"ErrorEquals": ["E"], "Next": "T"}
#: One of each type, as the field under test is added to it.
OF_TYPE: dict[str, dict[str, Any]] = {
    "Task": TASK,
    "Map": MAP,
    "Parallel": {"Type": "Parallel", "Branches": [INNER], "End": True},
    "Choice": {"Type": "Choice", "Choices": [{"Variable": "$.a", "IsNull": True, "Next": "T"}]},
    "Wait": {"Type": "Wait", "Seconds": 1, "Next": "T"},
    "Pass": {"Type": "Pass", "Next": "T"},
    "Succeed": {"Type": "Succeed"},
    "Fail": {"Type": "Fail"},
}


def machine_of(kind: str, **fields: Any) -> dict[str, Any]:
    """A machine that leads by a Catch to a state S of the type, with the fields, and to a Task."""
    state = {key: value for key, value in (OF_TYPE[kind] | fields).items() if value is not ABSENT}
    start = TASK | {"Catch": [{"ErrorEquals": ["E"], "Next": "S"}, CATCH]}
    return {"StartAt": "A", "States": {"A": start, "S": state, "T": TASK}}


def test_an_items_path_beside_an_item_reader_is_told_to_have_no_effect() -> None:
    reads = {"ItemsPath": "$.a", "ItemReader": {"Resource": "f"}, "ItemProcessor": DISTRIBUTED}
    (warning,) = parse_states(machine_of("Map", Iterator=ABSENT, **reads), "demo").warnings
    assert warning.startswith("ItemsPath of state 'S': the items are what the ItemReader reads")


@pytest.mark.parametrize("field", ["ToleratedFailureCountPath", "ToleratedFailurePercentage"])
def test_a_tolerance_of_an_inline_map_is_told_to_have_no_effect(field: str) -> None:
    state = {"Iterator": INNER, field: "$.n" if field.endswith("Path") else 5}
    (warning,) = parse_states(machine_of("Map", **state), "demo").warnings
    assert warning.startswith(f"{field} of state 'S': an inline Map fails with the first")


def kept(kind: str, **fields: Any) -> dict[str, Any]:
    """The state S as the machine has it."""
    machine = parse_states(machine_of(kind, **fields), "demo").machine
    assert machine is not None
    state: dict[str, Any] = machine["States"]["S"]
    return state


ACCEPTED = [
    *[(kind, {"InputPath": "$.a", "OutputPath": None}) for kind in OF_TYPE if kind != "Fail"],
    *[
        (kind, {"ResultPath": path, "Parameters": {"a.$": "$.b"}})
        for kind in ("Task", "Parallel", "Pass")
        for path in ("$.a.b", None)
    ],
    *[
        (kind, {"ResultSelector": {"a.$": "$$.Execution.Id", "b": [1]}, "Retry": [], "Catch": []})
        for kind in ("Task", "Parallel", "Map")
    ],
    *[
        (kind, {"Parameters": value})
        for kind in ("Task", "Parallel", "Pass")
        for value in ([1, {"a.$": "States.UUID()"}], "$.a", 1, None, True)
    ],
    ("Task", {"TimeoutSeconds": 99_999_999}),
    ("Task", {"TimeoutSecondsPath": "$.limit"}),
    (
        "Task",
        {
            "Retry": [
                RETRY
                | {"IntervalSeconds": 1, "MaxAttempts": 0, "BackoffRate": 1.0}
                | {"MaxDelaySeconds": 1, "JitterStrategy": "FULL"},
                {"ErrorEquals": ["States.ALL"], "JitterStrategy": "NONE"},
            ]
        },
    ),
    (
        "Task",
        {"Catch": [CATCH | {"ResultPath": None}, {"ErrorEquals": ["States.ALL"], "Next": "T"}]},
    ),
    ("Map", {"ItemsPath": "$$.Execution.Input.all[*]", "MaxConcurrency": 0}),
    ("Map", {"MaxConcurrencyPath": "$.n"}),
    ("Pass", {"Result": {"a.$": "no path: a result is given as it is"}}),
    ("Wait", {"Seconds": 0}),
    ("Wait", {"Seconds": ABSENT, "SecondsPath": "$.s"}),
    ("Wait", {"Seconds": ABSENT, "Timestamp": "2016-03-14T01:59:00Z"}),
    ("Wait", {"Seconds": ABSENT, "TimestampPath": "$$.State.EnteredTime"}),
    ("Fail", {"Error": "E", "CausePath": "States.Format('{}', $.why)"}),
    ("Fail", {"ErrorPath": "$.e", "Cause": "c"}),
    ("Choice", {"Default": "T"}),
]


@each_row(("kind", "fields"), ACCEPTED)
def test_a_field_of_the_language_is_kept_as_it_is_written(kind, fields):
    state = kept(kind, **fields)
    written = {field: value for field, value in fields.items() if value is not ABSENT}
    assert {field: state[field] for field in written} == written


def test_words_of_before_become_the_words_of_now():
    processor = INNER | {"Comment": "c", "ProcessorConfig": {"Mode": "INLINE"}}
    state = kept("Map", Iterator=processor, Parameters={"a.$": "$"}, Comment="c")
    assert state == {
        "Type": "Map",
        "ItemProcessor": INNER,
        "ItemSelector": {"a.$": "$"},
        "End": True,
    }
    assert kept("Map", Iterator=ABSENT, ItemProcessor=processor)["ItemProcessor"] == INNER


def test_tasks_at_any_depth_are_listed_in_the_order_of_their_definition():
    def around(name: str, state: dict[str, Any]) -> dict[str, Any]:
        return {"StartAt": name, "States": {name: state}}

    deep = around("c", TASK | {"Resource": "h"})
    states = {
        "a": {"Type": "Task", "Resource": "f", "Next": "m"},
        "z": TASK | {"Resource": "g"},
        "m": {
            "Type": "Map",
            "ItemProcessor": around("p", OF_TYPE["Parallel"] | {"Branches": [deep]}),
        },
        "b": TASK,
    }
    states["m"] |= {"Next": "z", "Catch": [{"ErrorEquals": ["E"], "Next": "b"}]}
    workflow = parse_states({"StartAt": "a", "States": states}, "demo")
    assert workflow.tasks == (
        Task("a", "f", None),
        Task("z", "g", None),
        Task("c", "h", None),
        Task("b", "f", None),
    )


def test_a_machine_is_a_document_that_gives_itself():
    machine = parse_states(machine_of("Map", Parameters={"a": 1}), "demo").machine
    assert machine is not None
    assert parse_states(json.loads(json.dumps(machine)), "demo").machine == machine


REFUSED = [
    ("Task", {"QueryLanguage": "SQL"}, "bad-field", "QueryLanguage"),
    ("Map", {"Iterator": INNER | IN_JSONATA}, "unknown-field", "Iterator.QueryLanguage"),
    (
        "Parallel",
        {"Branches": [INNER | IN_JSONATA]},
        "unknown-field",
        "Branches[0].QueryLanguage",
    ),
    *[
        (kind, {field: {}}, "unsupported-field", field)
        for kind, field in [
            ("Task", "Arguments"),
            ("Pass", "Output"),
            ("Map", "Items"),
        ]
    ],
    *[
        ("Map", {"Iterator": INNER, field: value}, "bad-field", field)
        for field, value in [
            ("ItemBatcher", {"MaxItemsPerBatch": 2}),
            ("ItemReader", {"Resource": "f"}),
            ("ResultWriter", {"WriterConfig": {"OutputType": "JSON"}}),
        ]
    ],
    *[
        ("Map", {"Iterator": DISTRIBUTED, **fields}, code, path)
        for fields, code, path in [
            ({"ItemBatcher": {}}, "missing-field", "ItemBatcher"),
            ({"ItemBatcher": {"BatchInput": {}}}, "missing-field", "ItemBatcher"),
            (
                {"ItemBatcher": {"MaxItemsPerBatch": 0}},
                "bad-field",
                "ItemBatcher.MaxItemsPerBatch",
            ),
            ({"ToleratedFailurePercentage": 101}, "bad-field", "ToleratedFailurePercentage"),
            (
                {"ToleratedFailureCount": 1, "ToleratedFailureCountPath": "$.n"},
                "bad-field",
                "ToleratedFailureCountPath",
            ),
        ]
    ],
    (
        "Map",
        {"Iterator": INNER | {"ProcessorConfig": {"Mode": "EXPRESS"}}},
        "bad-field",
        "Iterator.ProcessorConfig.Mode",
    ),
    *[
        (kind, {field: "$"}, "unknown-field", field)
        for kind, field in [
            ("Choice", "ResultPath"),
            ("Choice", "Parameters"),
            ("Choice", "Next"),
            ("Choice", "End"),
            ("Choice", "Retry"),
            ("Wait", "ResultPath"),
            ("Wait", "Catch"),
            ("Pass", "ResultSelector"),
            ("Pass", "Retry"),
            ("Pass", "TimeoutSeconds"),
            ("Succeed", "Next"),
            ("Succeed", "ResultPath"),
            ("Fail", "InputPath"),
            ("Fail", "OutputPath"),
            ("Fail", "End"),
            ("Parallel", "TimeoutSeconds"),
            ("Parallel", "ItemsPath"),
            ("Map", "Resource"),
        ]
    ],
    *[
        ("Task", {field: value}, "bad-field", field)
        for field, value in [
            ("InputPath", "a"),
            ("InputPath", 1),
            ("InputPath", "States.UUID()"),
            ("OutputPath", "$.["),
            ("ResultPath", "$.a[*]"),
            ("ResultPath", "$$.a"),
            ("ResultPath", {}),
            ("Parameters", {"a.$": "a"}),
            ("ResultSelector", "$.a"),
            ("Parameters", {"b": [{"a.$": 1}]}),
            ("ResultSelector", {"a.$": "States.Nothing()"}),
            ("TimeoutSeconds", 0),
            ("TimeoutSeconds", True),
            ("TimeoutSeconds", 1.5),
            ("TimeoutSeconds", "1"),
            ("TimeoutSeconds", 100_000_000),
            ("TimeoutSecondsPath", "$.a[*]"),
            ("Retry", {}),
            ("Catch", "E"),
        ]
    ],
    *[
        ("Task", {"Retry": [RETRY | {field: value}]}, "bad-field", f"Retry[0].{field}")
        for field, value in [
            ("ErrorEquals", []),
            ("ErrorEquals", "E"),
            ("ErrorEquals", [1]),
            ("ErrorEquals", ["States.ALL", "E"]),
            ("IntervalSeconds", 0),
            ("IntervalSeconds", 1.5),
            ("MaxAttempts", -1),
            ("MaxAttempts", True),
            ("BackoffRate", 0.9),
            ("BackoffRate", float("inf")),
            ("BackoffRate", "2"),
            ("MaxDelaySeconds", 0),
            ("JitterStrategy", "full"),
        ]
    ],
    (
        "Task",
        {"Retry": [{"ErrorEquals": ["States.ALL"]}, RETRY]},
        "bad-field",
        "Retry[0].ErrorEquals",
    ),
    ("Task", {"Retry": [1]}, "bad-field", "Retry[0]"),
    ("Task", {"Retry": [{}]}, "missing-field", "Retry[0].ErrorEquals"),
    ("Task", {"Retry": [CATCH]}, "unknown-field", "Retry[0].Next"),
    ("Task", {"Catch": [RETRY]}, "missing-field", "Catch[0].Next"),
    ("Task", {"Catch": [{"Next": "T"}]}, "missing-field", "Catch[0].ErrorEquals"),
    ("Task", {"Catch": [CATCH | {"ResultPath": "$..a"}]}, "bad-field", "Catch[0].ResultPath"),
    ("Task", {"Catch": [CATCH | {"Assign": []}]}, "bad-field", "Catch[0].Assign"),
    (
        "Task",
        {"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "T"}, CATCH]},
        "bad-field",
        "Catch[0].ErrorEquals",
    ),
    (
        "Task",
        {"TimeoutSeconds": 1, "TimeoutSecondsPath": "$.a"},
        "bad-field",
        "TimeoutSecondsPath",
    ),
    ("Wait", {"Seconds": ABSENT}, "missing-field", ""),
    ("Wait", {"SecondsPath": "$.a"}, "bad-field", "SecondsPath"),
    ("Wait", {"Seconds": -1}, "bad-field", "Seconds"),
    ("Wait", {"Seconds": "$.a"}, "bad-field", "Seconds"),
    ("Wait", {"Seconds": ABSENT, "Timestamp": "2016-03-14"}, "bad-field", "Timestamp"),
    ("Wait", {"Seconds": ABSENT, "TimestampPath": "$.a[*]"}, "bad-field", "TimestampPath"),
    ("Map", {"Iterator": ABSENT}, "missing-field", ""),
    ("Map", {"Iterator": 1}, "bad-field", "Iterator"),
    ("Map", {"Iterator": {"StartAt": "X"}}, "missing-field", "Iterator.States"),
    ("Map", {"Iterator": INNER | {"Branches": []}}, "unknown-field", "Iterator.Branches"),
    ("Map", {"MaxConcurrency": -1}, "bad-field", "MaxConcurrency"),
    ("Map", {"MaxConcurrency": 1, "MaxConcurrencyPath": "$.n"}, "bad-field", "MaxConcurrencyPath"),
    ("Map", {"ItemSelector": {}, "Parameters": {}}, "bad-field", "Parameters"),
    ("Map", {"ItemsPath": "all"}, "bad-field", "ItemsPath"),
    ("Parallel", {"Branches": ABSENT}, "missing-field", "Branches"),
    ("Parallel", {"Branches": INNER}, "bad-field", "Branches"),
    ("Fail", {"Error": "E", "ErrorPath": "$.e"}, "bad-field", "ErrorPath"),
    ("Fail", {"Cause": "c", "CausePath": "$.c"}, "bad-field", "CausePath"),
    ("Fail", {"CausePath": "States.Nothing()"}, "bad-field", "CausePath"),
    ("Fail", {"Error": 1}, "bad-field", "Error"),
]


@each_row(("kind", "fields", "code", "path"), REFUSED)
def test_refused_with_the_path_of_its_field(refused, kind, fields, code, path):
    error = refused(parse_states, machine_of(kind, **fields), "demo")
    assert (error.code, error.path) == (code, f"States.S.{path}" if path else "States.S")


def test_a_task_in_jsonata_that_only_hands_data_on_is_part_of_a_static_graph():
    document = {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": TASK}}
    assert parse_states(document, "demo").machine is None


def test_a_field_that_is_misspelt_is_told_the_right_one(refused):
    assert (
        "did you mean InputPath?"
        in refused(parse_states, machine_of("Task", InputPaht="$"), "demo").message
    )


@each_row("field", ["Version", "TimeoutSeconds"])
def test_what_stands_beside_the_states_is_checked(refused, field):
    document = machine_of("Task") | {field: []}
    assert refused(parse_states, document, "demo").path == field


@each_row("field", ["ItemReader", "ResultWriter"])
def test_a_state_is_not_called_as_a_task_that_reads_or_writes_for_a_map(field: str) -> None:
    calls = {field: {"Resource": "f", "Parameters": {"Bucket": "b"}}}
    states = {
        "M": {"Type": "Map", **calls, "ItemProcessor": DISTRIBUTED, "Next": f"M.{field}"},
        f"M.{field}": {"Type": "Pass", "End": True},
    }
    with pytest.raises(ChironError) as refused:
        parse_states({"StartAt": "M", "States": states}, "demo")
    assert (refused.value.code, refused.value.path) == ("duplicate-state", "States.M")
