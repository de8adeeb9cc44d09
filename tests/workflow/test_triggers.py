"""Buckets start every task once all that it waits for is there, and groups are called once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.workflow.model import Task, Workflow
from chiron.wrap.core.triggers import Bucket, BySet, Group, buckets, groups

KINDS = ["stage", "data"]


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    """A DAG of up to eight tasks, each of which needs some of those before it."""
    tasks = list[Task]()
    for number in range(draw(st.integers(1, 8))):
        sources = draw(st.sets(st.sampled_from([t.name for t in tasks]))) if tasks else set()
        tasks.append(Task(f"t{number}", "f", tuple(draw(st.permutations(sorted(sources))))))
    return Workflow("demo", tuple(tasks), None)


def buckets_of(workflow: Workflow, kind: str) -> list[Bucket[str]]:
    needs = {task.name: task.predecessors for task in workflow.tasks}
    return buckets(needs, workflow.stages, kind)


@pytest.mark.parametrize("kind", KINDS)
@given(workflows())
def test_every_task_is_in_one_bucket_after_those_of_all_that_it_needs(kind, workflow):
    given_so_far = set[str]()
    for bucket in buckets_of(workflow, kind):
        assert given_so_far.issuperset(bucket.awaits)
        for task in bucket.starts:
            assert task not in given_so_far
            if kind == "data":
                assert set(bucket.awaits) == set(workflow.by_name[task].predecessors)
        given_so_far.update(bucket.starts)
    assert given_so_far == set(workflow.by_name)


@given(workflows())
def test_a_stage_awaits_all_of_the_one_before(workflow):
    made = buckets_of(workflow, "stage")
    assert [bucket.starts for bucket in made] == list(workflow.stages)
    assert [bucket.awaits for bucket in made] == [(), *workflow.stages[:-1]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_tasks_after_a_thousand_are_two_buckets(kind):
    first, second = range(1000), range(1000, 2000)
    needs = dict.fromkeys(first, ()) | dict.fromkeys(second, tuple(first))
    made = buckets(needs, [first, second], kind)
    assert [(len(b.awaits), len(b.starts)) for b in made] == [(0, 1000), (1000, 1000)]
    places = dict.fromkeys(first, 0) | dict.fromkeys(second, 1)
    assert set(groups(made, places).values()) == {Group(0, 0), Group(1, 1)}


@given(workflows(), st.sampled_from(KINDS), st.data())
def test_a_group_needs_from_outside_only_what_its_bucket_awaits(workflow, kind, data):
    """So a place that is called once, with those, can run all of the group by itself."""
    places = {task: data.draw(st.integers(0, 2)) for task in workflow.by_name}
    made = buckets_of(workflow, kind)
    found = groups(made, places)
    for bucket in made:
        for task in bucket.starts:
            group = found[task]
            assert group.place == places[task]
            within = all(found[other] == group for other in bucket.awaits)
            assert made[group.bucket] == bucket or within
    assert found.keys() == places.keys()


@given(workflows(), st.sampled_from(KINDS))
def test_in_one_place_there_is_a_group_for_each_bucket_that_none_fires_within(workflow, kind):
    """What joins several groups is called again, since none of them has all of it."""
    made = buckets_of(workflow, kind)
    found = groups(made, dict.fromkeys(workflow.by_name, "here"))
    for index, bucket in enumerate(made):
        before = {found[task] for task in bucket.awaits}
        expected = before.pop() if len(before) == 1 else Group(index, "here")
        assert {found[task] for task in bucket.starts} == {expected}


def test_tasks_that_have_no_place_run_elsewhere():
    chain = [Bucket((), ("a",)), Bucket(("a",), ("b",)), Bucket(("b",), ("c",))]
    assert groups(chain, {"b": 1, "c": 1}) == {"b": Group(1, 1), "c": Group(1, 1)}
    assert groups(chain, {"a": 1, "c": 1}) == {"a": Group(0, 1), "c": Group(2, 1)}


@given(st.sets(st.integers(0, 9), min_size=1), st.lists(st.none() | st.integers(0, 12)))
def test_a_set_fires_once_with_the_last_of_its_objects(awaits, objects):
    trigger, seen, fired = BySet(awaits), set(), 0
    for each in objects:
        complete_before = seen.issuperset(awaits)
        seen.add(each)
        fires = trigger.on_object(each)
        assert fires == (not complete_before and seen.issuperset(awaits))
        fired += fires
    assert fired <= 1
