"""The cards of deployed workflows: what they say of the SLO."""

from __future__ import annotations

import importlib

import pytest

from chiron.workflow.load import Load, LoadLatency
from tests.rows import each_row


@pytest.fixture
def overview():
    """The module, whose import of Dash takes long."""
    return importlib.import_module("chiron.services.dashboard.overview")


@each_row(
    ("slo_ms", "within", "requests", "word", "why"),
    [
        (200.0, 0.95, 1000, "met", "950 of 1000 requests were within it"),
        (200.0, 0.949, 1000, "missed", "949 of 1000 requests were within it"),
        (200.0, 1.0, 20, "met", "20 of 20 requests"),
        (200.0, 1.0, 19, "unknown", "19 of 19 requests"),
        (200.0, None, 1000, "unknown", "no request was counted"),
        (None, 0.99, 1000, "unknown", "it was deployed without an SLO"),
    ],
)
def test_the_word_is_what_the_requests_of_the_last_minute_say(
    overview, live_workflow, slo_ms, within, requests, word, why
):
    verdict = overview.verdict(live_workflow("w", slo_ms, within, requests=requests))
    assert verdict.word == word
    assert verdict.why.startswith(why)


def test_with_few_requests_in_the_last_minute_all_since_the_start_say_it(overview, live_workflow):
    proven = live_workflow("w", 200.0, 0.98, requests=50)
    verdict = overview.verdict(proven.model_copy(update={"latency": None}))
    assert verdict.word == "met"
    assert verdict.why.startswith("49 of 50 requests were within it since its replicas started;")


@each_row(
    ("values", "slo", "points", "dashed"),
    [
        ([], None, None, None),
        ([4.0], 8.0, None, None),
        ([0.0, 0.0], None, None, None),
        ([0.0, 4.0, 8.0], None, "0.0,39.0 120.0,20.0 240.0,1.0", None),
        ([4.0, 8.0], 4.0, "0.0,20.0 240.0,1.0", "M0 20.0H240"),
        ([2.0, 2.0], 4.0, "0.0,20.0 240.0,20.0", "M0 1.0H240"),
    ],
)
def test_a_trend_begins_at_zero_and_has_the_slo(overview, values, slo, points, dashed):
    drawn = overview.sparkline(values, slo)
    assert bool(drawn) == (points is not None)
    assert points is None or f'points="{points}"' in drawn
    assert (f'd="{dashed}"' in drawn) if dashed else "stroke-dasharray" not in drawn


def test_the_promise_of_a_plan_for_a_rate_names_the_rate(overview, live_workflow):
    live = live_workflow("w", 200.0, 0.99)
    load = LoadLatency(load=Load(per_s=20.0), within=())
    predicted = live.deployed.predicted.model_copy(update={"under_load": load})
    deployed = live.deployed.model_copy(update={"predicted": predicted})
    promised = overview.verdict(live.model_copy(update={"deployed": deployed})).why
    assert promised.endswith("95 % of requests within 200 ms at up to 20/s")
