"""Plans at random are sound and repeatable; each becomes a row with its noise."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import pytest

from chiron.deployment.launcher import Launcher
from chiron.evaluation.bench.bench import Leftovers
from chiron.evaluation.bench.setup import Place
from chiron.evaluation.prediction.plans import BATCH, measure_batch, missing_batches, random_plans
from chiron.evaluation.prediction.rows import MeasuredRow, PredictedRow, TimedRequest
from chiron.predictor.predict import predict
from chiron.predictor.speed import profile_at
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow
from chiron.workflow.plan import Prediction, Within
from chiron.workflow.profile import PayloadProfile

WIDE = {"name": "wide", "tasks": {f"t{n}": f"f{n % 3}" for n in range(8)}, "edges": [["t0", "t7"]]}
TINY = {"name": "tiny", "tasks": {"a": "greet", "b": "greet"}, "edges": []}
GREET = {"greet": "def handle(req):\n    return req + '!'\n"}


@cache
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


def test_a_seed_gives_its_plans_and_another_gives_others(profile_of):
    assert plans(profile_of) == plans.__wrapped__(profile_of)
    assert plans(profile_of) != plans(profile_of, seed=2)


def requested(*latencies_ms, **fields):
    return tuple(
        TimedRequest(latency_ms=each, **{"probe_ms": 1.0} | fields) for each in latencies_ms
    )


@pytest.fixture
def paced_profile(profile_of):
    """The profile of `WIDE`, taken where the CPU-speed probe takes 1 ms."""
    profile = profile_of(parse_workflow(WIDE))
    functions = {
        name: function.model_copy(update={"cpu_probe_ms": 1.0})
        for name, function in profile.functions.items()
    }
    return profile.model_copy(update={"functions": functions})


def test_error_noise_and_range_by_hand_count_every_request(profile_of):
    plan = plans(profile_of, count=1)[0]
    row = PredictedRow(
        plan=plan,
        predicted=Prediction(latency_ms=9.0, low_ms=8.1, high_ms=9.9),
        at_speed_ms=12.0,
        requests=requested(1.0, 10.0, 90.0),
        again=requested(11.0),
    )
    assert row.error == pytest.approx(-0.1)
    assert row.error_at_speed == pytest.approx(0.2)
    assert row.noise == pytest.approx(1 / 10.5)
    assert not row.inside
    assert row.half_width == pytest.approx(0.1)


def test_payloads_count_as_often_as_they_came_and_the_slow_ones_make_the_95th_percentile(
    profile_of,
):
    row = PredictedRow(
        plan=plans(profile_of, count=1)[0],
        predicted=Prediction(
            latency_ms=24.0,
            low_ms=9.0,
            high_ms=34.0,
            within=Within(percentile=95, ms=54.0, low_ms=30.0, high_ms=70.0),
        ),
        at_speed_ms=24.0,
        requests=(
            *requested(9.0, 10.0, 30.0, payload="small.json"),
            *requested(50.0, payload="large.json"),
        ),
        again=requested(20.0),
    )
    assert row.measured_ms == 20.0  # the median of all
    assert row.error == pytest.approx(0.2)
    assert row.p95_error == pytest.approx(0.08)
    assert row.noise == 0
    assert row.surprise == pytest.approx(-4 / 15)


def test_a_prediction_is_what_a_user_gets_and_the_speed_meanwhile_is_hindsight(
    profile_of, paced_profile, platform
):
    workflow = parse_workflow(WIDE)
    plan = plans(profile_of, count=1)[0]
    row = MeasuredRow(plan=plan, requests=requested(10.0, probe_ms=1.25))
    found = PredictedRow.of(row, workflow, paced_profile, platform)
    assert found.predicted == predict(plan, workflow, paced_profile, platform)
    then = predict(plan, workflow, profile_at(paced_profile, 1.25), platform)
    assert found.at_speed_ms == then.latency_ms > found.predicted.latency_ms


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


@pytest.mark.slow
def test_every_payload_has_its_turns_by_weight_and_is_checked_by_its_own_answer(
    launcher, write_folder, profile_of, platform, tmp_path
):
    folder = write_folder(tmp_path / "tiny", TINY, GREET, {})
    (folder.path / "payloads").mkdir()
    (folder.path / "payloads" / "rare.json").write_text('"rare"')
    (folder.path / "constraints.json").write_text('{"format": 1, "weights": {"payload.json": 3}}')
    profile = profile_of(folder.workflow)
    answers = [
        PayloadProfile(
            name=each.name,
            weight=each.weight,
            answer=ExpectedAnswer.learned(
                each.content, [json.dumps([f"{each.content.decode()}!"] * 2)]
            ),
        )
        for each in folder.payloads()
    ]
    profile = profile.model_copy(update={"payloads": tuple(answers)})
    drawn = list(random_plans(folder.workflow, profile, "pool", count=1, most_processes=1, seed=1))
    (batch,) = missing_batches(drawn, [])
    place = Place(launcher, platform, lambda line: None)
    leftovers = Leftovers(tmp_path / "deployed.json")
    (row,) = measure_batch(folder, place, batch, leftovers, profile=profile, samples=8)
    for requests in (row.requests, row.again):
        asked = Counter(each.payload for each in requests)
        assert asked == {"payload.json": 6, "payloads/rare.json": 2}


@dataclass
class Small:
    """A launcher whose gateway has room for so many more functions."""

    launcher: Launcher
    room: int

    @property
    def gateway(self):
        return self.launcher.gateway

    def sources(self, folder):
        return self.launcher.sources(folder)

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
    place = Place(Small(launcher, 2), platform, lambda line: None)
    leftovers = Leftovers(tmp_path / "deployed.json")
    rows = measure_batch(folder, place, batch, leftovers, profile=profile, samples=1)
    assert 0 < len(rows) < len(batch)
    assert all(0 <= row.others <= 1 for row in rows)
