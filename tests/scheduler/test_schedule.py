"""A schedule is a plan with its prediction and verdict; equal questions have equal answers."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest

from chiron.scheduler.choices import Choices
from chiron.scheduler.options import Options
from chiron.scheduler.schedule import assess, job_of, schedule
from chiron.workflow.dag import parse_dag
from chiron.workflow.documents import dump, parse_json, validate
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

WORKFLOW = {
    "StartAt": "P",
    "States": {
        "P": {
            "Type": "Parallel",
            "Next": "Z",
            "Branches": [
                {"StartAt": t, "States": {t: {"Type": "Task", "Resource": f, "End": True}}}
                for t, f in zip("ABCDEFG", "aabcdbe", strict=True)
            ],
        },
        "Z": {"Type": "Task", "Resource": "a", "End": True},
    },
}
FUNCTIONS = {
    "a": "cpu 9",
    "b": "block 12 cpu 3",
    "c": "cpu 4 native 5",
    "d": "cpu 2 block 8 cpu 2",
    "e": "cpu 9",
}
SCRIPT = """
import json, sys
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.documents import dump, validate
from chiron.workflow.folder import parse_workflow
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

def plan(job):
    return schedule(
        parse_workflow(job["workflow"]),
        validate(Profile, job["profile"], "profile"),
        validate(Platform, job["platform"], "platform"),
        job["slo_ms"],
        Choices(planner=job["planner"]),
    )

json.dump([dump(plan(job)) for job in json.load(sys.stdin)], sys.stdout)
"""


def reversed_keys(value: object) -> object:
    """The same JSON with the keys of all objects in the opposite order."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


def test_the_plan_is_the_same_for_any_hash_seed_and_order_of_keys(profile, platform):
    jobs, here, most = [], [], {("pgp", 0): 6, ("faasflow", 0): 7, ("faasflow", 1000): 7}
    place = platform(process_block_ms=4.0)
    for planner, sizes in most:
        known = profile(**FUNCTIONS)
        functions = {
            name: function.model_copy(update={"output_bytes": sizes})
            for name, function in known.functions.items()
        }
        known = known.model_copy(update={"functions": functions})
        here.append(
            schedule(parse_workflow(WORKFLOW), known, place, 22.0, Choices(planner=planner))
        )
        jobs.append(
            {
                "planner": planner,
                "workflow": WORKFLOW,
                "profile": json.loads(dump(known)),
                "platform": json.loads(dump(place)),
                "slo_ms": 22.0,
            }
        )
    there = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(reversed_keys(jobs)),
        env={**os.environ, "PYTHONHASHSEED": "4242"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert json.loads(there) == [dump(plan) for plan in here]
    for plan, bound in zip(here, most.values(), strict=True):
        assert 1 < plan.cpus <= bound, "a plan with something to decide"


def test_a_plan_goes_through_its_file_unchanged(profile, platform):
    known, functions = parse_workflow(WORKFLOW), profile(**FUNCTIONS)
    for slo_ms in (0.1, 22.0, 10_000_000.0):
        plan = schedule(known, functions, platform(), slo_ms)
        assert validate(Plan, parse_json(dump(plan), "plan"), "plan") == plan


@pytest.mark.parametrize("slo_ms", [0.0, -1.0, math.nan, math.inf])
def test_an_slo_that_is_no_time_is_refused(profile, platform, slo_ms):
    with pytest.raises(ChironError) as caught:
        schedule(parse_workflow(WORKFLOW), profile(**FUNCTIONS), platform(), slo_ms)
    assert caught.value.code == "bad-slo"


@pytest.mark.parametrize(("strategy", "one_node"), [("cost", False), ("balanced", True)])
def test_a_wide_stage_beyond_its_slo_is_not_searched_to_the_end(
    strategy, one_node, profile, platform, monkeypatch
):
    """With a candidate for each number of CPUs and wraps it took minutes to say that none will."""
    names = [f"f{number}" for number in range(80)]
    functions = profile(
        **{name: f"cpu {1 + n % 17} block {n % 23}" for n, name in enumerate(names)}
    )
    workflow = parse_workflow({"tasks": dict(zip(names, names, strict=True)), "edges": []})
    made, made_by = [], Options.made

    def counted(options, candidate, below_ms=math.inf):
        made.append(candidate)
        return made_by(options, candidate, below_ms)

    monkeypatch.setattr(Options, "made", counted)
    place = platform(cpus=2, one_node=one_node, process_compute_ms=2.0)

    plan = schedule(workflow, functions, place, 1.0, Choices(strategy=strategy))

    assert not plan.meets_slo
    assert 0 < len(made) < len(names)


@pytest.mark.parametrize("planner", ["pgp", "one-to-one", "sand"])
def test_functions_without_a_profile_are_named(profile, platform, planner):
    with pytest.raises(ChironError) as caught:
        schedule(
            parse_workflow(WORKFLOW),
            profile(a="cpu 1"),
            platform(),
            100.0,
            Choices(planner=planner),
        )
    assert caught.value.code == "unknown-function"
    assert caught.value.functions == ("b", "c", "d", "e")
    assert "with a payload for which each of them answers" in caught.value.message


@pytest.mark.parametrize("planner", ["pgp", "sand", "faastlane-t"])
def test_the_verdict_changes_at_the_predicted_latency(profile, platform, planner):
    known, functions, place = parse_workflow(WORKFLOW), profile(**FUNCTIONS), platform()
    plan = schedule(known, functions, place, 0.1, Choices(planner=planner))
    latency_ms = plan.predicted.latency_ms
    job = job_of(known, functions, place, latency_ms)
    assert not plan.meets_slo
    assert assess(plan, job, latency_ms).meets_slo
    assert not assess(plan, job, latency_ms - 0.001).meets_slo


def test_input_is_left_as_it_was(profile, platform):
    functions, place = profile(**FUNCTIONS), platform()
    before = dump(functions), dump(place)
    schedule(parse_workflow(WORKFLOW), functions, place, 20.0)
    assert (dump(functions), dump(place)) == before
    assert isinstance(functions, Profile) and isinstance(place, Platform)


def test_a_cheap_plan_is_found_whose_branches_overlap_although_its_stages_take_longer(
    profile, platform
):
    """b is short and c long, d the other way round: stages take 40 ms, these branches 30."""
    tasks = {"a": "brief", "b": "short", "c": "long", "d": "long", "e": "short", "f": "brief"}
    edges = [["a", "b"], ["b", "c"], ["a", "d"], ["d", "e"], ["a", "f"]]
    known = parse_dag({"tasks": tasks, "edges": edges}, "branches")
    functions = profile(brief="cpu 1", short="cpu 10", long="cpu 20")
    data, stage = (
        schedule(known, functions, platform(), 36.0, Choices(mechanism="pool", trigger=trigger))
        for trigger in ("data", "stage")
    )
    assert (data.meets_slo, data.cpus, stage.meets_slo) == (True, 2, False)
