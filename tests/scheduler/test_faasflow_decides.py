"""FaaSFlow's partition of workflows that decide: Map(v), Scale(v), and what is seldom taken."""

from __future__ import annotations

import pytest

from chiron.predictor.unrolling import run_of
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.scheduler.traffic import Step, Traffic
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.asl import parse_states
from chiron.workflow.plan import Plan
from chiron.workflow.profile import FunctionProfile, PayloadProfile, Period, Profile
from chiron.workflow.trace import Instance

EACH = {"StartAt": "Item", "States": {"Item": {"Type": "Task", "Resource": "item", "End": True}}}
WORKFLOW = parse_states(
    {
        "StartAt": "First",
        "States": {
            "First": {"Type": "Task", "Resource": "first", "Next": "Some"},
            "Some": {
                "Type": "Choice",
                "Choices": [{"Variable": "$[0]", "IsPresent": True, "Next": "Items"}],
                "Default": "Rare",
            },
            "Items": {"Type": "Map", "ItemProcessor": EACH, "Next": "Rest"},
            "Rest": {"Type": "Wait", "Seconds": 1, "Next": "Last"},
            "Last": {"Type": "Task", "Resource": "last", "End": True},
            "Rare": {"Type": "Task", "Resource": "rare", "End": True},
        },
    },
    "demo",
)


def some(items: int) -> tuple[Instance, ...]:
    """What is done for a request with so many items."""
    each = tuple(Instance(task="Item", after=(0,)) for _ in range(items))
    wait = Instance(wait_ms=1000.0, after=tuple(range(1, 1 + items)))
    return Instance(task="First"), *each, wait, Instance(task="Last", after=(1 + items,))


def known(*payloads: tuple[float, tuple[Instance, ...]], size_bytes: int = 1000) -> Profile:
    """Payloads by how often they come and what they do; a function takes 10 ms."""
    functions = {
        name: FunctionProfile(
            latency_ms=10.0,
            periods=(Period(kind="cpu", start_ms=0, duration_ms=10.0),),
            input_bytes=1,
            output_bytes=size_bytes,
        )
        for name in ("first", "item", "last")
    } | {"rare": FunctionProfile(latency_ms=0.0, periods=())}
    answer = ExpectedAnswer.learned(b"{}", ["1"])
    return Profile(
        format=1,
        workflow="demo",
        functions=functions,
        payloads=tuple(
            PayloadProfile(name=f"p{number}", weight=weight, answer=answer, trace=trace)
            for number, (weight, trace) in enumerate(payloads)
        ),
    )


@pytest.fixture
def planned(platform):
    def planned(profile: Profile, **constants: int) -> Plan:
        return schedule(
            WORKFLOW, profile, platform(**constants), 5000.0, Choices(planner="faasflow")
        )

    return planned


def test_items_are_in_as_many_processes_as_there_are_cores(planned):
    plan = planned(known((1, some(6))), cpus=4)
    (wrap,) = (wrap for wrap in plan.wraps if "Item" in wrap.tasks)
    assert [process.count("Item") for process in wrap.processes] == [1] * 4
    plan = planned(known((1, some(2))), cpus=4)
    (wrap,) = (wrap for wrap in plan.wraps if "Item" in wrap.tasks)
    assert sum("Item" in process for process in wrap.processes) == 2


def test_a_task_that_no_payload_reached_has_a_place_and_no_process_of_its_own(planned):
    plan = planned(known((1, some(3))), cpus=4)
    plan.check_against(WORKFLOW)
    assert [process for wrap in plan.wraps for process in wrap.processes if "Rare" in process]
    assert ("Rare",) not in [process for wrap in plan.wraps for process in wrap.processes]


def test_a_map_of_very_many_items_is_planned_as_one_of_few(planned):
    plan = planned(known((1, some(2000))), cpus=4)
    assert max(len(wrap.processes) for wrap in plan.wraps) == 4


def test_items_that_give_more_than_the_quota_stay_apart_from_what_takes_them(planned):
    """Each container leaves 32.8 MiB for objects."""
    (small,) = planned(known((1, some(4)), size_bytes=20 * 2**20)).wraps
    assert {"First", "Item", "Last"} <= set(small.tasks)
    large = planned(known((1, some(4)), size_bytes=60 * 2**20)).wraps
    assert not any({"Item", "Last"} <= set(wrap.tasks) for wrap in large)


def traffic(profile: Profile, platform) -> Traffic:
    runs = [run_of(WORKFLOW, share.profile) for share in profile.mix]
    return Traffic.of(runs, profile.mix, platform())


def test_instances_are_the_mean_of_all_requests_and_what_is_given_is_the_most(platform):
    found = traffic(known((3, some(2)), (1, some(10))), platform)
    assert found.instances == {"First": 1, "Item": 4, "Last": 1}
    assert found.given_bytes["Item"] == 10_000


def test_an_edge_weighs_what_99_percent_of_requests_stay_within(platform):
    short = (Instance(task="First"),)
    often = traffic(known((98, short), (2, some(1))), platform)
    seldom = traffic(known((995, short), (5, some(1))), platform)
    assert {edge: weight.ms for edge, weight in often.weights.items()} == {
        ("First", "Item"): 8.0,
        ("Item", "Last"): 8.0,
    }
    assert {weight.ms for weight in seldom.weights.values()} == {0.0}


def test_objects_go_past_a_wait_that_takes_its_time(platform):
    found = traffic(known((1, some(1))), platform)
    assert found.runs == (
        (
            Step("First", 10.0, ((0, 0.0),)),
            Step("Item", 10.0, ((1, 0.0),)),
            Step("Last", 10.0, ((2, 1000.0),)),
        ),
    )
    assert found.critical_path({"First": 0, "Item": 1, "Last": 1}) == (
        10.0 + 8.0 + 10.0 + 1000.0 + 10.0,
        [("First", "Item")],
    )


def test_the_critical_path_is_that_of_the_payload_that_takes_longest(platform):
    found = traffic(known((1, (Instance(task="First"),)), (1, some(2))), platform)
    apart = {"First": 0, "Item": 1, "Last": 2}
    assert found.critical_path(apart)[0] == 10.0 + 8.0 + 10.0 + 1000.0 + 8.0 + 10.0
    assert [weight.ms for weight in found.weights.values()] == [8.0, 8.0]
