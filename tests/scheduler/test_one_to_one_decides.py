"""One-to-one plans of workflows that decide: every task a wrap, every instance a call."""

from __future__ import annotations

from typing import Any

import pytest

from chiron.predictor.predict import predict
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.asl import parse_states
from chiron.workflow.platform import Platform
from chiron.workflow.profile import PayloadProfile, Profile
from chiron.workflow.trace import Instance

#: What a payload has run: a, then b twice at once, and c never.
TRACE = (
    Instance(task="A"),
    Instance(task="B", after=(0,)),
    Instance(task="B", after=(0,)),
)


def task(function: str, **fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": function, **(fields or {"End": True})}


@pytest.fixture(scope="module")
def workflow():
    each = {"StartAt": "B", "States": {"B": task("b")}}
    states = {
        "A": task("a", Next="Some"),
        "Some": {
            "Type": "Choice",
            "Choices": [{"Variable": "$[0]", "IsPresent": True, "Next": "All"}],
            "Default": "C",
        },
        "All": {"Type": "Map", "ItemProcessor": each, "End": True},
        "C": task("c"),
    }
    return parse_states({"StartAt": "A", "States": states}, "some")


@pytest.fixture
def platform(platform) -> Platform:
    return platform()


@pytest.fixture
def profile(workflow, profile_of) -> Profile:
    return with_trace(profile_of(workflow), *TRACE)


def with_trace(profile: Profile, *trace: Instance) -> Profile:
    answer = ExpectedAnswer.learned(b"{}", ["1"])
    payload = PayloadProfile(name="payload.json", answer=answer, trace=trace)
    return profile.model_copy(update={"payloads": (payload,)})


def latency_ms(workflow, profile, platform) -> float:
    plan = schedule(workflow, profile, platform, 100.0, Choices(planner="one-to-one"))
    return predict(plan, workflow, profile, platform).latency_ms


def test_every_task_has_a_wrap_even_if_no_payload_runs_it(workflow, profile, platform):
    plan = schedule(workflow, profile, platform, 100.0, Choices(planner="one-to-one"))
    assert [wrap.tasks for wrap in plan.wraps] == [("A",), ("B",), ("C",)]
    assert [wrap.name for wrap in plan.wraps] == ["some-a", "some-b", "some-c"]
    assert (plan.orchestrator, plan.trigger) == ("client", "data")


def test_a_wrap_has_the_memory_for_the_payload_that_needs_most(
    workflow, profile_of, platform, of_payloads
):
    known = profile_of(workflow)
    many = (Instance(task="A"), *(Instance(task="B", after=(0,)) for _ in range(40)))
    mix = of_payloads(few=(9.0, known), many=(1.0, known))
    traces = (TRACE, many)
    payloads = tuple(
        each.model_copy(update={"trace": trace})
        for each, trace in zip(mix.payloads, traces, strict=True)
    )
    mixed = mix.model_copy(update={"payloads": payloads})
    plans = [
        schedule(workflow, each, platform, 100.0, Choices(planner="one-to-one"))
        for each in (with_trace(known, *many), mixed)
    ]
    assert (
        plans[0].wraps[1].memory_mib == plans[1].wraps[1].memory_mib > plans[1].wraps[0].memory_mib
    )


def test_instances_that_follow_each_other_are_calls_that_do(
    workflow, profile, profile_of, platform
):
    call_ms = max(platform.rpc_ms, platform.request_ms)
    again = with_trace(
        profile_of(workflow), Instance(task="A"), Instance(task="A", after=(0,), failed=True)
    )
    assert latency_ms(workflow, again, platform) >= 2 * (call_ms + 4.0)


def test_a_wait_is_no_call_of_an_entry_that_there_is_not(workflow, profile_of, platform):
    alone = with_trace(profile_of(workflow), Instance(task="B"))
    first = with_trace(profile_of(workflow), Instance(task="A"))
    assert latency_ms(workflow, alone, platform) == latency_ms(workflow, first, platform)
