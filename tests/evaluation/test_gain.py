"""The answer of a run: which of two plans to take, and how sure that is."""

from __future__ import annotations

import pytest

from chiron.evaluation.experiments.metric import MetricResult, MetricRow
from chiron.evaluation.experiments.recorded import Drift
from chiron.evaluation.intervals import Interval
from chiron.evaluation.report.gain import gain_of

OURS = "pgp fork"


def interval(value: float, spread: float = 0.1) -> Interval:
    return Interval(value=value, low=value * (1 - spread), high=value * (1 + spread))


def result(ratio: float, others: float = 0.0, over: float = 0.0) -> MetricResult:
    """Latencies of 100 ms as it is, and of `ratio` of that as we deploy it."""
    details = {"requests": 50.0, "over_slo": 0.4, "mib": 340.0}
    predicted = {"predicted_ms": 48.0, "predicted_low_ms": 40.0, "predicted_high_ms": 60.0}
    rows = (
        MetricRow(
            workflow="demo",
            variant="one-to-one",
            value=interval(100.0),
            against={OURS: interval(ratio)},
            wraps=10,
            processes=10,
            cpus=10,
            details=details,
        ),
        MetricRow(
            workflow="demo",
            variant=OURS,
            value=interval(100.0 * ratio),
            wraps=1,
            processes=3,
            cpus=2,
            details=details | predicted | {"error": -0.04, "over_slo": over},
        ),
    )
    drift = Drift(probe_ms=1.0, low_ms=1.0, high_ms=1.0, trend=1.0, others=others)
    return MetricResult(
        experiment="latency",
        metric="latency",
        unit="ms",
        better="lower",
        rows=rows,
        drift={"demo": drift},
    )


@pytest.mark.parametrize(
    ("ratio", "over", "advice"),
    [
        (0.5, 0.0, "take the plan of chiron: 2.0 times as fast, 1 function instead of 10, 2 CPUs"),
        (1.0, 0.0, "take the plan of chiron: as fast as now, 1 function instead of 10"),
        (1.5, 0.0, "take the plan of chiron: slower, within the SLO, 1 function"),
        (0.5, 0.2, "do not take the plan of chiron: 20.0% of its requests were over the SLO"),
    ],
)
def test_what_to_take_is_said_first(ratio: float, over: float, advice: str) -> None:
    found = gain_of(result(ratio, over=over), "demo", "one-to-one", OURS)
    assert found is not None
    assert next(found.sentences).startswith(advice)


@pytest.mark.parametrize(("others", "why"), [(0.0, "--samples 500"), (0.6, "not surer, as 60%")])
def test_it_says_what_was_predicted_how_sure_it_is_and_why_not_surer(
    others: float, why: str
) -> None:
    found = gain_of(result(0.5, others), "demo", "one-to-one", OURS)
    assert found is not None
    _, predicted, sure = found.sentences
    assert predicted == "predicted before: 48.0 ms (40.0 to 60.0), 4% below what was measured"
    assert "1.82 to 2.22 times, 95 % interval of 100 requests" in sure
    assert why in sure
