"""How sure it is that a plan keeps an SLO: by how wrong measured predictions were before."""

from __future__ import annotations

from bisect import bisect_right

from chiron.workflow.plan import PredictedRange

#: How much longer plans took than predicted, in quantiles that stand for as many plans each. The
#: unit is the half of the predicted range on that side: 1 is the high end, -1 the low one. It is of
#: 212 plans of 11 workflows, each as one median of its requests: the rows in
#: evaluation/results/prediction and prediction-streams, which `chiron evaluate prediction --rows`
#: predicts and summarizes, and the plans of evaluation/results/quick.
# fmt: off
SURPRISES = (
    -0.98, -0.85, -0.76, -0.71, -0.68, -0.66, -0.63, -0.62, -0.59, -0.55,
    -0.52, -0.48, -0.46, -0.43, -0.39, -0.37, -0.35, -0.28, -0.27, -0.24,
    -0.21, -0.19, -0.17, -0.13, -0.13, -0.11, -0.09, -0.07, -0.05, -0.01,
    0.03, 0.06, 0.09, 0.12, 0.19, 0.23, 0.34, 0.47, 0.64, 1.4,
)
# fmt: on


def surprise(took_ms: float, predicted_ms: float, low_ms: float, high_ms: float) -> float:
    """By how many halves of its range a plan took longer than predicted."""
    further_ms = took_ms - predicted_ms
    half_ms = high_ms - predicted_ms if further_ms > 0 else predicted_ms - low_ms
    # Where the range has no width, what is outside is outside of any.
    return further_ms / max(half_ms, 1e-9)


def chance(predicted: PredictedRange, slo_ms: float) -> float:
    """In what share of cases like this a plan that is predicted so keeps `slo_ms`.

    One more plan is as likely to have any rank among those that were measured.
    """
    beyond = surprise(slo_ms, predicted.judged_ms, *predicted.judged_range_ms)
    return bisect_right(SURPRISES, beyond) / (len(SURPRISES) + 1)


def in_words(share: float) -> str:
    """A share of cases, as far as it is known."""
    least = 1 / (len(SURPRISES) + 1)
    return f"about {share:.0%}" if share >= least else f"under {least:.0%}"
