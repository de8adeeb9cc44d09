"""What a wrap declares: task numbers, where inputs come from, which wrap runs what."""

from __future__ import annotations

import pytest

from chiron.generator.declaration import declare, functions_in, numbered, task_numbers
from chiron.workflow.buckets import parse_buckets
from chiron.workflow.model import Failure, Task, Workflow

STYLES = {"split": "flask", "wave": "flask", "mirror": "http", "join": "flask"}
LAST = "Zusammen/fügen? {50 %}"
# Two wraps: the first is the entry.
WRAPS = {
    "small-a": [["Split it", "Wave", LAST]],
    "small-b": [["M2", "M1"], ["M3"]],
}
ONE_EACH = {
    "s1": [["Split it"]],
    "s2": [["Wave"]],
    "s3": [["M1"]],
    "s4": [["M2"]],
    "s5": [["M3"]],
    "s6": [[LAST]],
}


@pytest.fixture
def workflow(small):
    return small.workflow


@pytest.fixture
def numbers(workflow):
    return task_numbers(workflow)


def test_tasks_are_numbered_in_the_order_of_their_definition(workflow, numbers):
    assert list(numbers) == [task.name for task in workflow.tasks]
    assert list(numbers.values()) == [0, 1, 2, 3, 4, 5]
    assert list(numbers) == ["Split it", "Wave", "M1", "M2", "M3", LAST]


def test_a_source_is_the_request_a_task_or_a_list_of_tasks(numbers):
    assert numbered(None, numbers) is None
    assert numbered("M1", numbers) == 2
    assert numbered(("M3", "Wave"), numbers) == [4, 1]


def test_the_entry_knows_every_task_and_where_it_runs(workflow, plan_by_hand):
    declared = declare(plan_by_hand(WRAPS, trigger="stage"), 0, workflow, STYLES, 7.0)
    assert declared.processes == [[0, 1, 5]]
    assert declared.tasks == {0: "split", 1: "wave", 5: "join"}
    assert declared.functions == {"join": "flask", "split": "flask", "wave": "flask"}
    assert (declared.workflow, declared.name, declared.timeout_s) == ("small", "small-a", 7.0)
    entry = declared.entry
    assert declared.inputs == {0: None, 1: 0, 2: 1, 3: 0, 4: 3, 5: [2, 4]}
    assert declared.buckets == [([], [0]), ([0], [1, 3]), ([1, 3], [2, 4]), ([2, 4], [5])]
    assert entry.output == 5
    assert declared.remotes == {"small-b": {3: "mirror", 2: "mirror", 4: "mirror"}}
    assert (declared.answers, entry.styles) == (5, ["flask"])
    assert entry.fail is None


def test_with_the_trigger_data_tasks_wait_for_what_they_need_alone(workflow, plan_by_hand):
    declared = declare(plan_by_hand(WRAPS, trigger="data"), 0, workflow, STYLES, 7.0)
    assert declared.buckets == [([], [0]), ([0], [1, 3]), ([1], [2]), ([3], [4]), ([2, 4], [5])]
    remote = declare(plan_by_hand(WRAPS, trigger="data"), 1, workflow, STYLES, 7.0)
    assert remote.buckets == declared.buckets


def test_a_remote_wrap_knows_the_whole_workflow_and_runs_its_own_tasks(workflow, plan_by_hand):
    plan = plan_by_hand(WRAPS, mechanism="pool", trigger="stage")
    declared = declare(plan, 1, workflow, STYLES, 7.0)
    assert declared.entry is None
    assert declared.processes == [[3, 2], [4]]
    assert declared.inputs == {0: None, 1: 0, 2: 1, 3: 0, 4: 3, 5: [2, 4]}
    assert declared.buckets == [([], [0]), ([0], [1, 3]), ([1, 3], [2, 4]), ([2, 4], [5])]
    assert declared.remotes == {"small-a": {0: "split", 1: "wave", 5: "join"}}
    assert declared.tasks == {2: "mirror", 3: "mirror", 4: "mirror"}
    assert declared.functions == {"mirror": "http"}
    assert declared.mechanism == "pool"


def test_where_the_client_calls_all_wraps_each_is_the_entry_of_its_one_task(workflow, plan_by_hand):
    plan = plan_by_hand(ONE_EACH, planner="one-to-one", orchestrator="client")
    for index, number in enumerate([0, 1, 2, 3, 4, 5]):
        declared = declare(plan, index, workflow, STYLES, 7.0)
        assert declared.processes == [[number]]
        assert declared.inputs == {number: None}
        assert declared.buckets == [([], [number])]
        assert declared.entry.output == number
        assert declared.remotes == {}


def test_the_code_of_a_function_with_several_tasks_is_needed_once(workflow, plan_by_hand):
    wraps = plan_by_hand(WRAPS).wraps
    assert functions_in(wraps[1], workflow) == ["mirror"]


def test_a_function_keeps_its_own_timeout_in_the_wraps_that_have_it(workflow, plan_by_hand):
    limits = {"mirror": 0.5}
    first, second = (
        declare(plan_by_hand(WRAPS), index, workflow, STYLES, 7.0, limits) for index in (0, 1)
    )
    assert (first.timeouts_s, second.timeouts_s) == ({}, {"mirror": 0.5})


@pytest.mark.parametrize(("planner", "fails"), [("sand", True), ("one-to-one", False)])
def test_the_entry_fails_a_workflow_that_ends_in_fail(planner, fails, plan_of):
    workflow = Workflow("w", (Task("T", "wave", None),), "T", Failure("Bad", "because"))
    declared = declare(plan_of(workflow, planner), 0, workflow, STYLES, 7.0)
    # One-to-one, the task itself succeeds: the client knows that the workflow fails.
    assert declared.entry.fail == (("Bad", "because") if fails else None)


def test_a_firing_of_a_bucket_is_run_no_more_often_than_the_bucket_says(plan_by_hand):
    bucket = {"trigger": "immediate", "function": "wave", "attempts": 3}
    workflow = parse_buckets({"entry": "in", "buckets": {"in": bucket}}, "demo")
    plan = plan_by_hand({"demo": [[], ["wave"]]}, workflow="demo", attempts=2)
    declared = declare(plan, 0, workflow, STYLES, 7.0)
    # A wrap that ran a lost run again by itself would run each attempt of the bucket twice.
    assert (declared.attempts, declared.entry.buckets["buckets"]["in"]["attempts"]) == (1, 3)
