"""A workflow is a DAG of tasks; its stages are the topological generations of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.workflow.model import Source, Task, Workflow


def workflow(**sources: Source) -> Workflow:
    """Tasks by name with their sources; every task is of the function named after it."""
    tasks = tuple(Task(name, name, source) for name, source in sources.items())
    return Workflow("demo", tasks, None)


def test_a_task_runs_in_the_stage_after_its_last_predecessor():
    found = workflow(a=None, b="a", c=("a", "b"), d=None)
    assert found.stages == (("a", "d"), ("b",), ("c",))
    assert [found.stage_of(task) for task in "abcd"] == [0, 1, 2, 0]


def test_a_source_names_its_tasks():
    tasks = workflow(a=None, b="a", c=("b", "a")).by_name
    assert tasks["a"].predecessors == ()
    assert tasks["b"].predecessors == ("a",)
    assert tasks["c"].predecessors == ("b", "a")


def test_a_task_needs_its_predecessors_and_all_that_they_need():
    found = workflow(a=None, b="a", c=None, d=("b", "c"), e="a").ancestors
    assert {task: "".join(sorted(needed)) for task, needed in found.items()} == {
        "a": "", "b": "a", "c": "", "d": "abc", "e": "a",
    }  # fmt: skip


def test_functions_are_listed_once_in_the_order_of_first_use():
    tasks = (Task("a", "g", None), Task("b", "f", None), Task("c", "g", None))
    used = Workflow("demo", tasks, None)
    assert used.functions == ("g", "f")
    assert used.function_of("c") == "g"


@pytest.mark.parametrize("sources", [{"a": "a"}, {"a": "c", "b": "a", "c": ("x", "b"), "x": None}])
def test_a_cycle_names_its_tasks_and_no_others(refused, sources):
    error = refused(workflow, **sources)
    assert error.code == "cycle"
    assert set(error.functions) == set(sources) - {"x"}
    for name in error.functions:
        assert name in error.message


@given(st.lists(st.sets(st.integers(0, 11), max_size=4), min_size=1, max_size=12))
def test_each_stage_is_one_more_than_the_deepest_predecessor(edges: list[set[int]]):
    before = {f"t{i}": tuple(f"t{j}" for j in sorted(js) if j < i) for i, js in enumerate(edges)}
    depth: dict[str, int] = {}
    for name, names in before.items():
        depth[name] = 1 + max((depth[n] for n in names), default=-1)
    stages = workflow(**{name: names or None for name, names in before.items()}).stages
    expected = [tuple(n for n in before if depth[n] == d) for d in range(max(depth.values()) + 1)]
    assert list(stages) == expected
