"""A plan is sound in itself, and holds every task of its workflow exactly once."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from chiron.workflow.documents import dump, parse_json, validate
from chiron.workflow.folder import parse_workflow
from chiron.workflow.plan import Plan

WORKFLOW = parse_workflow(
    {"tasks": {"a": "f", "b": "g", "c": "h"}, "edges": [["a", "c"], ["b", "c"]]}
)


def changed(plan: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    """`plan` with `value` at `path`."""
    result = deepcopy(plan)
    holder = result
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return result


PROCESSES = ["wraps", 0, "processes"]


def test_a_sound_plan_is_read_and_written_the_same(plan):
    sound = validate(Plan, plan, "plan")
    sound.check_against(WORKFLOW)
    assert validate(Plan, parse_json(dump(sound), "plan"), "plan") == sound


def test_the_tasks_of_a_wrap_are_those_of_its_processes(plan):
    processes = [["a", "e"], ["b"], ["d", "f"]]
    sound = validate(Plan, changed(plan, PROCESSES, processes), "plan")
    assert sound.wraps[0].tasks == ("a", "e", "b", "d", "f")


def test_a_plan_says_what_drives_it(plan):
    assert validate(Plan, plan, "plan").orchestrator == "wrap"
    assert validate(Plan, plan | {"orchestrator": "client"}, "plan").orchestrator == "client"


def test_a_plan_says_what_its_tasks_wait_for(plan):
    assert validate(Plan, plan, "plan").trigger == "data"
    assert validate(Plan, plan | {"trigger": "stage"}, "plan").trigger == "stage"


def test_the_mechanisms_of_a_plan_are_a_word(plan):
    assert validate(Plan, plan, "plan").mechanisms == "fork"
    mixed = changed(plan, ["wraps", 1, "mechanism"], "pool")
    assert validate(Plan, mixed, "plan").mechanisms == "fork+pool"


def test_a_main_process_may_be_empty_beside_others(plan):
    validate(Plan, changed(plan, PROCESSES, [[], ["a"], ["b"]]), "plan").check_against(WORKFLOW)


def test_an_slo_and_a_prediction_may_be_longer_than_an_hour(plan):
    hours = {"latency_ms": 2e7, "low_ms": 1e7, "high_ms": 3e7}
    validate(Plan, plan | {"slo_ms": 1e7, "predicted": hours}, "plan")


@pytest.mark.parametrize(
    ("path", "value", "where", "words"),
    [
        (["format"], 1, "format", "2"),
        (PROCESSES, [], "wraps[0].processes", "at least 1"),
        (PROCESSES, [[]], "wraps[0].processes", "no task"),
        (PROCESSES, [["a"], []], "wraps[0].processes", "no task"),
        (PROCESSES, [[], []], "wraps[0].processes", "no task"),
        (["wraps", 1, "name"], "demo-wrap1", None, "two wraps have one name"),
        (["wraps", 0, "name"], "Wrap", "wraps[0].name", ""),
        (["wraps", 0, "name"], "a" * 64, "wraps[0].name", ""),
        (["wraps", 0, "name"], "a\n", "wraps[0].name", ""),
        (["wraps", 0, "cpus"], 0, "wraps[0].cpus", ""),
        (["wraps", 0, "memory_mib"], 0, "wraps[0].memory_mib", ""),
        (["wraps", 0, "mechanism"], "", "wraps[0].mechanism", ""),
        (["wraps"], [], "wraps", ""),
        (["cpus"], 4, None, "sum of the wraps"),
        (["planner"], "best\nof all", "planner", ""),
        (["orchestrator"], "nobody", "orchestrator", "wrap"),
        (["trigger"], "time", "trigger", "stage"),
        (["slo_ms"], -1, "slo_ms", ""),
        (["budget"], 1, "budget", ""),
    ],
)
def test_an_unsound_plan_is_refused_at_its_fault(refused, plan, path, value, where, words):
    error = refused(validate, Plan, changed(plan, path, value), "plan")
    assert (error.code, error.path) == ("bad-document", where)
    assert words in error.message


@pytest.mark.parametrize(
    ("processes", "code", "path", "functions"),
    [
        ([["a"]], "missing-task", "wraps", ("b",)),
        ([["a"], ["b"], ["a"]], "repeated-task", "wraps[0].processes[2]", ("a",)),
        ([["a", "a"], ["b"]], "repeated-task", "wraps[0].processes[0]", ("a",)),
        ([["a"], ["b", "x"]], "unknown-task", "wraps[0].processes[1]", ("x",)),
        ([["a", "c"], ["b"]], "repeated-task", "wraps[1].processes[0]", ("c",)),
    ],
)
def test_a_plan_that_does_not_fit_its_workflow_names_the_task(
    refused, plan, processes, code, path, functions
):
    unfit = validate(Plan, changed(plan, PROCESSES, processes), "plan")
    error = refused(unfit.check_against, WORKFLOW)
    assert (error.code, error.path, error.functions) == (code, path, functions)
