"""Plans at random are sound and repeatable; each becomes a row with its noise."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from evaluation.bench.leftovers import Leftovers
from evaluation.bench.setup import Place
from evaluation.prediction.batches import BATCH, measure_batch, missing_batches
from evaluation.prediction.measured import AloneRun, MeasuredRow, PacedRequest, PredictedRow, steady
from evaluation.prediction.random_plans import random_plans
from evaluation.prediction.waiting import mostly_waiting
from generator.launcher import Launcher
from predictor.predict import predict
from profiler.drift import platform_slower, profile_at
from workflow.errors import ChironError
from workflow.folder import parse_workflow
from workflow.plan import Prediction
from workflow.profile import Period

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


def test_some_plans_have_more_processes_than_cpus(profile_of):
    wraps = [wrap for plan in plans(profile_of) for wrap in plan.wraps]
    most = [max(len(stage.processes) for stage in wrap.stages) for wrap in wraps]
    cpus = [wrap.cpus for wrap in wraps]
    assert any(each == 1 < processes for each, processes in zip(cpus, most, strict=True))
    assert any(each == processes > 1 for each, processes in zip(cpus, most, strict=True))


def test_a_workflow_of_few_plans_gives_them_all(profile_of):
    workflow = parse_workflow({"name": "one", "tasks": {"a": "f"}, "edges": []})
    drawn = random_plans(workflow, profile_of(workflow), "pool", count=10, most_processes=4, seed=1)
    assert len(list(drawn)) == 1


def requested(latency_ms, *, loop_ms=1.0, uneven=0.0):
    return PacedRequest(latency_ms=latency_ms, loop_ms=loop_ms, uneven=uneven)


@pytest.fixture
def paced_profile(profile_of):
    """The profile of `WIDE`, taken where the reference loop takes 1 ms."""
    profile = profile_of(parse_workflow(WIDE))
    functions = {
        name: function.model_copy(update={"reference_ms": 1.0})
        for name, function in profile.functions.items()
    }
    return profile.model_copy(update={"functions": functions})


def test_error_noise_and_range_by_hand(profile_of):
    plan = plans(profile_of, count=1)[0]
    row = PredictedRow(
        plan=plan,
        predicted=Prediction(latency_ms=9.0, low_ms=8.0, high_ms=9.5, stages_ms=(9.0,)),
        requests=(requested(10.0),),
        measured_ms=10.0,
        again_ms=11.0,
    )
    assert row.error == pytest.approx(-0.1)
    assert row.noise == pytest.approx(1 / 10.5)
    assert not row.inside


def test_a_row_is_predicted_for_the_speed_it_was_measured_at(profile_of, paced_profile, platform):
    workflow = parse_workflow(WIDE)
    plan = plans(profile_of, count=1)[0]
    rows = [
        MeasuredRow(plan=plan, requests=(requested(10.0, loop_ms=loop_ms),))
        for loop_ms in (1.0, 1.25)
    ]
    then, slower = (
        PredictedRow.of(row, workflow, paced_profile, platform).predicted for row in rows
    )
    assert then == predict(plan, workflow, paced_profile, platform)
    assert slower == predict(plan, workflow, profile_at(paced_profile, 1.25), platform)
    assert slower.latency_ms > then.latency_ms


def test_functions_wait_as_long_as_they_did_beside_the_plan(profile_of, platform):
    workflow = parse_workflow(WIDE)
    plan, profile = plans(profile_of, count=1)[0], profile_of(workflow)
    name, function = next(iter(profile.functions.items()))
    waiting = function.model_copy(
        update={"periods": (Period(start_ms=0.0, duration_ms=20.0, kind="block"),),
                "latency_ms": 20.0, "reference_ms": 1.0}
    )  # fmt: skip
    profile = profile.model_copy(update={"functions": {**profile.functions, name: waiting}})
    row = MeasuredRow(
        plan=plan,
        requests=(requested(10.0),),
        alone={name: AloneRun(latency_ms=25.0, loop_ms=2.0)},
    )
    assert row.profile(profile).functions[name].latency_ms == pytest.approx(25.0)
    longer, usual = (
        PredictedRow.of(each, workflow, profile, platform).predicted.latency_ms
        for each in (row, row.model_copy(update={"alone": {}}))
    )
    assert longer > usual


def test_functions_are_named_that_wait_for_most_of_their_time(profile_of):
    profile = profile_of(parse_workflow(WIDE))
    waits = Period(start_ms=0.0, duration_ms=6.0, kind="block")
    computes = Period(start_ms=6.0, duration_ms=4.0, kind="cpu")
    (name, *others), some = profile.functions, next(iter(profile.functions.values()))
    mixed = some.model_copy(update={"periods": (waits, computes), "latency_ms": 10.0})
    busy = some.model_copy(update={"periods": (computes,), "latency_ms": 4.0})
    functions = {name: mixed, **dict.fromkeys(others, busy)}
    assert mostly_waiting(profile.model_copy(update={"functions": functions})) == (name,)


def test_constants_are_those_of_when_requests_cost_so_much(profile_of, platform):
    workflow = parse_workflow(WIDE)
    plan, profile = plans(profile_of, count=1)[0], profile_of(workflow)
    usual_ms = platform.request_ms + platform.thread_startup_ms + platform.switch_cost_ms
    row = MeasuredRow(plan=plan, requests=(requested(10.0),), overhead_ms=2 * usual_ms)
    found = PredictedRow.of(row, workflow, profile, platform).predicted
    assert found == predict(plan, workflow, profile, platform_slower(platform, 2.0))


def test_requests_of_several_speeds_are_taken_at_one(profile_of, paced_profile, platform):
    """Each takes a quarter longer than predicted for the speed beside it; so does their median."""
    workflow = parse_workflow(WIDE)
    plan = plans(profile_of, count=1)[0]

    def taking(factor):
        return tuple(
            requested(
                factor
                * predict(plan, workflow, profile_at(paced_profile, loop), platform).latency_ms,
                loop_ms=loop,
            )
            for loop in (1.0, 1.0, 1.0, 1.3, 1.3, 1.3, 1.8, 1.8, 1.8)
        )

    row = MeasuredRow(plan=plan, requests=taking(1.25), again=taking(1.5))
    found = PredictedRow.of(row, workflow, paced_profile, platform)
    assert found.measured_ms == pytest.approx(found.predicted.latency_ms * 1.25, rel=1e-3)
    assert found.again_ms == pytest.approx(found.predicted.latency_ms * 1.5, rel=1e-3)


def test_the_third_counts_beside_which_the_cores_were_most_alike():
    requests = [requested(float(n), uneven=uneven) for n, uneven in enumerate((3, 1, 9, 2, 5, 4))]
    assert [each.latency_ms for each in steady(requests)] == [1, 3]
    assert steady(requests[:1]) == tuple(requests[:1])


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
    rows = measure_batch(folder, place, batch, leftovers, profile=profile, samples=3)
    assert [row.plan for row in rows] == drawn
    assert all(len(row.requests) == 3 and row.overhead_ms > 0 for row in rows)
    assert all((row.wasted_cores is not None) == (platform.cpus > 1) for row in rows)
    assert all(row.alone.keys() == {"greet"} for row in rows)
    assert all(row.alone["greet"].loop_ms > 0 for row in rows)
    assert [len(row.again) for row in rows] == [3, *[0] * (len(rows) - 1)]
    assert launcher.gateway.functions() == []
    assert not leftovers.file.exists()


@dataclass
class Small:
    """A launcher whose gateway has room for so many more functions."""

    launcher: Launcher
    room: int

    @property
    def gateway(self):
        return self.launcher.gateway

    @contextmanager
    def launch(self, workflow, folder, plan):
        if len(plan.wraps) > self.room:
            raise ChironError("gateway-error", "no more functions", status=400)
        self.room -= len(plan.wraps)
        with self.launcher.launch(workflow, folder, plan) as deployed:
            yield deployed
        self.room += len(plan.wraps)


def test_plans_are_left_out_and_nothing_else_where_a_gateway_is_full(
    launcher, write_folder, profile_of, platform, tmp_path
):
    folder = write_folder(tmp_path / "tiny", TINY, GREET, {})
    profile = profile_of(folder.workflow)
    drawn = random_plans(folder.workflow, profile, "pool", count=3, most_processes=2, seed=1)
    (batch,) = missing_batches(list(drawn), [])
    place = Place(Small(launcher, 5), platform, lambda line: None)
    leftovers = Leftovers(tmp_path / "deployed.json")
    rows = measure_batch(folder, place, batch, leftovers, profile=profile, samples=1)
    assert 0 < len(rows) < len(batch)
    assert all(row.overhead_ms > 0 and row.alone for row in rows)
