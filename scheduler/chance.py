"""The probability that a plan keeps an SLO, by the errors of measured predictions."""

from __future__ import annotations

from bisect import bisect_right

from chiron.workflow.plan import PredictedRange

#: Quantiles of the prediction error, each standing for as many plans. The unit is half the
#: predicted range on that side: 1 is the high end, -1 the low end. They are of 212 plans of 11
#: workflows, each as one median of its requests: the rows of prediction and prediction-streams in
#: evaluation/results, which `chiron evaluate prediction --rows` predicts and summarizes, and the
#: plans of evaluation/results/quick.
# fmt: off
SURPRISES = (
    -1.24, -0.67, -0.47, -0.41, -0.36, -0.3, -0.26, -0.24, -0.22, -0.19,
    -0.14, -0.12, -0.1, -0.06, -0.03, 0.01, 0.04, 0.05, 0.09, 0.11,
    0.16, 0.19, 0.21, 0.22, 0.25, 0.27, 0.3, 0.33, 0.37, 0.39,
    0.42, 0.44, 0.52, 0.57, 0.59, 0.62, 0.71, 0.97, 1.18, 1.58,
)
# fmt: on


def surprise(took_ms: float, predicted_ms: float, low_ms: float, high_ms: float) -> float:
    """Return the prediction error of a plan in halves of its range."""
    further_ms = took_ms - predicted_ms
    half_ms = high_ms - predicted_ms if further_ms > 0 else predicted_ms - low_ms
    # If the range has no width, every error is outside.
    return further_ms / max(half_ms, 1e-9)


def chance(predicted: PredictedRange, slo_ms: float) -> float:
    """Return the share of similar cases in which a plan predicted so keeps `slo_ms`.

    Another plan is equally likely to have any rank among the measured plans.
    """
    beyond = surprise(slo_ms, predicted.judged_ms, *predicted.judged_range_ms)
    return bisect_right(SURPRISES, beyond) / (len(SURPRISES) + 1)


def in_words(share: float) -> str:
    """Return a share of cases in words, as precisely as it is known."""
    least = 1 / (len(SURPRISES) + 1)
    return f"about {share:.0%}" if share >= least else f"under {least:.0%}"
