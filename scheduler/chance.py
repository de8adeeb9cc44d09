"""How sure it is that a plan keeps an SLO: by how wrong measured predictions were before."""

from __future__ import annotations

from bisect import bisect_right

from chiron.workflow.plan import PredictedRange

#: How much longer plans took than predicted, in quantiles that stand for as many plans each. The
#: unit is the half of the predicted range on that side: 1 is the high end, -1 the low one. It is of
#: 212 plans of 11 workflows, each as one median of its requests: the rows of prediction and
#: prediction-streams in evaluation/results, which `chiron evaluate prediction --rows` predicts and
#: summarizes, and the plans of evaluation/results/quick.
# fmt: off
SURPRISES = (
    -1.08, -0.58, -0.48, -0.41, -0.34, -0.27, -0.24, -0.21, -0.17, -0.12,
    -0.1, -0.08, -0.04, -0.01, 0.01, 0.05, 0.07, 0.12, 0.17, 0.19,
    0.22, 0.24, 0.26, 0.29, 0.31, 0.34, 0.38, 0.39, 0.42, 0.43,
    0.48, 0.53, 0.58, 0.59, 0.62, 0.71, 0.78, 0.93, 1.18, 1.57,
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
