"""Compares predictions with a published testbed's measurements, beside its authors' simulator.

The testbed has no plan deployed twice, so its noise is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from chiron.evaluation.prediction.baselines.features import sample_of
from chiron.evaluation.prediction.baselines.learning import (
    BaselineReport,
    HeldOut,
    compare_baselines,
)
from chiron.evaluation.prediction.errors import OURS, Distribution, ErrorSummary
from chiron.evaluation.report.tables import csv_of
from chiron.evaluation.testbed import MeasuredRow, read_measured, read_profile
from chiron.predictor.predict import Predictor
from chiron.workflow.documents import Document
from chiron.workflow.model import Workflow
from chiron.workflow.platform import Platform


class PublishedRow(Document):
    """One deployment: measured, predicted here, and predicted by the authors."""

    stages: tuple[tuple[tuple[str, ...], ...], ...]
    measured_ms: float
    predicted_ms: float
    published_ms: float

    @property
    def error(self) -> float:
        """The prediction's error (P̂ - P) / P (Chiron §6.1)."""
        return self.predicted_ms / self.measured_ms - 1

    @property
    def published_error(self) -> float:
        """The error of the authors' simulator."""
        return self.published_ms / self.measured_ms - 1


class PublishedWorkflow(Document):
    """All deployments of one workflow."""

    workflow: str
    predicted: ErrorSummary
    published: ErrorSummary
    rows: tuple[PublishedRow, ...]

    def distributions(self) -> list[Distribution]:
        """Return the errors of the predictor and of the authors' simulator."""
        return [
            Distribution.of(self.workflow, "fork", OURS, (r.error for r in self.rows)),
            Distribution.of(
                self.workflow, "fork", "published", (r.published_error for r in self.rows)
            ),
        ]


class PublishedComparison(Document):
    """All measured workflows of a testbed, with one set of constants."""

    format: Literal[1] = 1
    platform: Platform
    workflows: tuple[PublishedWorkflow, ...]
    baselines: BaselineReport | None = None

    def distributions(self) -> list[Distribution]:
        """Return the errors of both simulators and of every baseline that ran."""
        simulated = [each for workflow in self.workflows for each in workflow.distributions()]
        return [*simulated, *(self.baselines.distributions if self.baselines else ())]


def compare_with_testbed(
    folder: Path,
    platform: Platform,
    *,
    held_out: HeldOut | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> PublishedComparison:
    """Predict every measured deployment of the testbed in `folder`.

    `held_out` names what baselines must not see in training; None trains no baseline. Raises
    ``missing-file``, ``bad-json`` or ``bad-document`` if `folder` is no testbed.
    """
    profile = read_profile(folder)
    predictor = Predictor(profile, platform)
    workflows, samples = [], []
    for name, workflow, measured in read_measured(folder):
        profile.require(workflow.functions)
        rows = tuple(_predicted(row, workflow, predictor) for row in measured)
        samples += [
            sample_of(name, row.plan(workflow, platform.cpus), workflow, profile, row.measured_ms)
            for row in measured
        ]
        workflows.append(
            PublishedWorkflow(
                workflow=name,
                predicted=ErrorSummary.of([row.error for row in rows]),
                published=ErrorSummary.of([row.published_error for row in rows]),
                rows=rows,
            )
        )
    return PublishedComparison(
        platform=platform,
        workflows=tuple(workflows),
        baselines=compare_baselines(samples, held_out, progress) if held_out else None,
    )


def as_csv(comparison: PublishedComparison) -> str:
    """Return a table with a line for each deployment."""
    return csv_of(
        {
            "workflow": each.workflow,
            "stages": json.dumps(row.stages),
            "measured_ms": f"{row.measured_ms:.4f}",
            "predicted_ms": f"{row.predicted_ms:.4f}",
            "error": f"{row.error:.6f}",
            "published_ms": f"{row.published_ms:.4f}",
            "published_error": f"{row.published_error:.6f}",
        }
        for each in comparison.workflows
        for row in each.rows
    )


def _predicted(row: MeasuredRow, workflow: Workflow, predictor: Predictor) -> PublishedRow:
    platform = predictor.platform
    latency_ms = predictor.plan_ms(row.plan(workflow, platform.cpus), workflow)
    return PublishedRow(
        stages=row.stages,
        measured_ms=row.measured_ms,
        predicted_ms=round(latency_ms, 4),
        published_ms=row.artifact_predicted_ms,
    )
