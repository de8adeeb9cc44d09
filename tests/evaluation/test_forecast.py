"""What a run will take is said before it begins, and full and quick runs keep what is promised."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from chiron.evaluation.bench.settings import FULL, QUICK, Settings
from chiron.evaluation.commands.all import OTHERS
from chiron.evaluation.experiments.results import EXPERIMENTS, measurements_of
from chiron.evaluation.measurements.forecast import forecast, in_words
from chiron.workflow.folder import WorkflowFolder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SETTINGS = Settings(
    planners=("one-to-one", "sand", "faastlane", "pgp"), mechanisms=("fork", "pool")
)
EVERYTHING = measurements_of(list(EXPERIMENTS))


@pytest.fixture(scope="module")
def workflows():
    """Those of the benchmarks, but for what has buckets, and for what Java has once more."""
    every = [
        WorkflowFolder.open(file.parent).workflow for file in BENCHMARKS.glob("*/workflow.json")
    ]
    plain = [workflow for workflow in every if workflow.buckets is None]
    found = [workflow for workflow in plain if not workflow.name.endswith("-java")]
    assert len(found) == 7
    return found


@pytest.mark.parametrize(
    ("scale", "others_s", "minutes"),
    [
        (QUICK, sum(other.quick_s for other in OTHERS), 27),
        (FULL, sum(other.full_s for other in OTHERS), 147),
    ],
)
def test_everything_on_all_workflows_fits_the_promised_time(scale, others_s, minutes, workflows):
    parts = forecast(workflows, SETTINGS, scale, EVERYTHING)
    assert sum(parts.values()) + others_s <= 60 * minutes


def test_every_part_of_the_forecast_is_named(workflows):
    parts = forecast(workflows, SETTINGS, QUICK, EVERYTHING)
    line = in_words(parts)
    assert {"set-up", "deploying", *(m.name for m in EVERYTHING)} == parts.keys()
    assert all(name in line for name in parts)


def test_an_slo_that_is_given_needs_no_baseline(workflows):
    given = SETTINGS.model_copy(update={"slo_ms": 100.0})
    with_baseline, without = (
        forecast(workflows, each, FULL, ())["set-up"] for each in (SETTINGS, given)
    )
    assert without < with_baseline


def test_what_is_there_already_is_not_charged(workflows):
    def set_up(**there):
        given = SETTINGS.model_copy(update={"slo_ms": 1.0})
        return forecast(workflows, given, QUICK, (), **there)["set-up"]

    known = {workflow.name for workflow in workflows}
    assert set_up(calibrated=True, profiled=known) == 0
    assert 0 < set_up(calibrated=True, profiled=known - {"finra"}) < set_up()
    assert set_up(pulling=True) > 3 * set_up()


@pytest.mark.parametrize(("planners", "sandboxes"), [(("one-to-one", "pgp"), 8), (("pgp",), 2)])
def test_every_sandbox_is_charged_with_its_image_where_it_is_pulled(planners, sandboxes, workflows):
    settings = Settings(planners=planners, mechanisms=("fork",))
    (finra,) = (workflow for workflow in workflows if workflow.name == "finra")
    here, pulled = (
        forecast([finra], settings, QUICK, (), pulling=pulling)["deploying"]
        for pulling in (False, True)
    )
    assert here == pytest.approx(0.7 * sandboxes)
    assert pulled == pytest.approx(6.7 * sandboxes)


def test_a_short_run_is_said_in_seconds():
    line = in_words({"deploying": 11.4, "closed-loop": 40.0})
    assert line.startswith("this takes about 51 s on two idle cores, ")
    assert "deploying 11 s, closed-loop 40 s" in line
    assert "4.5 min" in in_words({"closed-loop": 270.0})


def test_requests_are_charged_by_their_number_where_time_does_not_end_them(workflows):
    few, many = (replace(QUICK, requests=count, requests_s=math.inf) for count in (100, 500))
    said = [forecast(workflows, SETTINGS, scale, EVERYTHING)["requests"] for scale in (few, many)]
    assert said[1] == pytest.approx(5 * said[0])
