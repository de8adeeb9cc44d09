"""What a run will take is said before it begins, and full and quick runs keep what is promised."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from cli.evaluate_all import OTHERS
from evaluation.bench.rounds import by_label
from evaluation.bench.settings import FULL, QUICK, Settings
from evaluation.bench.variants import variants
from evaluation.experiments.results import EXPERIMENTS, measurements_of
from evaluation.measurements.client import FEWEST
from evaluation.measurements.forecast import forecast, in_words, scale_of
from evaluation.measurements.load import CLOSED, closed_window_s
from workflow.documents import read_document
from workflow.folder import WorkflowFolder
from workflow.profile import Profile

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
#: A run on two cores.
STORED = Path(__file__).parents[2] / "evaluation" / "results" / "quick"
SETTINGS = Settings(
    planners=("one-to-one", "sand", "faastlane", "pgp"), mechanisms=("fork", "pool")
)
EVERYTHING = measurements_of(list(EXPERIMENTS))


@pytest.fixture(scope="module")
def workflows():
    """The six of the benchmarks."""
    found = [
        WorkflowFolder.open(file.parent).workflow for file in BENCHMARKS.glob("*/workflow.json")
    ]
    assert len(found) == 6
    return found


@pytest.mark.parametrize(
    ("scale", "others_s", "minutes"),
    [
        (QUICK, sum(other.quick_s for other in OTHERS), 24),
        (FULL, sum(other.full_s for other in OTHERS), 135),
    ],
)
def test_everything_on_the_six_workflows_fits_the_promised_time(
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


@pytest.fixture(scope="module")
def stored(workflows):
    """Those of the stored run."""
    found = [workflow for workflow in workflows if (STORED / workflow.name).is_dir()]
    assert len(found) == 5
    return found


def stored_profile(workflow):
    return read_document(Profile, STORED / workflow.name / "profile.json", "profile")


def test_windows_of_the_stored_run_are_forecast_within_a_quarter_from_its_profiles(stored):
    for workflow in stored:
        rounds = by_label(CLOSED.journal(STORED / workflow.name).rows())
        windows_s = [
            min(QUICK.most_s, FEWEST / sample.per_s)
            for samples in rounds.values()
            for levels in samples
            for sample in levels
            if sample.clients == QUICK.clients[0]
        ]
        chosen = variants(SETTINGS.planners, SETTINGS.mechanisms)
        scale = scale_of(workflow, stored_profile(workflow), chosen, QUICK, cores=2)
        expected_s = closed_window_s(scale)
        assert expected_s == pytest.approx(statistics.fmean(windows_s), rel=0.25), workflow.name


def test_what_is_there_already_is_not_charged(stored):
    def set_up(**there):
        return forecast(stored, SETTINGS.model_copy(update={"slo_ms": 1.0}), QUICK, (), **there)

    known = {workflow.name: stored_profile(workflow) for workflow in stored}
    assert set_up(calibrated=True, profiles=known)["set-up"] == 0
    del known["finra"]
    assert 0 < set_up(calibrated=True, profiles=known)["set-up"] < set_up()["set-up"]
    assert set_up(pulling=True)["set-up"] > 3 * set_up()["set-up"]


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
    assert line.startswith("this takes about 51 s, ")
    assert "deploying 11 s, closed-loop 40 s" in line
    assert "4.5 min" in in_words({"closed-loop": 270.0})


def test_requests_are_charged_by_their_number_where_time_does_not_end_them(workflows):
    few, many = (replace(QUICK, requests=count, requests_s=math.inf) for count in (100, 500))
    said = [forecast(workflows, SETTINGS, scale, EVERYTHING)["requests"] for scale in (few, many)]
    assert said[1] == pytest.approx(5 * said[0])
