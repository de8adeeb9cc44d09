"""Plans at random are sound and repeatable; each becomes a row with its noise."""

from __future__ import annotations

import pytest

from evaluation.bench.leftovers import Leftovers
from evaluation.bench.setup import Place
from evaluation.prediction.batches import BATCH, measure_batch, missing_batches
from evaluation.prediction.measured import MeasuredRow, PredictedRow
from evaluation.prediction.random_plans import random_plans
from generator.measure import Measurement
from predictor.predict import predict
from profiler.drift import platform_at, profile_at
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


def test_a_row_is_predicted_for_the_speed_it_was_measured_at(profile_of, platform):
    workflow = parse_workflow(WIDE)
    profile = profile_of(workflow)
    functions = {
        name: function.model_copy(update={"reference_ms": 1.0})
        for name, function in profile.functions.items()
    }
    profile = profile.model_copy(update={"functions": functions})
    place = platform.model_copy(update={"reference_ms": 1.0})
    plan = plans(profile_of, count=1)[0]
    rows = [
        MeasuredRow(plan=plan, measured=Measurement.of([10.0]), loop_ms=loop_ms)
        for loop_ms in (1.0, 1.25)
    ]
    then, slower = (PredictedRow.of(row, workflow, profile, place).predicted for row in rows)
    assert then == predict(plan, workflow, profile, place)
    now = profile_at(profile, 1.25), platform_at(place, 1.25)
    assert slower == predict(plan, workflow, *now)
    assert slower.latency_ms > then.latency_ms


def test_batches_have_what_is_not_measured_yet(profile_of):
    drawn = plans(profile_of, count=2 * BATCH + 2)
    whole = list(missing_batches(drawn, []))
    assert [list(batch.values()) for batch in whole] == [
        drawn[:BATCH], drawn[BATCH : 2 * BATCH], drawn[2 * BATCH :]
    ]  # fmt: skip
    rest = list(missing_batches(drawn, [*drawn[:BATCH], drawn[BATCH + 1]]))
    assert [plan for batch in rest for plan in batch.values()] == [
        drawn[BATCH], *drawn[BATCH + 2 :]
    ]  # fmt: skip
    assert list(missing_batches(drawn, drawn)) == []


def test_plans_are_measured_and_one_of_a_batch_twice(
    launcher, write_folder, profile_of, platform, tmp_path
):
    folder = write_folder(tmp_path / "tiny", TINY, GREET, {})
    profile = profile_of(folder.workflow)
    drawn = list(random_plans(folder.workflow, profile, "pool", count=3, most_processes=2, seed=1))
    (batch,) = missing_batches(drawn, [])
    place = Place(launcher, platform, lambda line: None)
    leftovers = Leftovers(tmp_path / "deployed.json")
    rows = measure_batch(folder, place, batch, leftovers, samples=3)
    assert [row.plan for row in rows] == drawn
    assert all(row.measured.samples == 3 for row in rows)
    assert [row.again_ms is not None for row in rows] == [True, *[False] * (len(rows) - 1)]
    assert launcher.gateway.functions() == []
    assert not leftovers.file.exists()
