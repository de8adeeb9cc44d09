"""A plan is sound in itself, and holds every task of its workflow in its stage exactly once."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from workflow.documents import dump, parse_json, validate
from workflow.folder import parse_workflow
from workflow.plan import Plan

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


PROCESSES = ["wraps", 0, "stages", 0, "processes"]


def test_a_sound_plan_is_read_and_written_the_same(plan):
    sound = validate(Plan, plan, "plan")
    sound.check_against(WORKFLOW)
    assert validate(Plan, parse_json(dump(sound), "plan"), "plan") == sound


def test_a_stage_lists_the_wraps_that_take_part_in_it(plan):
    plan["wraps"][0]["stages"].append({"stage": 1, "processes": [["d"]]})
    sound = validate(Plan, plan, "plan")
    assert [index for index, _ in sound.stage(0)] == [0]
    assert [index for index, _ in sound.stage(1)] == [0, 1]
    assert sound.stage(2) == []
    assert sound.wraps[0].tasks == ("a", "b", "d")


def test_a_plan_says_what_drives_it(plan):
    assert validate(Plan, plan, "plan").orchestrator == "wrap"
    assert validate(Plan, plan | {"orchestrator": "client"}, "plan").orchestrator == "client"


def test_a_main_process_may_be_empty_beside_others(plan):
    validate(Plan, changed(plan, PROCESSES, [[], ["a"], ["b"]]), "plan").check_against(WORKFLOW)


def test_an_slo_and_a_prediction_may_be_longer_than_an_hour(plan):
    hours = {"latency_ms": 2e7, "low_ms": 1e7, "high_ms": 3e7, "stages_ms": [1e7, 1e7]}
    validate(Plan, plan | {"slo_ms": 1e7, "predicted": hours}, "plan")


@pytest.mark.parametrize(
    ("path", "value", "where", "words"),
    [
        (PROCESSES, [], "wraps[0].stages[0].processes", "at least 1"),
        (PROCESSES, [[]], "wraps[0].stages[0]", "no task"),
        (PROCESSES, [["a"], []], "wraps[0].stages[0]", "no task"),
        (["wraps", 1, "name"], "demo-wrap1", None, "two wraps have one name"),
        (["wraps", 0, "name"], "Wrap", "wraps[0].name", ""),
        (["wraps", 0, "name"], "a" * 64, "wraps[0].name", ""),
        (["wraps", 0, "name"], "a\n", "wraps[0].name", ""),
        (["wraps", 0, "cpus"], 0, "wraps[0].cpus", ""),
        (["wraps", 0, "memory_mib"], 0, "wraps[0].memory_mib", ""),
        (["wraps", 0, "stages"], [], "wraps[0].stages", ""),
        (["wraps", 0, "stages", 0, "stage"], -1, "wraps[0].stages[0].stage", ""),
        (["wraps"], [], "wraps", ""),
        (["cpus"], 4, None, "sum of the wraps"),
        (["mechanism"], "", "mechanism", ""),
        (["planner"], "best\nof all", "planner", ""),
        (["orchestrator"], "nobody", "orchestrator", "wrap"),
        (["slo_ms"], -1, "slo_ms", ""),
        (["budget"], 1, "budget", ""),
    ],
)
def test_an_unsound_plan_is_refused_at_its_fault(refused, plan, path, value, where, words):
    error = refused(validate, Plan, changed(plan, path, value), "plan")
    assert (error.code, error.path) == ("bad-document", where)
    assert words in error.message


@pytest.mark.parametrize("numbers", [[0, 0], [1, 0]])
def test_the_stages_of_a_wrap_are_distinct_and_in_order(refused, plan, numbers):
    stages = [{"stage": n, "processes": [[t]]} for n, t in zip(numbers, "ab", strict=True)]
    error = refused(validate, Plan, changed(plan, ["wraps", 0, "stages"], stages), "plan")
    assert "stages of demo-wrap1" in error.message


@pytest.mark.parametrize(
    ("processes", "code", "path", "functions"),
    [
        ([["a"]], "missing-task", "wraps", ("b",)),
        ([["a"], ["b"], ["a"]], "repeated-task", "wraps[0].stages[0].processes[2]", ("a",)),
        ([["a", "a"], ["b"]], "repeated-task", "wraps[0].stages[0].processes[0]", ("a",)),
        ([["a"], ["b", "x"]], "unknown-task", "wraps[0].stages[0].processes[1]", ("x",)),
        ([["a", "c"], ["b"]], "wrong-stage", "wraps[0].stages[0].processes[0]", ("c",)),
    ],
)
def test_a_plan_that_does_not_fit_its_workflow_names_the_task(
    refused, plan, processes, code, path, functions
):
    unfit = validate(Plan, changed(plan, PROCESSES, processes), "plan")
    error = refused(unfit.check_against, WORKFLOW)
    assert (error.code, error.path, error.functions) == (code, path, functions)
