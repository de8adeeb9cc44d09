"""Plans for workflows that decide while they run, by what payloads have them do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chiron.predictor.explain import explanation
from chiron.predictor.predict import predict
from chiron.predictor.unrolling import run_of
from chiron.scheduler.choices import Choices
from chiron.scheduler.deciding import with_memory
from chiron.scheduler.folder_settings import FolderSettings
from chiron.scheduler.pareto import considered
from chiron.scheduler.schedule import job_of, schedule
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.asl import parse_states
from chiron.workflow.constraints import Constraints
from chiron.workflow.errors import ChironError
from chiron.workflow.execute import execute
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.profile import PayloadProfile, Period, Profile
from chiron.workflow.trace import Instance
from chiron.wrap.core.triggers import MOST_AT_ONCE


def task(function: str, **fields: Any) -> dict[str, Any]:
    ends: dict[str, Any] = {} if "Next" in fields else {"End": True}
    return {"Type": "Task", "Resource": function, **ends, **fields}


EACH = {"StartAt": "Each", "States": {"Each": task("work")}}
WORKFLOW = parse_states(
    {
        "StartAt": "Look",
        "States": {
            "Look": task("look", Next="Large"),
            "Large": {
                "Type": "Choice",
                "Choices": [{"Variable": "$[0]", "IsPresent": True, "Next": "Items"}],
                "Default": "Rest",
            },
            "Items": {"Type": "Map", "ItemProcessor": EACH, "Next": "Rest"},
            "Rest": {"Type": "Wait", "Seconds": 1, "Next": "Done"},
            "Done": {"Type": "Succeed"},
        },
    },
    "demo",
)


@pytest.fixture
def known(known_of):
    """Three requests with no items to one with eight."""
    return known_of(8)


@pytest.fixture
def known_of(profile):
    """Three requests with no items to one with so many."""
    functions = profile(look="cpu 1", work="cpu 2 block 20").functions
    functions["work"] = functions["work"].model_copy(update={"memory_mib": 10.0})

    def done(name: str, weight: float, items: int) -> PayloadProfile:
        request = json.dumps([1] * items).encode()
        trace = tuple(execute(WORKFLOW, request, lambda _, text: text).trace)
        answer = ExpectedAnswer.learned(request, ["[]"])
        own = {name: functions[name] for name in ("look", "work")[: 2 if items else 1]}
        return PayloadProfile(name=name, weight=weight, answer=answer, trace=trace, functions=own)

    def known(items: int) -> Profile:
        payloads = (done("none", 3.0, 0), done("some", 1.0, items))
        return Profile(format=1, workflow="demo", functions=functions, payloads=payloads)

    return known


def test_a_prediction_has_what_each_payload_takes_and_its_waits(known, platform):
    plan = schedule(WORKFLOW, known, platform(), 5000.0)
    none_ms, eight_ms = plan.predicted.payloads_ms.values()
    assert 1001 < none_ms < 1010
    assert 1023 < eight_ms < 1050
    assert plan.predicted.mean_ms == pytest.approx((3 * none_ms + eight_ms) / 4, abs=1e-3)
    assert plan.predicted.latency_ms == none_ms
    assert plan.predicted.within.ms == eight_ms


@pytest.mark.parametrize(("trace", "least_ms"), [((), 0), ((Instance(wait_ms=2000),), 2000)])
@pytest.mark.parametrize("planner", ["pgp", "sand", "faasflow", "one-to-one"])
def test_a_payload_may_have_no_task_run(planner, trace, least_ms, known, platform):
    none, some = known.payloads
    none = none.model_copy(update={"trace": trace, "functions": {}})
    other = known.model_copy(update={"payloads": (none, some)})
    plan = schedule(WORKFLOW, other, platform(), 5000.0, Choices(planner=planner))
    assert least_ms <= plan.predicted.payloads_ms["none"] < least_ms + 10
    assert {task for wrap in plan.wraps for task in wrap.tasks} == {"Look", "Each"}


def test_an_item_that_takes_longer_than_others_is_waited_for(known, platform):
    plan = schedule(WORKFLOW, known, platform(), 5000.0)
    some = known.payloads[1]
    longest = some.trace[-2]
    assert longest.task == "Each"
    trace = (*some.trace[:-2], longest.model_copy(update={"work": 3.0}), some.trace[-1])
    payloads = (known.payloads[0], some.model_copy(update={"trace": trace}))
    other = known.model_copy(update={"payloads": payloads})
    slower = predict(plan, WORKFLOW, other, platform())
    before, after = plan.predicted.payloads_ms, slower.payloads_ms
    assert after["none"] == before["none"]
    assert after["some"] == pytest.approx(before["some"] + 2 * 22.0, abs=5.0)


@pytest.mark.parametrize("percentile", [50.0, 75.0, 75.1, 95.0, 100.0])
def test_a_plan_is_judged_by_the_share_of_requests(percentile, known, platform):
    plan = schedule(WORKFLOW, known, platform(), 5000.0, Choices(percentile=percentile))
    none_ms, eight_ms = plan.predicted.payloads_ms.values()
    judged_ms = none_ms if percentile <= 75 else eight_ms
    assert plan.predicted.within.ms == judged_ms
    assert plan.why[0].startswith(f"predicted {judged_ms:.1f} ms")
    assert f"for {percentile:g} % of requests" in plan.why[0]


@pytest.mark.parametrize("slo_ms", [1024.5, 1030.0, 1050.0, 5000.0])
@pytest.mark.parametrize("percentile", [50.0, 95.0])
def test_the_plan_is_the_cheapest_of_those_that_are_looked_at(slo_ms, percentile, known, platform):
    choices = Choices(percentile=percentile, mechanism="pool")
    plan = schedule(WORKFLOW, known, platform(), slo_ms, choices)
    job = job_of(WORKFLOW, known, platform(), slo_ms, choices)
    options = considered(job, "pool")
    assert [predict(o.plan, WORKFLOW, known, job.platform).latency_ms for o in options]
    meeting = [option.plan.cpus for option in options if option.judged_ms <= slo_ms]
    assert plan.meets_slo == bool(meeting)
    if meeting:
        assert plan.cpus == min(meeting)


def test_a_branch_that_is_seldom_taken_costs_no_process(known, platform):
    relaxed = schedule(WORKFLOW, known, platform(), 1033.0, Choices(percentile=75))
    strict = schedule(WORKFLOW, known, platform(), 1033.0)
    assert (relaxed.meets_slo, relaxed.cpus) == (True, 1)
    assert strict.meets_slo
    assert strict.cpus > 1
    assert sum("Each" in p for wrap in strict.wraps for p in wrap.processes) > 1


def test_a_wrap_has_memory_for_every_payload(known, platform):
    for planner in ("pgp", "faastlane", "faastlane-t", "sand", "one-to-one"):
        plan = schedule(WORKFLOW, known, platform(), 5000.0, Choices(planner=planner))
        assert sum(wrap.demand.memory_mib for wrap in plan.wraps) == 80.0, planner


@pytest.mark.parametrize("planner", ["faastlane", "faastlane-t", "faastlane+", "sand"])
def test_a_layout_that_goes_by_the_workflow_has_every_task_once(planner, known, platform):
    plan = schedule(WORKFLOW, known, platform(), 5000.0, Choices(planner=planner))
    assert sorted(name for wrap in plan.wraps for name in wrap.tasks) == ["Each", "Look"]


def test_an_explanation_says_what_is_run_how_often(known, platform):
    plan = schedule(WORKFLOW, known, platform(), 5000.0)
    found, timelines = explanation(plan, WORKFLOW, known, platform())
    assert [(t.task, t.requests, t.runs, t.failed) for t in found.tasks] == [
        ("Look", 1.0, 1.0, 0.0),
        ("Each", 0.25, 2.0, 0.0),
    ]
    for each, timeline in zip(found.payloads, timelines, strict=True):
        assert each.latency_ms == found.prediction.payloads_ms[each.payload]
        assert timeline.latency_ms == pytest.approx(each.latency_ms, abs=1e-3)
        added_up_ms = each.request_ms + sum(step.latency_ms for step in each.steps)
        assert added_up_ms == pytest.approx(each.latency_ms, abs=0.01)


def test_what_a_profile_does_not_say_is_refused(known, platform):
    untold = tuple(each.model_copy(update={"trace": ()}) for each in known.payloads)
    with pytest.raises(ChironError, match="run chiron profile again"):
        schedule(WORKFLOW, known.model_copy(update={"payloads": untold}), platform(), 50.0)


def test_what_no_payload_has_run_shares_no_wrap_with_what_it_must_not(known, platform):
    apart = FolderSettings(Constraints(format=1, isolate={"work": "wrap"}))
    rare = known.model_copy(update={"payloads": known.payloads[:1]})
    plan = schedule(WORKFLOW, rare, platform(), 5000.0, settings=apart)
    assert sorted(wrap.tasks for wrap in plan.wraps) == [("Each",), ("Look",)]


def test_of_many_items_as_many_run_at_once_as_a_process_takes(known_of, platform):
    quick = platform(switch_cost_ms=0.0, thread_startup_ms=0.0)

    def taken_ms(items: int) -> float:
        known = known_of(items)
        work = known.functions["work"].model_copy(
            update={
                "latency_ms": 20.0,
                "periods": (Period(kind="block", start_ms=0.0, duration_ms=20.0),),
            }
        )
        some = known.payloads[1].model_copy(update={"functions": {**known.functions, "work": work}})
        known = known.model_copy(update={"payloads": (known.payloads[0], some)})
        plan = schedule(WORKFLOW, known, quick, 5000.0, Choices(planner="faastlane-t"))
        return plan.predicted.payloads_ms["some"]

    one_ms = taken_ms(1)
    assert taken_ms(MOST_AT_ONCE) == pytest.approx(one_ms, abs=1)
    assert taken_ms(MOST_AT_ONCE + 1) == pytest.approx(one_ms + 20, abs=1)
    assert taken_ms(3 * MOST_AT_ONCE) == pytest.approx(one_ms + 40, abs=1)


def test_an_entry_that_is_idle_for_some_requests_has_memory_for_the_others(known):
    names = {"Each": "first", "Look": "second"}
    wraps = tuple(
        Wrap(name=name, cpus=1, memory_mib=1, mechanism="fork", processes=((task,),))
        for task, name in names.items()
    )
    plan = Plan(format=2, workflow="demo", planner="mine", wraps=wraps, cpus=2)
    brief = known.payloads[0].model_copy(update={"trace": (Instance(task="Look"),)})
    each = (known.model_copy(update={"payloads": (one,)}) for one in (brief, known.payloads[1]))
    runs = [run_of(WORKFLOW, profile) for profile in each]
    sized = with_memory(plan, WORKFLOW, runs)
    assert all(wrap.memory_mib > 1 for wrap in sized.wraps)
