"""The cards of deployed workflows: what they say of the SLO."""

from __future__ import annotations

import pytest

from chiron.services.dashboard.overview import sparkline, verdict


@pytest.mark.parametrize(
    ("slo_ms", "within", "word"),
    [
        (200.0, 0.95, "met"),
        (200.0, 0.949, "missed"),
        (200.0, None, "unknown"),
        (None, 0.99, "unknown"),
    ],
)
def test_the_word_is_what_the_requests_of_the_last_minute_say(live_workflow, slo_ms, within, word):
    assert verdict(live_workflow("w", slo_ms, within)).word == word


@pytest.mark.parametrize(("values", "drawn"), [([], ""), ([0.0], ""), ([0.0, 3.5, 7.0], "▁▅█")])
def test_a_sparkline_goes_from_zero_to_the_largest(values, drawn):
    assert sparkline(values) == drawn
