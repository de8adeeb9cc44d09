"""A plain DAG is understood as tasks with sources in edge order, or refused with its path."""

from __future__ import annotations

import re

import pytest

from chiron.workflow.dag import parse_dag
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Stream, Task
from tests.rows import each_row


def dag(tasks: str, *edges: str) -> dict[str, object]:
    """``dag("ab", "ab")``: tasks a and b of functions fa and fb, and the edge from a to b."""
    return {"tasks": {t: f"f{t}" for t in tasks}, "edges": [list(edge) for edge in edges]}


def test_a_task_with_one_edge_into_it_gets_that_output():
    workflow = parse_dag(dag("ab", "ab"), "demo")
    assert workflow.tasks == (Task("a", "fa", None), Task("b", "fb", "a"))
    assert (workflow.name, workflow.output) == ("demo", "b")


def test_a_task_with_several_edges_gets_the_list_in_edge_order():
    workflow = parse_dag(dag("abcd", "ab", "ac", "cd", "bd"), "demo")
    assert workflow.by_name["d"].source == ("c", "b")
    assert workflow.stages == (("a",), ("b", "c"), ("d",))


def test_the_answer_is_the_list_of_all_last_tasks_in_the_order_of_tasks():
    assert parse_dag(dag("cab", "ca", "cb"), "demo").output == ("a", "b")


def test_a_skipping_edge_does_not_change_the_stage():
    workflow = parse_dag(dag("abc", "ab", "bc", "ac"), "demo")
    assert workflow.stages == (("a",), ("b",), ("c",))
    assert workflow.by_name["c"].source == ("b", "a")


def test_an_edge_may_come_from_what_a_task_emits():
    edges = [["a#left", "b"], ["a", "c"], ["a#left", "c"], ["a#right", "c"]]
    workflow = parse_dag({"tasks": dict.fromkeys("abc", "f"), "edges": edges}, "demo")
    assert workflow.by_name["b"].source == "a#left"
    assert workflow.by_name["c"].source == ("a", "a#left", "a#right")
    assert workflow.by_name["c"].predecessors == ("a",)
    assert workflow.emitted == {"a": ("a#left", "a#right")}
    assert workflow.emits == {"f": ("left", "right")}
    assert workflow.output == ("b", "c")


def test_an_edge_may_be_a_stream_which_is_no_part_of_the_input():
    edges = [["a", "b", "stream"], ["a#left", "c", "stream"], ["b", "c"], ["b", "d", "stream"]]
    workflow = parse_dag({"tasks": dict.fromkeys("abcd", "f"), "edges": edges}, "demo")
    assert workflow.by_name["b"] == Task("b", "f", "", (Stream("a", "a"),))
    assert workflow.by_name["c"] == Task("c", "f", "b", (Stream("a#left", "a#left"),))
    assert workflow.by_name["c"].predecessors == ("b", "a")
    assert workflow.emitted == {"a": ("a#left",)}
    assert workflow.stages == (("a",), ("b",), ("c", "d"))
    assert workflow.output == ("c", "d")


def test_tasks_without_edges_are_one_stage():
    workflow = parse_dag({"tasks": {"a": "f", "b": "f"}}, "demo")
    assert workflow.stages == (("a", "b"),)
    assert workflow.output == ("a", "b")


def test_one_of_several_last_tasks_may_answer_alone():
    document = dag("abc", "ab", "ac") | {"http": {"answer": "c"}}
    assert (parse_dag(document, "demo").output, parse_dag(document, "demo").answers) == ("c", "c")
    assert parse_dag(dag("abc", "ab", "ac") | {"http": {}}, "demo").answers is None
    assert parse_dag(dag("ab", "ab"), "demo").answers == "b"


def test_its_own_name_wins_over_the_default():
    assert parse_dag({"name": "Mine", "comment": "x", "tasks": {"a": "f"}}, "d").name == "mine"


@each_row(("task", "what"), [("shuot", "did you mean shout?"), ("x", "known: shout, count")])
def test_of_an_unknown_task_it_says_what_was_meant(task, what):
    document = {"tasks": {"shout": "f", "count": "g"}, "edges": [[task, "count"]]}
    with pytest.raises(ChironError, match=re.escape(f"'{task}' is no task; {what}")):
        parse_dag(document, "demo")


def test_edges_of_a_faulty_task_are_no_faults():
    document = {"tasks": {"a": {"function": "f"}, "b": "g"}, "edges": [["a", "b"]]}
    with pytest.raises(
        ChironError, match=r"^the function of task 'a' has to be a string"
    ) as caught:
        parse_dag(document | {"http": {"answer": "b"}}, "demo")
    assert (caught.value.code, caught.value.path) == ("bad-field", "tasks.a")


@each_row(
    ("document", "code", "path", "functions"),
    [
        pytest.param(dag("abc", "ab", "bc", "cb"), "cycle", None, ("b", "c"), id="cycle"),
        pytest.param(dag("a", "aa"), "cycle", None, ("a",), id="self-loop"),
        pytest.param(dag("a", "ab"), "unknown-task", "edges[0]", ("b",), id="unknown task"),
        pytest.param(dag("ab", "ab", "ab"), "duplicate-edge", "edges[1]", ("a", "b"), id="twice"),
        pytest.param(
            dag("ab") | {"edges": [["c#left", "b"]]},
            *("unknown-task", "edges[0]", ("c",)),
            id="emitted by nothing",
        ),
        pytest.param(
            dag("ab") | {"edges": [["a", "b", "flow"]]},
            *("bad-field", "edges[0]", ()),
            id="neither an edge nor a stream",
        ),
        pytest.param(
            dag("ab") | {"edges": [["a", "b"], ["a", "b", "stream"]]},
            *("duplicate-edge", "edges[1]", ("a", "b")),
            id="once as a stream",
        ),
        pytest.param(
            dag("ab") | {"edges": [["a", "b#left"]]},
            *("unknown-task", "edges[0]", ("b#left",)),
            id="to an output",
        ),
        pytest.param(
            dag("ab") | {"edges": [["a#output", "b"]]},
            *("bad-name", "edges[0]", ()),
            id="the answer by another name",
        ),
        pytest.param({"tasks": {}}, "bad-field", "tasks", (), id="no tasks"),
        pytest.param({"tasks": ["a"]}, "bad-field", "tasks", (), id="tasks is a list"),
        pytest.param(dag("a") | {"edges": {}}, "bad-field", "edges", (), id="edges is an object"),
        pytest.param(dag("ab", "aba"), "bad-field", "edges[0]", (), id="edge of three"),
        pytest.param(dag("a") | {"edges": ["aa"]}, "bad-field", "edges[0]", (), id="string edge"),
        pytest.param(dag("a") | {"edges": [["a", 1]]}, "bad-field", "edges[0]", (), id="number"),
        pytest.param(dag("a") | {"http": []}, "bad-field", "http", (), id="http is a list"),
        pytest.param(
            dag("a") | {"http": {"answers": "a"}},
            *("bad-field", "http", ()),
            id="another field of http",
        ),
        pytest.param(
            dag("a") | {"http": {"answer": "b"}},
            *("unknown-task", "http.answer", ()),
            id="an answer of no task",
        ),
        pytest.param(
            dag("ab", "ab") | {"http": {"answer": "a"}},
            *("bad-field", "http.answer", ("a",)),
            id="an answer of a task that is not last",
        ),
        pytest.param(dag("a") | {"Edges": []}, "unknown-field", "Edges", (), id="unknown field"),
        pytest.param(dag("a") | {"name": 3}, "bad-field", "name", (), id="name is a number"),
        pytest.param(dag("a") | {"name": "ä"}, "bad-name", "name", (), id="workflow name"),
        pytest.param({"tasks": {"a": "F"}}, "bad-name", "tasks.a", ("F",), id="function name"),
        pytest.param({"tasks": {"a": None}}, "bad-field", "tasks.a", (), id="function is null"),
        pytest.param({"tasks": {"a#b": "f"}}, "bad-name", "tasks.a#b", (), id="task name"),
        pytest.param(
            {"tasks": {"a b": "f", "A_B": "g"}},
            "alike-names",
            "tasks",
            ("a b", "A_B"),
            id="alike names",
        ),
    ],
)
def test_refused_with_its_path_and_its_tasks(refused, document, code, path, functions):
    error = refused(parse_dag, document, "demo")
    assert (error.code, error.path, set(error.functions)) == (code, path, set(functions))
