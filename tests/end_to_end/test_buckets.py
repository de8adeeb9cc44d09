"""A workflow of buckets is profiled, planned, deployed, and answers as the reference executor."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deployment.invoke import find_invoker
from generator.generate import Sources, generate
from openfaas.stack import read_stack
from scheduler.choices import Choices
from scheduler.schedule import schedule
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder
from workflow.plan import Plan

FUNCTIONS = {
    "filter": """
import json

def handle(req):
    return req if json.loads(req)["type"] == "view" else "null"
""",
    "campaign": """
import json

def handle(req):
    return json.dumps("campaign-%d" % (json.loads(req)["ad"] % 2))
""",
    "count": """
import json
from collections import Counter

def handle(req):
    return json.dumps(Counter(json.loads(req)), sort_keys=True)
""",
}
WORKFLOW = {
    "name": "ads",
    "entry": "events",
    "buckets": {
        "events": {"trigger": "immediate", "function": "filter"},
        "views": {"trigger": "immediate", "function": "campaign"},
        "clicks": {"trigger": "by-time", "window_ms": 60_000, "function": "count"},
    },
    "functions": {"filter": {"gives": "views"}, "campaign": {"gives": "clicks"}},
}
EVENTS = [{"type": "click" if ad == 3 else "view", "ad": ad} for ad in range(6)]


WRAP = {"ads-wrap1": [["filter", "campaign"], ["count"]]}


@pytest.fixture
def ads(write_folder: Callable[..., WorkflowFolder], tmp_path: Path) -> WorkflowFolder:
    return write_folder(tmp_path / "ads", WORKFLOW, FUNCTIONS, {})


def test_a_deployed_wrap_answers_as_the_reference_executor(place, ads, plan_by_hand):
    request = json.dumps(EVENTS).encode()
    expected = Sources.read(ads).reference(request, place.gateway.url)
    assert json.loads(expected.output) == {"count": [{"campaign-0": 3, "campaign-1": 2}]}
    assert sorted(expected.inputs) == sorted(
        [*(f"filter#{n}" for n in range(1, 7)), *(f"campaign#{n}" for n in range(1, 6)), "count#1"]
    )
    plan = plan_by_hand(WRAP, planner="pgp", workflow="ads")
    with place.deployed(ads, [plan]), find_invoker(place.gateway, "ads") as invoker:
        assert invoker.invoke(request).output == expected.output


def test_all_functions_are_planned_into_one_wrap_with_one_replica(
    ads, profile_of, platform, tmp_path
):
    plan = schedule(ads.workflow, profile_of(ads.workflow), platform, 1000.0)
    assert len(plan.wraps) == 1
    stack = read_stack(generate(plan, Sources.read(ads), tmp_path / "build"), {})
    assert stack.functions[plan.wraps[0].name].labels["com.openfaas.scale.max"] == "1"


def test_a_planner_that_takes_several_wraps_is_refused(ads, profile_of, platform):
    with pytest.raises(ChironError) as refused:
        schedule(
            ads.workflow,
            profile_of(ads.workflow),
            platform,
            1000.0,
            Choices(planner="one-to-one"),
        )
    assert refused.value.code == "several-wraps"


def test_a_plan_with_several_wraps_is_refused(ads, plan_by_hand, tmp_path):
    wraps = {"ads-wrap1": [["filter", "campaign"]], "ads-wrap2": [["count"]]}
    plan: Plan = plan_by_hand(wraps, planner="pgp", workflow="ads")
    with pytest.raises(ChironError) as refused:
        generate(plan, Sources.read(ads), tmp_path / "build")
    assert refused.value.code == "several-wraps"
