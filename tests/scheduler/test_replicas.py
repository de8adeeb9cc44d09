"""The cheapest plan and its replicas that keep an SLO at a rate."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest

from chiron.scheduler.choices import Choices
from chiron.scheduler.diff import compare
from chiron.scheduler.load import cases_of, crowd_of, judged_ms, predict_load
from chiron.scheduler.pareto import pareto
from chiron.scheduler.replicas import assess_load, considered_load, schedule_load
from chiron.scheduler.schedule import job_of, schedule
from chiron.workflow.errors import ChironError
from chiron.workflow.load import Load
from chiron.workflow.model import Task, Workflow

FLOW = Workflow(
    "demo",
    (Task("a", "a", None), Task("b", "b", None), Task("c", "c", ("a", "b"))),
    "c",
)
WORK = {"a": "cpu 8 block 10", "b": "native 12", "c": "cpu 4"}
CHOICES = Choices(percentile=99)


def test_it_meets_the_slo_at_the_rate_with_no_replica_too_many(platform, profile):
    functions, place = profile(**WORK), platform()
    for per_s, slo_ms in product((5.0, 60.0, 150.0), (60.0, 120.0)):
        load = Load(per_s=per_s, requests=3000)
        plan = schedule_load(FLOW, functions, place, slo_ms, load, CHOICES)
        assert plan.meets_slo
        assert plan.under_load.at(99).ms <= slo_ms
        assert plan.under_load.replicas == {wrap.name: wrap.replicas for wrap in plan.wraps}
        for index, wrap in enumerate(plan.wraps):
            if wrap.replicas == 1:
                continue
            fewer = wrap.model_copy(update={"replicas": wrap.replicas - 1})
            wraps = (*plan.wraps[:index], fewer, *plan.wraps[index + 1 :])
            crowd = crowd_of(
                plan.model_copy(update={"wraps": wraps}), cases_of(FLOW, functions, place)
            )
            assert judged_ms(crowd, load, 99) > slo_ms


def test_the_mean_is_that_of_single_requests_at_hardly_any_rate_and_grows_with_it(
    platform, profile
):
    functions, place = profile(**WORK), platform()
    one = schedule(FLOW, functions, place, 60.0, CHOICES)

    def mean(per_s):
        load = Load(per_s=per_s, requests=1000)
        return predict_load(one, FLOW, functions, place, load, 99).mean

    assert mean(0.001).ms == pytest.approx(one.predicted.expected_ms, abs=0.01)
    found = [mean(per_s) for per_s in (1.0, 10.0, 20.0)]
    assert [each.ms for each in found] == sorted(each.ms for each in found)
    assert all(each.low_ms <= each.ms <= each.high_ms for each in found)
    assert mean(10_000.0) is None


def test_more_load_or_a_tighter_slo_costs_no_less(platform, profile):
    functions, place = profile(**WORK), platform()

    def cpus(per_s, slo_ms):
        load = Load(per_s=per_s, requests=3000)
        return schedule_load(FLOW, functions, place, slo_ms, load, CHOICES).allocated_cpus

    by_rate = [cpus(per_s, 80.0) for per_s in (1.0, 40.0, 80.0, 160.0)]
    assert by_rate == sorted(by_rate)
    assert by_rate[0] < by_rate[-1]
    by_slo = [cpus(80.0, slo_ms) for slo_ms in (300.0, 100.0, 50.0)]
    assert by_slo == sorted(by_slo)


def test_at_hardly_any_rate_it_is_the_plan_for_single_requests(platform, profile):
    functions, place = profile(**WORK), platform()
    one = schedule(FLOW, functions, place, 60.0, CHOICES)
    load = Load(per_s=0.001, requests=200)
    plan = schedule_load(FLOW, functions, place, 60.0, load, CHOICES)
    assert plan.wraps == one.wraps
    assert plan.under_load.at(99).ms == pytest.approx(one.predicted.judged_ms, abs=0.01)


def test_cores_that_all_share_can_be_too_few(platform, profile):
    place = platform(cpus=2, one_node=True)
    load = Load(per_s=500, requests=1000)
    plan = schedule_load(FLOW, profile(**WORK), place, 80.0, load, CHOICES)
    assert plan.meets_slo is False
    assert plan.under_load.within == ()
    assert plan.allocated_cpus <= 4
    assert "misses the SLO" in plan.why[0]


def test_the_reasons_and_a_diff_name_rate_and_replicas(platform, profile):
    functions, place = profile(**WORK), platform()
    one = schedule(FLOW, functions, place, 80.0, CHOICES)
    load = Load(per_s=300, requests=1000)
    plan = schedule_load(FLOW, functions, place, 80.0, load, CHOICES)
    assert "at 300/s" in plan.why[0]
    assert f"{plan.allocated_cpus} CPUs in all" in plan.why[1]
    lines = compare(one, plan)
    assert any(line.startswith("load: - -> 300/s, p50") for line in lines)
    assert any(line.startswith("replicas: 1 -> ") for line in lines)


@pytest.mark.parametrize(("per_s", "replicas"), [(99.5, 2), (199.0, 3)])
def test_wraps_that_hold_requests_up_alike_get_replicas_together(
    per_s, replicas, platform, profile
):
    """At nearly 100/s two wraps that compute 10 ms are full: one more of either is no use."""
    flow = Workflow("demo", (Task("a", "a", None), Task("b", "b", "a")), "b")
    choices = Choices(planner="one-to-one", percentile=99)
    load = Load(per_s=per_s, requests=2000)
    functions = profile(a="cpu 10", b="cpu 10")
    plan = schedule_load(flow, functions, platform(), 150.0, load, choices)
    assert plan.meets_slo
    assert [wrap.replicas for wrap in plan.wraps] == [replicas, replicas]


def test_another_strategy_than_cost_is_refused(platform, profile):
    choices = Choices(strategy="latency")
    with pytest.raises(ChironError, match="by cost"):
        schedule_load(FLOW, profile(**WORK), platform(), 80.0, Load(per_s=1), choices)


def test_no_plan_of_a_front_under_load_beats_another_and_the_scheduled_one_is_on_it(
    platform, profile
):
    functions, place = profile(**WORK), platform()
    load = Load(per_s=120, requests=2000)
    job = job_of(FLOW, functions, place, 80.0, CHOICES)
    found = considered_load(job, CHOICES, load, 80.0)
    front = pareto(found, job, 80.0, assessed=partial(assess_load, load=load))
    weights = [(each.latency_ms, each.cpus, each.memory_mib) for each in front.plans]
    for one in weights:
        assert not any(
            other != one and all(a <= b for a, b in zip(other, one, strict=True))
            for other in weights
        )
    plan = schedule_load(FLOW, functions, place, 80.0, load, CHOICES)
    assert any(ms <= 80.0 and cpus == plan.allocated_cpus for ms, cpus, _ in weights)
    for each in front.plans:
        assert each.plan.under_load.at(99).ms == each.latency_ms
        assert each.cpus == sum(wrap.cpus * wrap.replicas for wrap in each.plan.wraps)
    assert len({each.plan.wraps for each in front.plans}) > 1


def test_a_rate_that_no_plan_bears_has_no_front(platform, profile):
    place, load = platform(cpus=1, one_node=True), Load(per_s=5000, requests=500)
    job = job_of(FLOW, profile(**WORK), place, 80.0, CHOICES)
    assert considered_load(job, CHOICES, load, 80.0) == []


def test_the_search_under_load_ends_with_its_time(platform, profile):
    job = job_of(FLOW, profile(**WORK), platform(), 80.0, CHOICES)
    load = Load(per_s=5, requests=500)
    assert considered_load(job, CHOICES, load, 80.0, seconds=0.0) == []
