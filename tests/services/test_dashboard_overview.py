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
    ("slo_ms", "within", "word"),
    [
        (200.0, 0.95, "met"),
        (200.0, 0.949, "missed"),
        (200.0, None, "unknown"),
        (None, 0.99, "unknown"),
    ],
)
def test_the_word_is_what_the_requests_of_the_last_minute_say(
    overview, live_workflow, slo_ms, within, word
):
    assert overview.verdict(live_workflow("w", slo_ms, within)).word == word


@each_row(("values", "drawn"), [([], ""), ([0.0], ""), ([0.0, 3.5, 7.0], "▁▅█")])
def test_a_sparkline_goes_from_zero_to_the_largest(overview, values, drawn):
    assert overview.sparkline(values) == drawn


def test_the_promise_of_a_plan_for_a_rate_names_the_rate(overview, live_workflow):
    live = live_workflow("w", 200.0, 0.99)
    load = LoadLatency(load=Load(per_s=20.0), within=())
    predicted = live.deployed.predicted.model_copy(update={"under_load": load})
    deployed = live.deployed.model_copy(update={"predicted": predicted})
    promised = overview.verdict(live.model_copy(update={"deployed": deployed})).why
    assert promised.endswith("95 % of requests within 200 ms at up to 20/s")
