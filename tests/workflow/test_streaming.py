"""Streams are live where tasks that run together never wait for each other's ends."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx
from hypothesis import event, given
from hypothesis import strategies as st

from chiron.workflow.dag import parse_dag
from chiron.workflow.model import Workflow, giver_of
from chiron.workflow.streaming import begins_with, live_streams


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    tasks = "abcdefg"[: draw(st.integers(2, 7))]
    edges = [
        [before, after, *kind]
        for place, after in enumerate(tasks)
        for before in tasks[:place]
        if (kind := draw(st.sampled_from([None, None, [], ["stream"], ["stream"]]))) is not None
    ]
    return parse_dag({"tasks": dict.fromkeys(tasks, "f"), "edges": edges}, "demo")


def ends(workflow: Workflow, live: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether all tasks end, where one ends no sooner than all have begun that run together.

    They may have to: each waits for its readers to take what it writes, and for its writers.
    """
    together = nx.Graph()
    together.add_nodes_from(workflow.by_name)
    together.add_edges_from(
        (giver_of(output), reader) for output, readers in live.items() for reader in readers
    )
    of = {task: group for group in nx.connected_components(together) for task in group}
    begins = begins_with(workflow, live)
    begun, ended = set[str](), set[str]()
    while True:
        beginning = {t for t in workflow.by_name if ended.issuperset(map(giver_of, begins[t]))}
        ending = {task for task in beginning if of[task] <= beginning}
        if (beginning, ending) == (begun, ended):
            return ended == workflow.by_name.keys()
        begun, ended = beginning, ending


@given(workflows())
def test_no_task_waits_for_ever(workflow):
    live = live_streams(workflow)
    assert ends(workflow, live)
    event(f"live: {sum(map(len, live.values()))}")


@given(workflows())
def test_all_streams_of_a_task_are_live_where_they_can_be(workflow):
    """Those of one more task would have tasks wait for ever."""
    live = live_streams(workflow)
    for task in workflow.tasks:
        outputs = [each.output for each in task.streams]
        its = [output for output in outputs if task.name in live.get(output, ())]
        assert its in ([], outputs)
        if outputs and not its:
            more = {each: (*live.get(each, ()), task.name) for each in outputs}
            assert not ends(workflow, live | more)


def test_a_task_begins_with_what_writes_for_it():
    edges = [["a", "b"], ["b", "c", "stream"], ["c", "d", "stream"], ["x", "d"], ["d", "e"]]
    workflow = parse_dag({"tasks": dict.fromkeys("abcdex", "f"), "edges": edges}, "demo")
    live = live_streams(workflow)
    assert live == {"b": ("c",), "c": ("d",)}
    begins = begins_with(workflow, live)
    assert begins == {"a": (), "x": (), "b": ("a",), "c": ("a",), "d": ("x", "a"), "e": ("d",)}
    assert begins_with(workflow, {})["d"] == ("x", "c")


def test_pairs_that_would_wait_for_each_other_do_not_all_run_together():
    edges = [["b", "c", "stream"], ["a", "c"], ["a", "d", "stream"], ["b", "d"]]
    workflow = parse_dag({"tasks": dict.fromkeys("abcd", "f"), "edges": edges}, "demo")
    assert live_streams(workflow) == {"b": ("c",)}
