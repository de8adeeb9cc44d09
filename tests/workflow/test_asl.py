"""A state machine is understood as a DAG of tasks, or refused with the path of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from chiron.workflow.asl import parse_states
from chiron.workflow.model import Failure, Task
from tests.rows import each_row

TASK = {"Type": "Task", "Resource": "f", "End": True}


INVOKED = {"Parameters": {"FunctionName": "f"}}
NESTED = {
    "Type": "Parallel",
    "Branches": [{"StartAt": "A", "States": {"A": TASK}}],
    "End": True,
}


def parallel(*branches: Any) -> dict[str, Any]:
    return {
        "StartAt": "P",
        "States": {"P": {"Type": "Parallel", "Branches": list(branches), "End": True}},
    }


def single(**changes: Any) -> dict[str, Any]:
    """A machine of one Task A, whose fields are changed; None takes a field out."""
    state = {key: value for key, value in (TASK | changes).items() if value is not None}
    return {"StartAt": "A", "States": {"A": state}}


def test_a_chain_passes_each_output_on(machine):
    workflow = parse_states(machine(A="f", B="g"), "demo")
    assert workflow.tasks == (Task("A", "f", None), Task("B", "g", "A"))
    assert workflow.output == "B"
    assert workflow.stages == (("A",), ("B",))


def test_branches_run_in_one_stage_and_meet_in_a_list(machine):
    workflow = parse_states(machine(A="f", P=[["x"], ["y"]], B="g"), "demo")
    assert workflow.stages == (("A",), ("x", "y"), ("B",))
    assert workflow.by_name["x"].source == workflow.by_name["y"].source == "A"
    assert workflow.by_name["B"].source == ("x", "y")


def test_a_parallel_of_one_branch_gives_a_list(machine):
    workflow = parse_states(machine(P=[["x"]], B="g"), "demo")
    assert workflow.by_name["B"].source == ("x",)
    assert parse_states(machine(P=[["x"]]), "demo").output == ("x",)


def test_branches_of_several_tasks_advance_stage_by_stage(machine):
    workflow = parse_states(machine(P=[["x", "z"], ["y"]], B="g"), "demo")
    assert workflow.stages == (("x", "y"), ("z",), ("B",))
    assert workflow.by_name["B"].source == ("z", "y")


def test_a_parallel_after_a_parallel_gives_the_list_to_every_branch(machine):
    workflow = parse_states(machine(P=[["a"], ["b"]], Q=[["c"], ["d"]]), "demo")
    assert workflow.by_name["c"].source == workflow.by_name["d"].source == ("a", "b")
    assert workflow.output == ("c", "d")


def test_pass_and_succeed_hand_the_data_through(machine):
    workflow = parse_states(
        machine(S={"Type": "Pass"}, A="f", T={"Type": "Pass"}, B="g", Z={"Type": "Succeed"}),
        "demo",
    )
    assert workflow.tasks == (Task("A", "f", None), Task("B", "g", "A"))
    assert workflow.output == "B"
    assert workflow.failure is None


def test_a_fail_state_is_kept_with_its_error_and_cause(machine):
    failed = machine(A="f", Z={"Type": "Fail", "Error": "E", "Cause": "because"})
    assert parse_states(failed, "demo").failure == Failure("E", "because")
    assert parse_states(machine(A="f", Z={"Type": "Fail"}), "demo").failure == Failure("", "")


def test_a_function_may_serve_several_tasks_also_in_one_stage(machine):
    branches = [
        {"StartAt": name, "States": {name: {"Type": "Task", "Resource": "f", "End": True}}}
        for name in ("a", "b")
    ]
    workflow = parse_states(parallel(*branches), "demo")
    assert workflow.functions == ("f",)
    assert workflow.stages == (("a", "b"),)


@each_row(
    ("name", "expected"),
    [("Finra", "finra"), ("  My Work_flow ", "my-work-flow"), ("a", "a"), ("a" * 63, "a" * 63)],
)
def test_the_name_is_lower_case_with_hyphens_between_words(name, expected):
    assert parse_states(single() | {"Name": name}, "demo").name == expected


def test_the_default_name_stands_in_for_a_missing_one():
    assert parse_states(single(), "demo").name == "demo"


REFUSALS = [
    pytest.param(
        single(End=None, Next="B"), "unknown-next", "States.A.Next", ("B",), id="unknown Next"
    ),
    pytest.param(
        {"StartAt": "X", "States": {"A": TASK}}, "unknown-next", "StartAt", ("X",), id="StartAt"
    ),
    pytest.param({"StartAt": "X", "States": {}}, "unknown-next", "StartAt", ("X",), id="no states"),
    pytest.param(
        {
            "StartAt": "A",
            "States": {
                "A": {"Type": "Pass", "Next": "B"},
                "B": {"Type": "Pass", "Next": "C"},
                "C": {"Type": "Pass", "Next": "B"},
            },
        },
        "cycle",
        "States.C.Next",
        ("B", "C"),
        id="cycle",
    ),
    pytest.param(single(End=None, Next="A"), "cycle", "States.A.Next", ("A",), id="self-loop"),
    pytest.param(
        {"StartAt": "A", "States": {"A": TASK, "B": TASK}},
        "unreachable",
        "States.B",
        ("B",),
        id="unreachable",
    ),
    pytest.param(single(Type="task"), "unsupported-state", "States.A.Type", ("A",), id="case"),
    pytest.param(single() | {"Cause": "x"}, "unknown-field", "Cause", (), id="top"),
    pytest.param(single(Resource=None), "missing-field", "States.A.Resource", (), id="Resource"),
    pytest.param(single(Type=None), "missing-field", "States.A.Type", (), id="no Type"),
    pytest.param(single(End=None), "missing-field", "States.A", (), id="neither Next nor End"),
    pytest.param(single(End=False), "missing-field", "States.A", (), id="End is false"),
    pytest.param(single(End=1), "missing-field", "States.A", (), id="End is 1"),
    pytest.param({"States": {"A": TASK}}, "missing-field", "StartAt", (), id="no StartAt"),
    pytest.param(single(Next="B"), "bad-field", "States.A.End", (), id="Next and End"),
    pytest.param(
        single(Next=1, End=None), "bad-field", "States.A.Next", (), id="Next is no string"
    ),
    pytest.param(single(Type=[]), "bad-field", "States.A.Type", (), id="Type is no string"),
    pytest.param(single(Comment=1), "bad-field", "States.A.Comment", (), id="Comment"),
    pytest.param(single() | {"Name": 1}, "bad-field", "Name", (), id="Name is no string"),
    pytest.param({"StartAt": "A", "States": []}, "bad-field", "States", (), id="States is a list"),
    pytest.param(
        {"StartAt": "A", "States": {"A": 1}}, "bad-field", "States.A", (), id="state is 1"
    ),
    pytest.param(single(Resource="F"), "bad-name", "States.A.Resource", ("F",), id="function name"),
    pytest.param(single() | {"Name": "ä"}, "bad-name", "Name", (), id="workflow name"),
    pytest.param(
        {"StartAt": "A#B", "States": {"A#B": TASK}}, "bad-name", "States.A#B", (), id="task name"
    ),
    pytest.param(
        {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}},
        "no-tasks",
        "States",
        (),
        id="no Task",
    ),
    pytest.param(parallel(), "empty-parallel", "States.P.Branches", (), id="no branch"),
    pytest.param(parallel(single(), 1), "bad-field", "States.P.Branches[1]", (), id="branch is 1"),
    pytest.param(
        parallel(single(), single()),
        "duplicate-state",
        "States.P.Branches[1].States.A",
        ("A",),
        id="one name in two branches",
    ),
    pytest.param(
        parallel(single() | {"Name": "inner"}),
        "unknown-field",
        "States.P.Branches[0].Name",
        (),
        id="a branch has no Name",
    ),
    pytest.param(
        parallel(
            {
                "StartAt": "P",
                "States": {
                    "P": {"Type": "Pass", "Next": "A"},
                    "A": {"Type": "Task", "Resource": "f", "End": True},
                },
            }
        ),
        "duplicate-state",
        "States.P.Branches[0].States.P",
        ("P",),
        id="Pass of the name of the Parallel around it",
    ),
    pytest.param(
        single(End=False, Next="A"), "bad-field", "States.A.End", (), id="Next beside a false End"
    ),
]


@each_row(("document", "code", "path", "functions"), REFUSALS)
def test_refused_with_its_path_and_its_states(refused, document, code, path, functions):
    error = refused(parse_states, document, "demo")
    assert (error.code, error.path, error.functions) == (code, path, functions)
    assert error.status == 400


def test_all_faults_are_said_at_once_each_with_its_place(refused):
    states = {
        "A": {"Type": "Task", "Resource": "f", "Repeat": [], "Catch": 1, "Next": "B"},
        "B": {"Type": "Parallel", "Branches": [], "Comment": 1, "Next": "C#1"},
        "C#1": {"Type": "Task", "Resource": "F", "End": True},
    }
    error = refused(parse_states, {"StartAt": "A", "States": states}, "d")
    assert error.code == "unknown-field"
    for place in ("A.Repeat", "A.Catch", "B.Comment", "B.Branches", "C#1", "C#1.Resource"):
        assert f"(at States.{place})" in error.message


def test_names_that_normalise_alike_are_both_named(refused, machine):
    error = refused(parse_states, machine(**{"Last Px": "f", "last_px": "g"}), "demo")
    assert (error.code, error.functions) == ("alike-names", ("Last Px", "last_px"))


def test_a_cycle_is_shown_from_its_first_state_to_its_first_state(refused):
    states = {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "Next": "A"}}
    error = refused(parse_states, {"StartAt": "A", "States": states}, "demo")
    assert "A -> B -> A" in error.message


def test_what_is_supported_is_said_with_what_is_not(refused):
    error = refused(parse_states, single(Type="Loop"), "demo")
    for word in ("'Loop'", "Task", "Parallel", "Map", "Choice", "Wait", "Pass", "Succeed", "Fail"):
        assert word in error.message


PASS = {"StartAt": "B", "States": {"B": {"Type": "Pass", "End": True}}}
FAIL = {"StartAt": "B", "States": {"B": {"Type": "Fail"}}}
DECIDING = [
    pytest.param(single(Retry=[]), id="Retry"),
    pytest.param(single(ResultPath="$"), id="ResultPath"),
    pytest.param(single(Resource="arn:aws:states:::lambda:invoke", **INVOKED), id="invoke"),
    pytest.param(single() | {"TimeoutSeconds": 1}, id="TimeoutSeconds of all"),
    pytest.param(parallel(single(), PASS), id="branch without a Task"),
    pytest.param(parallel(single(), FAIL), id="Fail in a branch"),
    pytest.param(parallel(single(InputPath="$.a")), id="path in a branch"),
    pytest.param(parallel({"StartAt": "Q", "States": {"Q": NESTED}}), id="Parallel in a branch"),
]


@each_row("document", DECIDING)
def test_what_does_more_than_hand_data_on_is_a_machine(document):
    workflow = parse_states(document, "demo")
    assert workflow.machine is not None
    assert workflow.machine["StartAt"] == document["StartAt"]
    assert workflow.tasks == (Task("A", "f", None),)
    assert (workflow.output, workflow.failure) == (None, None)


@each_row(
    "said",
    [{"Comment": "c"}, {"Version": "1.0"}, {"QueryLanguage": "JSONPath"}, {"Name": "demo"}],
)
def test_what_says_nothing_to_a_machine_leaves_a_workflow_static(said):
    workflow = parse_states(single(QueryLanguage="JSONPath") | said, "demo")
    assert workflow == parse_states(single(), "demo")
    assert workflow.machine is None
