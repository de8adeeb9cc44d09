"""Memory is for all that can be there at the same time, and for no more than all."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.scheduler.memory import FORKED_MEMORY_MIB, at_once_mib, running_mib, runtimes_mib
from chiron.workflow.model import NOTHING, Stream, Task, Workflow
from chiron.workflow.profile import FunctionProfile, Profile
from tests.examples import FEWER


def known(needs: dict[str, str], mib: dict[str, float]) -> tuple[Workflow, Profile]:
    """A workflow of tasks with so much memory, each of a function of its name."""
    tasks = tuple(Task(name, name, tuple(needs[name]) or None) for name in needs)
    functions = {
        name: FunctionProfile(latency_ms=0.0, periods=(), memory_mib=mib[name]) for name in needs
    }
    return Workflow("demo", tasks, None), Profile(format=1, workflow="demo", functions=functions)


@pytest.mark.parametrize(
    ("needs", "mib", "most"),
    [
        ({"a": "", "b": ""}, (30, 20), 50),  # threads of one stage
        ({"a": "", "b": "a", "c": "b"}, (30, 50, 20), 50),  # one after another
        ({"a": "", "b": "", "c": "a"}, (30, 20, 40), 60),  # c starts while b still runs
        ({"a": "", "b": "a", "c": "a", "d": "bc"}, (60, 20, 30, 55), 60),
        ({"a": "", "b": "a", "c": "a"}, (10, 20, 30), 50),
    ],
)
def test_a_process_takes_what_its_tasks_can_take_at_once(needs, mib, most):
    workflow, profile = known(needs, dict(zip(needs, mib, strict=True)))
    assert at_once_mib(tuple(needs), workflow, profile) == most


def test_a_task_elsewhere_keeps_those_before_and_after_it_apart():
    workflow, profile = known({"a": "", "b": "a", "c": "b"}, {"a": 30, "b": 10, "c": 20})
    assert at_once_mib(("a", "c"), workflow, profile) == 30


def test_what_takes_an_emitted_output_is_there_with_what_emits_it():
    workflow, profile = known({"a": "", "b": "a", "c": "b"}, {"a": 30, "b": 10, "c": 35})
    tasks = (Task("a", "a", None), Task("b", "b", "a#x"), Task("c", "c", "b"))
    emitting = Workflow("demo", tasks, None)
    assert at_once_mib(("a", "b", "c"), workflow, profile) == 35
    assert at_once_mib(("a", "b", "c"), emitting, profile) == 30 + 35


@pytest.mark.parametrize(("third", "most"), [("b", 60), ("c", 90)])
def test_a_task_is_there_with_what_it_reads_while_that_is_written(third, most):
    """The third begins with the end of the second, or with its begin."""
    tasks = (
        Task("a", "a", None),
        Task("b", "b", NOTHING, (Stream("a", "a"),)),
        Task("c", "c", NOTHING, (Stream("b", "b"),)) if third == "c" else Task("c", "c", "b"),
    )
    workflow = Workflow("demo", tasks, "c")
    _, profile = known(dict.fromkeys("abc", ""), dict.fromkeys("abc", 30.0))
    assert at_once_mib("abc", workflow, profile) == most


@FEWER
@given(st.lists(st.tuples(st.sets(st.integers(0, 6), max_size=3), st.integers(0, 9)), max_size=7))
def test_no_tasks_that_can_run_at_once_take_more(edges):
    names = "abcdefg"[: len(edges)]
    needs = {
        name: "".join(names[j] for j in sorted(before) if j < number)
        for number, (name, (before, _)) in enumerate(zip(names, edges, strict=True))
    }
    mib = {name: float(taken) for name, (_, taken) in zip(names, edges, strict=True)}
    workflow, profile = known(needs, mib)
    order = [task for stage in workflow.stages for task in stage]
    found = at_once_mib(order, workflow, profile)
    for size in range(len(names) + 1):
        for some in combinations(names, size):
            if not any(workflow.ancestors[task] & set(some) for task in some):
                assert sum(mib[task] for task in some) <= found
    assert found <= sum(mib.values())


def test_a_runtime_that_takes_more_than_its_function_took_leaves_that_none():
    """Both are measured: a JVM's heap may have shrunk meanwhile."""
    workflow, profile = known({"a": ""}, {"a": 30})
    its = {"a": profile.functions["a"].model_copy(update={"runtime_mib": 31.0})}
    assert at_once_mib(("a",), workflow, profile.model_copy(update={"functions": its})) == 0


def test_what_functions_run_in_counts_once_a_process():
    names = ["python", "node", "second-node", "java", "second-java"]
    takes = {"python": ("python3.11", 0.0), "node": ("node", 45.0), "java": ("java", 60.0)}
    workflow, profile = known(dict.fromkeys(names, ""), dict.fromkeys(names, 0.0))
    functions = {}
    for name in names:
        runtime, mib = takes[name.removeprefix("second-")]
        functions[name] = FunctionProfile(
            latency_ms=0.0,
            periods=(),
            memory_mib=5 + mib,
            runtime=runtime,
            runtime_mib=mib,
        )
    profile = profile.model_copy(update={"functions": functions})

    assert runtimes_mib(names, workflow, profile) == 45 + 60
    assert running_mib([names], workflow, profile) == 5 * 5
    assert running_mib([["python"], names[1:]], workflow, profile) == 5 * 5 + 45 + 60


#: What functions take by themselves, in a forked process, and where they require the same.
TAKES = {
    "small": (1.0, 3.5, ()),
    "imports": (1.0, 45.0, ("boto3",)),
    "imports-too": (2.0, 36.0, ("boto3",)),
    "other": (5.0, 19.0, ("pillow",)),
    "unknown": (7.0, None, ()),
}


@pytest.mark.parametrize(
    ("processes", "most"),
    [
        ([["imports"]], 1),  # it is warm where it is not forked
        ([[], ["small"]], 1),
        ([[], ["unknown"]], 7),
        ([[], ["imports"]], 45 - FORKED_MEMORY_MIB),
        ([["imports"], ["other"]], 1 + 19 - FORKED_MEMORY_MIB),
        ([[], ["imports", "imports-too"]], 3 + 40),
        ([[], ["imports"], ["imports-too"]], 1 + 40 + 2 + 30),
        ([[], ["imports", "other", "small"]], 7 + 40 + 10),
    ],
)
def test_each_further_process_takes_what_its_functions_import_and_write_to(processes, most):
    names = [task for process in processes for task in process]
    workflow, profile = known(dict.fromkeys(names, ""), dict.fromkeys(names, 0.0))
    functions = {
        name: FunctionProfile(
            latency_ms=0.0, periods=(), memory_mib=mib, forked_mib=forked, requirements=required
        )
        for name, (mib, forked, required) in TAKES.items()
    }
    profile = profile.model_copy(update={"functions": functions})
    assert running_mib(processes, workflow, profile) == most
