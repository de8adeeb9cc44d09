"""Plans at random are sound and repeatable; each becomes a row with its noise."""

from __future__ import annotations

import pytest

from evaluation.prediction.measured import BATCH, PredictedRow, measure_plans
from evaluation.prediction.random_plans import random_plans
from generator.measure import Measurement
from workflow.folder import parse_workflow
from workflow.plan import Prediction

WIDE = {"name": "wide", "tasks": {f"t{n}": f"f{n % 3}" for n in range(8)}, "edges": [["t0", "t7"]]}
TINY = {"name": "tiny", "tasks": {"a": "greet", "b": "greet"}, "edges": []}
GREET = {"greet": "def handle(req):\n    return req + '!'\n"}


def plans(profile_of, *, seed=1, count=30, most=3):
    workflow = parse_workflow(WIDE)
    return list(
        random_plans(
            workflow, profile_of(workflow), "fork", count=count, most_processes=most, seed=seed
        )
    )


def test_every_random_plan_has_every_task_once(profile_of):
    workflow = parse_workflow(WIDE)
    for plan in plans(profile_of):
        plan.check_against(workflow)


def test_no_wrap_runs_more_processes_than_allowed(profile_of):
    sizes = [
        len(stage.processes)
        for plan in plans(profile_of, most=2)
        for wrap in plan.wraps
        for stage in wrap.stages
    ]
    assert max(sizes) == 2


def test_a_seed_gives_its_plans_and_another_gives_others(profile_of):
    assert plans(profile_of) == plans(profile_of)
    assert plans(profile_of) != plans(profile_of, seed=2)


def test_plans_are_distinct_and_some_have_two_wraps(profile_of):
    drawn = plans(profile_of)
    shapes = {tuple(wrap.stages for wrap in plan.wraps) for plan in drawn}
    assert len(shapes) == len(drawn) == 30
    assert {len(plan.wraps) for plan in drawn} == {1, 2}


def test_a_workflow_of_few_plans_gives_them_all(profile_of):
    workflow = parse_workflow({"name": "one", "tasks": {"a": "f"}, "edges": []})
    drawn = random_plans(workflow, profile_of(workflow), "pool", count=10, most_processes=4, seed=1)
    assert len(list(drawn)) == 1


def test_error_noise_and_range_by_hand(profile_of):
    plan = plans(profile_of, count=1)[0]
    row = PredictedRow(
        plan=plan,
        predicted=Prediction(latency_ms=9.0, low_ms=8.0, high_ms=9.5, stages_ms=(9.0,)),
        measured=Measurement.of([10.0, 10.0, 10.0]),
        loop_ms=1.0,
        again_ms=11.0,
    )
    assert row.error == pytest.approx(-0.1)
    assert row.noise == pytest.approx(1 / 10.5)
    assert not row.inside


def test_plans_are_measured_and_one_of_a_batch_twice(
    launcher, write_folder, profile_of, platform, tmp_path
):
    folder = write_folder(tmp_path / "tiny", TINY, GREET, {})
    profile = profile_of(folder.workflow)
    drawn = list(random_plans(folder.workflow, profile, "pool", count=3, most_processes=2, seed=1))
    rows = list(
        measure_plans(
            folder, launcher, drawn, profile, platform, samples=3, progress=lambda line: None
        )
    )
    assert [row.plan for row in rows] == drawn
    assert all(row.measured.samples == 3 for row in rows)
    assert [row.again_ms is not None for row in rows] == [n % BATCH == 0 for n in range(len(rows))]
    assert launcher.gateway.functions() == []
