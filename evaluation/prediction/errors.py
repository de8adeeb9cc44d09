"""How wrong predictions are: the distribution of (P̂ - P) / P, as Chiron §6.1 defines it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from workflow.documents import Document


class ErrorSummary(Document):
    """Mean of the absolute errors, mean of the errors, and the 95th percentile of the absolute."""

    mean_absolute: float
    bias: float
    p95_absolute: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> ErrorSummary:
        """The summary of at least one relative error."""
        absolute = [abs(error) for error in errors]
        return cls(
            mean_absolute=round(statistics.fmean(absolute), 6),
            bias=round(statistics.fmean(errors), 6),
            p95_absolute=round(_percentile(absolute, 0.95), 6),
        )


def _percentile(values: Sequence[float], share: float) -> float:
    """By linear interpolation, as numpy does it."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
