"""Every planner is a plan of the same shape, with the sandboxes that define it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.scheduler.choices import Choices
from chiron.scheduler.planners import (
    PLANNERS,
    faastlane,
    faastlane_plus,
    faastlane_t,
    one_to_one,
    sand,
    task_names,
)
from chiron.scheduler.schedule import schedule
from chiron.workflow.names import NAME
from tests.examples import FEWER


@pytest.fixture
def demo(workflow):
    return workflow("a b a", "c")


def test_one_to_one_gives_every_task_a_wrap_named_after_its_function(demo):
    assert task_names(demo) == ["demo-a", "demo-b", "demo-a-2", "demo-c"]
    assert one_to_one(demo) == (
        ((("s0t0",),), (("s0t1",),), (("s0t2",),)),
        ((), (), (), (("s1t0",),)),
    )


def test_sand_forks_a_process_for_every_function_from_an_empty_main_process(demo):
    assert sand(demo) == ((((), ("s0t0",), ("s0t1",), ("s0t2",)),), (((), ("s1t0",)),))


def test_faastlane_runs_parallel_functions_as_processes_and_single_ones_as_threads(demo):
    assert faastlane(demo) == (((("s0t0",), ("s0t1",), ("s0t2",)),), ((("s1t0",),),))


def test_faastlane_t_runs_all_in_one_process(demo):
    assert faastlane_t(demo) == (((("s0t0", "s0t1", "s0t2"),),), ((("s1t0",),),))


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, [1]), (5, [5]), (6, [5, 1]), (10, [5, 5]), (12, [5, 5, 2])]
)
def test_faastlane_plus_runs_at_most_five_processes_in_a_sandbox(workflow, count, sizes):
    (stage,) = faastlane_plus(workflow("a " * count))
    assert [len(wrap) for wrap in stage] == sizes
    assert all(len(process) == 1 for wrap in stage for process in wrap)


@pytest.mark.parametrize(
    ("planner", "wraps", "cpus"),
    [
        ("one-to-one", 4, 4),
        ("sand", 1, 3),
        ("faastlane", 1, 3),
        ("faastlane-t", 1, 1),
        ("faastlane+", 1, 3),
        ("pgp", 1, 1),
    ],
)
def test_a_planner_takes_a_cpu_for_each_process_that_runs_functions_at_once(
    demo, profile, platform, planner, wraps, cpus
):
    functions = profile(a="cpu 1", b="cpu 1", c="cpu 1")
    plan = schedule(demo, functions, platform(), 1000.0, Choices(planner=planner))
    assert (len(plan.wraps), plan.cpus) == (wraps, cpus)


@pytest.mark.parametrize("planner", PLANNERS)
def test_tasks_wait_for_what_is_chosen_but_a_client_goes_stage_by_stage(
    demo, profile, platform, planner
):
    functions = profile(a="cpu 1", b="cpu 1", c="cpu 1")
    made = {
        trigger: schedule(
            demo, functions, platform(), 1000.0, Choices(planner=planner, trigger=trigger)
        )
        for trigger in ("stage", "data")
    }
    data = "stage" if planner == "one-to-one" else "data"
    assert {asked: plan.trigger for asked, plan in made.items()} == {"stage": "stage", "data": data}


names = st.from_regex(NAME.pattern, fullmatch=True)


@FEWER
@given(
    names,
    st.lists(st.lists(names, min_size=1, max_size=7), min_size=1, max_size=3),
    st.sampled_from(tuple(PLANNERS)),
    st.sampled_from(["fork", "pool"]),
)
def test_every_planner_plans_every_task_in_wraps_that_openfaas_can_name(
    workflow, profile, platform, name, stages, planner, mechanism
):
    known = workflow(*map(" ".join, stages), name=name)
    functions = profile(**dict.fromkeys(known.functions, "cpu 2 block 1"))
    plan = schedule(
        known, functions, platform(), 30.0, Choices(planner=planner, mechanism=mechanism)
    )
    plan.check_against(known)
    assert (plan.planner, plan.mechanisms) == (planner, mechanism)
    wraps = [wrap.name for wrap in plan.wraps]
    assert len(set(wraps)) == len(wraps)
    assert all(NAME.fullmatch(wrap) for wrap in wraps)


def test_one_long_function_used_many_times_gives_distinct_names(workflow):
    names = task_names(workflow(" ".join(["f" * 63] * 120), name="w" * 63))
    assert len(set(names)) == 120
    assert all(NAME.fullmatch(name) for name in names)


@pytest.fixture
def parallel(profile):
    """The profile of a function whose runs in one process never wait for each other."""
    found = profile(a="native 10")
    function = found.functions["a"].model_copy(update={"parallel": True, "runtime": "java"})
    return found.model_copy(update={"functions": {"a": function}})


@pytest.mark.parametrize(("node", "cpus"), [(64, 4), (3, 3)])
def test_one_process_of_parallel_threads_has_a_cpu_for_each(
    workflow, parallel, platform, node, cpus
):
    job = workflow("a a a a", "a"), parallel, platform(cpus=node), 100.0
    (wrap,) = schedule(*job, Choices(planner="faastlane-t")).wraps
    assert (wrap.cpus, len(wrap.processes)) == (cpus, 1)


@pytest.mark.parametrize(("slo_ms", "cpus"), [(100.0, 1), (25.0, 2), (18.0, 3), (12.0, 4)])
def test_parallel_threads_get_the_fewest_cpus_that_meet_the_slo(
    workflow, parallel, platform, slo_ms, cpus
):
    job = workflow("a a a a"), parallel, platform(), slo_ms
    (wrap,) = schedule(*job, Choices()).wraps
    assert (wrap.cpus, len(wrap.processes)) == (cpus, 1)


@pytest.mark.parametrize(("slo_ms", "cpus"), [(70.0, 1), (35.0, 2), (25.0, 3)])
def test_threads_without_a_gil_have_their_cpus_beside_a_wrap_with_one(
    workflow, profile, platform, slo_ms, cpus
):
    found = profile(a="native 20", b="cpu 10")
    facts = {"a": {"parallel": True, "runtime": "python3.14t"}, "b": {"runtime": "python3.14"}}
    functions = {n: each.model_copy(update=facts[n]) for n, each in found.functions.items()}
    known = found.model_copy(update={"functions": functions})
    job = workflow("a a a b"), known, platform(), slo_ms
    plan = schedule(*job, Choices(mechanism="auto"))
    assert [(wrap.cpus, len(wrap.processes)) for wrap in plan.wraps] == [(cpus, 1), (1, 1)]
    assert any("a needs python3.14t and b python3.14" in line for line in plan.why)
