"""The cards of deployed workflows: what they say of the SLO."""

from __future__ import annotations

import pytest

from chiron.deployment.deployed import DeployedWorkflow
from chiron.deployment.live import Latency, LiveWorkflow
from chiron.generator.annotations import DeployedPrediction
from chiron.services.dashboard.overview import sparkline, verdict


def live(slo_ms, within):
    """A workflow of which `within` of the requests met its SLO."""
    predicted = DeployedPrediction(
        latency_ms=40.0, low_ms=30.0, high_ms=50.0, cpus=1, slo_ms=slo_ms
    )
    latency = Latency(mean_ms=1.0, p50_ms=1.0, p95_ms=2.0, p99_ms=3.0, within_slo=within)
    deployed = DeployedWorkflow(
        workflow="w",
        planner="pgp",
        functions=("w-wrap1",),
        predicted=predicted,
        replicas=1,
        available=1,
        calls=0.0,
    )
    return LiveWorkflow(
        deployed=deployed,
        requests_per_s=1.0,
        failed_per_s=0.0,
        latency=None if within is None else latency,
        wraps=(),
        events_per_s=None,
        buckets=(),
        failures=(),
    )


@pytest.mark.parametrize(
    ("slo_ms", "within", "word"),
    [
        (200.0, 0.95, "met"),
        (200.0, 0.949, "missed"),
        (200.0, None, "unknown"),
        (None, 0.99, "unknown"),
    ],
)
def test_the_word_is_what_the_requests_of_the_last_minute_say(slo_ms, within, word):
    assert verdict(live(slo_ms, within)).word == word


@pytest.mark.parametrize(("values", "drawn"), [([], ""), ([0.0], ""), ([0.0, 3.5, 7.0], "▁▅█")])
def test_a_sparkline_goes_from_zero_to_the_largest(values, drawn):
    assert sparkline(values) == drawn
