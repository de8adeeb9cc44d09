"""A plain DAG as a state machine, and the other way round: the same data, as early, or refused."""

from __future__ import annotations

import pytest

from chiron.workflow.asl import parse_states
from chiron.workflow.conversion import as_plain, as_states
from chiron.workflow.dag import parse_dag
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Workflow
from tests.rows import each_row


def dag(edges: str, tasks: str = "") -> Workflow:
    """A DAG of edges such as ``a-b``, and of tasks that no edge names."""
    pairs = [edge.split("-") for edge in edges.split()]
    ends = (name.partition("#")[0] for pair in pairs for name in pair)
    names = dict.fromkeys([*tasks.split(), *ends])
    return parse_dag({"tasks": {name: name for name in names}, "edges": pairs}, "demo")


@each_row(
    "workflow",
    [
        dag("", "a"),
        dag("a-b b-c"),
        dag("a-b a-c b-d c-d"),
        dag("", "a b"),
        dag("a-c b-c a-d b-d"),
        dag("a-b a-c b-d c-e"),
        dag("a-b a-c b-e c-d d-e e-f"),
    ],
)
def test_what_was_converted_and_back_is_the_same(workflow):
    again = parse_states(as_states(workflow), "demo")
    assert set(again.tasks) == set(workflow.tasks)
    assert again.output == workflow.output
    assert parse_dag(as_plain(again), "demo") == again


def test_what_is_emitted_stays_so_and_is_no_state_machine():
    workflow = dag("a#left-b a-b a-c b-d c-d")
    assert parse_dag(as_plain(workflow), "demo") == workflow
    with pytest.raises(ChironError) as refused:
        as_states(workflow)
    assert (refused.value.code, refused.value.functions) == ("unsupported-field", ("a",))


def test_what_answers_alone_goes_on_doing_so_and_is_no_state_machine():
    document = {"tasks": dict.fromkeys("abc", "f"), "edges": [["a", "b"], ["a", "c"]]}
    workflow = parse_dag(document | {"http": {"answer": "c"}}, "demo")
    assert parse_dag(as_plain(workflow), "demo") == workflow
    with pytest.raises(ChironError) as refused:
        as_states(workflow)
    assert (refused.value.code, refused.value.path) == ("unsupported-field", "http")


def test_a_stream_stays_one_and_is_no_state_machine():
    edges = [["a", "b", "stream"], ["a#left", "c", "stream"], ["a", "c"], ["b", "d"], ["c", "d"]]
    workflow = parse_dag({"tasks": dict.fromkeys("abcd", "f"), "edges": edges}, "demo")
    assert parse_dag(as_plain(workflow), "demo") == workflow
    with pytest.raises(ChironError) as refused:
        as_states(workflow)
    assert (refused.value.code, refused.value.functions) == ("unsupported-field", ("f",))


def test_a_join_has_its_list_in_its_own_order():
    document = as_states(dag("a-b a-c c-d b-d"))
    branches = document["States"]["Parallel 1"]["Branches"]
    assert [branch["StartAt"] for branch in branches] == ["c", "b"]


def test_branches_may_part_again():
    document = as_states(dag("a-b a-c a-e b-d c-d d-f e-f"))
    outer = document["States"]["Parallel 1"]
    inner = next(b for b in outer["Branches"] if b["StartAt"] != "e")
    first = inner["States"][inner["StartAt"]]
    assert [branch["StartAt"] for branch in first["Branches"]] == ["b", "c"]
    assert (first["Next"], outer["Next"]) == ("d", "f")


@each_row(
    ("workflow", "concerned"),
    [
        (dag("a-b a-c b-d c-d a-d"), {"a", "b", "c"}),
        (dag("a-c b-c b-d"), {"b", "c", "d"}),
        (dag("a-c b-c b-d c-d"), {"b"}),
        (dag("a-b a-c a-d b-e c-e c-f d-f"), {"b", "c", "d"}),
    ],
)
def test_a_dag_that_is_no_series_of_branches_is_refused(workflow, concerned, refused):
    error = refused(as_states, workflow)
    assert error.code == "not-series-parallel"
    assert concerned <= set(error.functions)
    assert all(repr(name) in error.message for name in concerned)


def test_a_machine_that_decides_is_no_plain_dag(refused):
    choice = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.x", "IsPresent": True, "Next": "A"}],
        "Default": "A",
    }
    states = {"Which": choice, "A": {"Type": "Task", "Resource": "f", "End": True}}
    error = refused(as_plain, parse_states({"StartAt": "Which", "States": states}, "demo"))
    assert (error.code, error.functions) == ("not-plain", ("Which",))
    assert "Choice 'Which'" in error.message


@each_row(
    "states",
    [{"P": [["x"]], "B": "g"}, {"P": [["x"]]}, {"A": "f", "F": {"Type": "Fail", "Error": "Odd"}}],
)
def test_what_a_plain_dag_cannot_say_is_refused(states, machine, refused):
    assert refused(as_plain, parse_states(machine(**states), "demo")).code == "not-plain"
