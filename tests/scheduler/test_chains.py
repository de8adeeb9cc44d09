"""Chains: tasks that may be at once have a process each, and others go on where they can."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from chiron.scheduler.room import chains
from chiron.workflow.dag import parse_dag
from chiron.workflow.model import Workflow


def free(tasks, others) -> bool:
    return True


def graph(edges: str) -> Workflow:
    """Edges of tasks with one letter: ``ab bc``."""
    pairs = [list(pair) for pair in edges.split()]
    return parse_dag({"tasks": dict.fromkeys("abcdefgh", "f"), "edges": pairs}, "letters")


def made(tasks, edges, size_of=lambda _: 0, get_on=free, task_of=str, most=8):
    return chains(tasks, graph(edges), size_of=size_of, task_of=task_of, get_on=get_on, most=most)


def test_a_task_goes_on_where_it_gets_most():
    sizes = {"b": 1, "c": 2}
    assert made("abcd", "ab ac bd cd", sizes.get) == (("a", "b"), ("c", "d"))
    sizes = {"b": 2, "c": 1}
    assert made("abcd", "ab ac bd cd", sizes.get) == (("a", "b", "d"), ("c",))


def test_a_task_that_needs_none_of_a_process_has_another():
    assert made("abc", "ab") == (("a", "b"), ("c",))


def test_what_takes_an_emitted_output_is_not_where_the_one_that_emits_goes_on():
    edges = [["a#x", "b"], ["b", "c"], ["a", "d"]]
    workflow = parse_dag({"tasks": dict.fromkeys("abcd", "f"), "edges": edges}, "emitting")
    found = chains("abcd", workflow, size_of=lambda _: 0, task_of=str, get_on=free, most=8)
    assert found == (("a", "d"), ("b", "c"))


def test_what_must_not_share_a_process_does_not():
    def get_on(tasks, others) -> bool:
        return not {"a", "b"} <= {*tasks, *others}

    assert made("abc", "ab bc", get_on=get_on) == (("a",), ("b", "c"))


def test_instances_of_one_task_share_processes_where_they_are_many():
    whole = dict(zip("abcdefgh", "ammmmmmz", strict=True))
    edges = " ".join([*(f"a{item}" for item in "bcdefg"), *(f"{item}h" for item in "bcdefg")])
    found = made("abcdefgh", edges, task_of=whole.get, most=3)
    assert found == (("a", "b", "e", "h"), ("c", "f"), ("d", "g"))


edges = st.lists(
    st.sampled_from(["".join(pair) for pair in combinations("abcdefgh", 2)]), unique=True
)


@given(edges)
def test_each_task_is_in_a_process_in_which_it_needs_all_before_it(edges):
    text = " ".join(edges)
    found, known = made("abcdefgh", text), graph(text)
    assert sorted(task for process in found for task in process) == list("abcdefgh")
    for process in found:
        assert all(a in known.ancestors[b] for a, b in combinations(process, 2))
