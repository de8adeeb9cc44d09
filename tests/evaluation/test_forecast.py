"""What a run will take is said before it begins, and full and quick runs keep what is promised."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from chiron.evaluation.bench.settings import FULL, QUICK, Settings
from chiron.evaluation.commands.all import OTHERS
from chiron.evaluation.experiments.results import EXPERIMENTS, measurements_of
from chiron.evaluation.measurements.forecast import forecast
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


def test_what_is_there_already_is_not_charged(workflows):
    def set_up(**there):
        given = SETTINGS.model_copy(update={"slo_ms": 1.0})
        return forecast(workflows, given, QUICK, (), **there)["set-up"]

    known = {workflow.name for workflow in workflows}
    assert set_up(calibrated=True, profiled=known) == 0
    assert 0 < set_up(calibrated=True, profiled=known - {"finra"}) < set_up()
    assert set_up(pulling=True) > 3 * set_up()


def test_requests_are_charged_by_their_number_where_time_does_not_end_them(workflows):
    few, many = (replace(QUICK, requests=count, requests_s=math.inf) for count in (100, 500))
    said = [forecast(workflows, SETTINGS, scale, EVERYTHING)["requests"] for scale in (few, many)]
    assert said[1] == pytest.approx(5 * said[0])
