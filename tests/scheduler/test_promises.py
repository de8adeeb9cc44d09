"""What every plan promises: each task once, the SLO's verdict, no fixed planner that is better."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chiron.predictor.predict import predict
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.plan import Plan
from tests.examples import FEWER

periods = st.tuples(st.sampled_from(["cpu", "cpu", "block", "native"]), st.integers(0, 20))
texts = st.lists(periods, min_size=1, max_size=3).map(
    lambda listed: " ".join(f"{kind} {duration}" for kind, duration in listed)
)
profiles = st.fixed_dictionaries(dict.fromkeys("abcd", texts))
stages = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=3
)
constants = st.fixed_dictionaries(
    {
        "cpus": st.sampled_from([1, 2, 64]),
        "rpc_ms": st.sampled_from([0.0, 5.0, 20.0]),
        "process_startup_ms": st.sampled_from([0.0, 1.0, 4.0]),
        "process_block_ms": st.sampled_from([0.0, 0.5, 3.0]),
    }
)
mechanisms = st.sampled_from(["fork", "pool"])
slos = st.floats(0.5, 200.0)


def rank(plan: Plan) -> tuple[bool, int, float]:
    """Whether a plan misses its SLO, then CPUs, then latency: the smaller is the better one."""
    return not plan.meets_slo, plan.cpus, plan.predicted.latency_ms


@FEWER
@given(stages, profiles, constants, st.sampled_from(["fork", "pool", "auto"]), slos)
@pytest.mark.parametrize("strategy", ["cost", "balanced", "latency"])
def test_every_task_is_in_one_process_and_the_verdict_is_the_predictors(
    workflow, profile, platform, strategy, stages, profiles, constants, mechanism, slo_ms
):
    known, functions, place = workflow(*stages), profile(**profiles), platform(**constants)
    plan = schedule(
        known, functions, place, slo_ms, Choices(mechanism=mechanism, strategy=strategy)
    )
    plan.check_against(known)
    assert plan.predicted == predict(plan, known, functions, place)
    assert plan.meets_slo == (plan.predicted.latency_ms <= slo_ms)
    assert plan.slo_ms == slo_ms
    assert all(wrap.cpus <= place.cpus for wrap in plan.wraps)


@FEWER
@given(stages, profiles, constants, mechanisms)
@example(
    stages=["a", "a a a a a"],
    profiles=dict.fromkeys("abcd", "cpu 0"),
    constants={"cpus": 2, "rpc_ms": 0.0, "process_startup_ms": 0.0, "process_block_ms": 0.0},
    mechanism="pool",
)
def test_a_looser_slo_never_costs_more_cpus(
    workflow, profile, platform, stages, profiles, constants, mechanism
):
    known, functions, place = workflow(*stages), profile(**profiles), platform(**constants)
    fastest = schedule(
        known, functions, place, 0.01, Choices(mechanism=mechanism, strategy="latency")
    )
    slos = [0.01, *(max(0.02, fastest.predicted.latency_ms * by) for by in (1, 1.2, 1.5, 2, 3, 9))]
    cpus = [schedule(known, functions, place, s, Choices(mechanism=mechanism)).cpus for s in slos]
    assert cpus == sorted(cpus, reverse=True)


@FEWER
@given(stages, profiles, constants, mechanisms, slos)
def test_no_fixed_planner_is_better_in_slo_then_cpus_then_latency(
    workflow, profile, platform, stages, profiles, constants, mechanism, slo_ms
):
    known, functions, place = workflow(*stages), profile(**profiles), platform(**constants)
    ours = schedule(known, functions, place, slo_ms, Choices(mechanism=mechanism))
    for planner in ("faastlane-t", "faastlane", "faastlane+", "sand"):
        theirs = schedule(
            known, functions, place, slo_ms, Choices(planner=planner, mechanism=mechanism)
        )
        if ours.meets_slo:
            assert rank(ours) <= rank(theirs)
        else:
            assert ours.predicted.latency_ms <= theirs.predicted.latency_ms


@FEWER
@given(stages, profiles, constants, slos)
@example(
    stages=["a c", "a c c c", "c c c"],
    profiles={"a": "cpu 7 cpu 2", "b": "cpu 0", "c": "cpu 6 cpu 17 cpu 20", "d": "cpu 0"},
    constants={"cpus": 64, "rpc_ms": 0.0, "process_startup_ms": 0.0, "process_block_ms": 0.5},
    slo_ms=138.0,
)
def test_no_strategy_is_beaten_at_what_it_is_for(
    workflow, profile, platform, stages, profiles, constants, slo_ms
):
    known, functions, place = workflow(*stages), profile(**profiles), platform(**constants)
    plans = {
        strategy: schedule(known, functions, place, slo_ms, Choices(strategy=strategy))
        for strategy in ("cost", "balanced", "latency")
    }
    assert len({plan.meets_slo for plan in plans.values()}) == 1
    fastest = min(plan.predicted.latency_ms for plan in plans.values())
    assert plans["latency"].predicted.latency_ms == fastest
    if plans["cost"].meets_slo:
        assert plans["cost"].cpus == min(plan.cpus for plan in plans.values())
        held = {s: plan.cpus * plan.predicted.latency_ms for s, plan in plans.items()}
        assert held["balanced"] == min(held.values())


@FEWER
@given(stages, profiles, constants, slos)
def test_auto_is_as_good_as_the_better_mechanism(
    workflow, profile, platform, stages, profiles, constants, slo_ms
):
    known, functions, place = workflow(*stages), profile(**profiles), platform(**constants)
    plans = [
        schedule(known, functions, place, slo_ms, Choices(mechanism=mechanism))
        for mechanism in ("fork", "pool", "auto")
    ]
    met = [plan for plan in plans if plan.meets_slo]
    auto = plans[-1]
    assert auto.meets_slo == bool(met)
    if met:
        assert auto.cpus == min(plan.cpus for plan in met)
    else:
        assert auto.predicted.latency_ms == min(plan.predicted.latency_ms for plan in plans)


def test_a_loose_slo_needs_one_process(workflow, profile, platform):
    plan = schedule(workflow("a a a", "a"), profile(a="cpu 10"), platform(), 1000.0)
    assert plan.cpus == 1
    assert [wrap.name for wrap in plan.wraps] == ["demo-wrap1"]
    assert plan.wraps[0].processes == (("s0t0", "s0t1", "s0t2", "s1t0"),)


def test_one_stage_uses_the_slack_of_another(workflow, profile, platform):
    """Neither stage could have half of the SLO with one process; together they need one CPU."""
    functions = profile(long="cpu 30", brief="cpu 1")
    plan = schedule(workflow("long long", "brief"), functions, platform(), 63.0)
    assert plan.meets_slo and plan.cpus == 1


def test_all_workers_of_a_pool_are_in_one_wrap(workflow, profile, platform):
    place = platform(rpc_ms=5.0, process_block_ms=50.0)
    plan = schedule(
        workflow("a " * 8, "a a"), profile(a="cpu 10"), place, 22.0, Choices(mechanism="pool")
    )
    assert plan.meets_slo
    assert len(plan.wraps) == 1
    assert len(plan.wraps[0].processes) == 8


def test_forks_that_wait_for_one_another_go_to_further_wraps_as_far_as_the_slo_asks_for_it(
    workflow, profile, platform
):
    """Each further fork makes the others wait 40 ms; a remote call costs 5 ms and 0.2 a wrap."""
    known, functions = workflow("a a a a"), profile(a="cpu 100")
    place = platform(rpc_ms=5.0, process_block_ms=40.0, process_startup_ms=40.0, ipc_ms=0.0)
    wraps = {
        slo_ms: [wrap.cpus for wrap in schedule(known, functions, place, slo_ms).wraps]
        for slo_ms in (250.0, 230.0, 150.0, 110.0)
    }
    assert wraps[250.0] == [2]
    assert wraps[230.0] == [1, 1]
    assert wraps[150.0] == [2, 2]
    assert wraps[110.0] == [1, 1, 1, 1]


def test_a_wrap_has_no_more_processes_than_a_node_has_cpus(workflow, profile, platform):
    plan = schedule(workflow("a a a a"), profile(a="cpu 50"), platform(cpus=2), 70.0)
    assert plan.meets_slo
    assert [wrap.cpus for wrap in plan.wraps] == [2, 2]
