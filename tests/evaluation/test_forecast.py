"""What a run will take is said before it begins, and full and quick runs keep what is promised."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from cli.evaluate_all import OTHERS
from evaluation.bench.settings import FULL, QUICK, Settings
from evaluation.experiments.catalogue import EXPERIMENTS, measurements_of
from evaluation.measurements.forecast import forecast, in_words
from workflow.folder import WorkflowFolder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SETTINGS = Settings(models=("one-to-one", "sand", "faastlane", "pgp"), mechanisms=("fork", "pool"))
EVERYTHING = measurements_of(list(EXPERIMENTS))


@pytest.fixture(scope="module")
def workflows():
    """The five of the benchmarks."""
    found = [
        WorkflowFolder.open(file.parent).workflow for file in BENCHMARKS.glob("*/workflow.json")
    ]
    assert len(found) == 5
    return found


@pytest.mark.parametrize(
    ("scale", "others_s", "minutes"),
    [
        (QUICK, sum(other.quick_s for other in OTHERS), 10),
        (FULL, sum(other.full_s for other in OTHERS), 90),
    ],
)
def test_everything_on_the_five_workflows_fits_the_promised_time(
    scale, others_s, minutes, workflows
):
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


def test_samples_that_the_user_asked_for_have_no_end_in_time(workflows):
    parts = forecast(workflows, SETTINGS, replace(QUICK, requests_s=math.inf), EVERYTHING)
    assert "requests as long as the samples take" in in_words(parts)
