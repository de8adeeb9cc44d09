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
    -0.71, -0.48, -0.41, -0.34, -0.28, -0.24, -0.22, -0.18, -0.13, -0.1,
    -0.07, -0.04, -0.01, 0.02, 0.04, 0.09, 0.11, 0.16, 0.19, 0.2,
    0.23, 0.26, 0.29, 0.3, 0.32, 0.34, 0.38, 0.39, 0.42, 0.45,
    0.47, 0.54, 0.57, 0.6, 0.62, 0.73, 0.86, 1.07, 1.39, 1.77,
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
