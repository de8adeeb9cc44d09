"""How the machine's speed changed while it measured, by the loop that was timed every round."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from generator.measure import percentile
from workflow.documents import Document


class Drift(Document):
    """The loop's median, its 5th and 95th percentile, and its last third relative to its first."""

    loop_ms: float
    low_ms: float
    high_ms: float
    trend: float


def drift_of(loops_ms: Sequence[float]) -> Drift:
    """The drift of at least one timing, in the order in which they were taken."""
    third = max(1, len(loops_ms) // 3)
    return Drift(
        loop_ms=round(statistics.median(loops_ms), 4),
        low_ms=round(percentile(loops_ms, 0.05), 4),
        high_ms=round(percentile(loops_ms, 0.95), 4),
        trend=round(statistics.median(loops_ms[-third:]) / statistics.median(loops_ms[:third]), 4),
    )
