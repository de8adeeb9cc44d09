"""Measured plans of one workflow and mechanism, and how wrong their predictions are."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Sequence

from evaluation.prediction.errors import ErrorSummary
from evaluation.prediction.measured import PredictedRow
from workflow.documents import Document
from workflow.plan import Mechanism
from workflow.platform import Platform


class MeasuredWorkflow(Document):
    """The rows of one workflow and mechanism, and what they say.

    ``noise`` is the mean relative difference between two deployments of one plan: no predictor
    can be expected to do better. ``inside`` is the share of medians within the predicted range.
    """

    workflow: str
    mechanism: Mechanism
    errors: ErrorSummary
    noise: float
    inside: float
    rows: tuple[PredictedRow, ...]

    @classmethod
    def of(
        cls, workflow: str, mechanism: Mechanism, rows: Sequence[PredictedRow]
    ) -> MeasuredWorkflow:
        """The summary of at least one row."""
        noise = [row.noise for row in rows if row.noise is not None]
        return cls(
            workflow=workflow,
            mechanism=mechanism,
            errors=ErrorSummary.of([row.error for row in rows]),
            noise=round(statistics.fmean(noise), 6),
            inside=round(statistics.fmean(row.inside for row in rows), 6),
            rows=tuple(rows),
        )


class MeasuredComparison(Document):
    """All workflows and mechanisms of one run on one platform."""

    format: int = 1
    platform: Platform
    seed: int
    workflows: tuple[MeasuredWorkflow, ...]


def as_csv(comparison: MeasuredComparison) -> str:
    """One line a plan."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["workflow", "mechanism", "wraps", "measured_ms", "predicted_ms", "low_ms", "high_ms",
         "error", "again_ms", "loop_ms"]
    )  # fmt: skip
    for each in comparison.workflows:
        for row in each.rows:
            wraps = [[stage.processes for stage in wrap.stages] for wrap in row.plan.wraps]
            predicted = row.predicted
            writer.writerow(
                [each.workflow, each.mechanism, json.dumps(wraps), row.measured.p50_ms,
                 predicted.latency_ms, predicted.low_ms, predicted.high_ms, f"{row.error:.6f}",
                 "" if row.again_ms is None else f"{row.again_ms:.3f}", row.loop_ms]
            )  # fmt: skip
    return text.getvalue()
