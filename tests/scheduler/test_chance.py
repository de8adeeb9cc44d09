"""How sure a plan is said to be is how often predictions like its own were kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.evaluation.report import __file__ as report
from chiron.scheduler.chance import SURPRISES, chance, in_words, surprise
from chiron.scheduler.schedule import schedule
from chiron.workflow.plan import PredictedRange, Within

RESULTS = Path(report).parents[1] / "results" / "quick" / "latency.json"


def predicted(ms: float, low_ms: float, high_ms: float) -> PredictedRange:
    within = Within(percentile=95, ms=ms, low_ms=low_ms, high_ms=high_ms)
    return PredictedRange(latency_ms=ms / 2, low_ms=0.0, high_ms=ms, within=within)


@given(st.floats(1, 99), st.floats(0, 1), st.floats(0, 1), st.floats(0, 200), st.floats(0, 200))
def test_a_looser_slo_is_kept_in_no_fewer_cases(ms, below, above, one_ms, other_ms):
    found = predicted(ms, ms * (1 - below), ms * (1 + above))
    tight_ms, loose_ms = sorted((one_ms, other_ms))
    assert 0 <= chance(found, tight_ms) <= chance(found, loose_ms) < 1


def test_it_goes_by_the_range_of_the_percentile():
    narrow, wide = predicted(80.0, 79.0, 81.0), predicted(80.0, 60.0, 100.0)
    assert chance(narrow, 88.0) > chance(wide, 88.0) > 0.5
    assert chance(narrow, 76.0) < chance(wide, 76.0)
    assert in_words(chance(narrow, 60.0)) == "under 2%"


@pytest.mark.parametrize("slo", [-0.5, -0.2, 0.0, 0.3, 0.6])
def test_plans_that_were_measured_are_as_often_within_as_is_said(slo):
    """Of the 42 plans of a stored run, each with the SLO at one place of its range."""
    rows = json.loads(RESULTS.read_text())["rows"]
    kept, said = 0, 0.0
    for row in rows:
        details, took_ms = row["details"], row["value"]["value"]
        ends = [details[f"predicted_{end}ms"] for end in ("", "low_", "high_")]
        middle_ms, low_ms, high_ms = ends
        slo_ms = middle_ms + slo * (high_ms - middle_ms if slo > 0 else middle_ms - low_ms)
        kept += took_ms <= slo_ms
        said += chance(PredictedRange(latency_ms=middle_ms, low_ms=low_ms, high_ms=high_ms), slo_ms)
        assert (took_ms <= slo_ms) == (surprise(took_ms, *ends) <= slo + 1e-9)
    assert len(rows) == 42
    assert kept == pytest.approx(said, abs=0.2 * len(rows))


def test_the_quantiles_rise():
    assert list(SURPRISES) == sorted(SURPRISES)


def test_an_slo_with_room_is_said_to_be_kept_in_more_cases(workflow, profile, platform):
    asked = workflow("a"), profile(a="cpu 10"), platform(prediction_error=0.5)
    lines = [schedule(*asked, slo_ms).why[0] for slo_ms in (10.5, 13.0, 30.0)]
    shares = [int(line.rpartition("about ")[2].partition("%")[0]) for line in lines]
    assert shares == sorted(set(shares)) and shares[-1] == 98
