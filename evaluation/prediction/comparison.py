"""Measured plans and how wrong the predictor and the baselines are about them."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from deployment.background_load import mean_share
from evaluation.prediction.baselines.features import sample_of
from evaluation.prediction.baselines.learning import BaselineReport, HeldOut, compare_baselines
from evaluation.prediction.errors import OURS, Distribution, ErrorSummary
from evaluation.prediction.rows import PredictedRow, StoredWorkflow, read_rows
from predictor.mechanisms import MECHANISMS
from workflow.documents import Document
from workflow.platform import Platform


class MeasuredWorkflow(Document):
    """The rows of one workflow and mechanism, and what they say.

    Attributes
    ----------
    errors, errors_at_speed
        Of what was predicted before, against the median of every request; and, in hindsight, of
        predictions with functions as fast as the machine was beside the requests.
    noise
        The mean relative difference between two deployments of one plan, which no predictor can
        foresee; null where none was deployed twice.
    inside, half_width
        The share of medians within the predicted range, and the mean of its half-widths relative to
        the prediction.
    others
        The share of the cores that other programs had.
    """

    workflow: str
    mechanism: str
    errors: ErrorSummary
    errors_at_speed: ErrorSummary
    noise: float | None
    inside: float
    half_width: float
    others: float | None = None
    rows: tuple[PredictedRow, ...]

    @classmethod
    def of(cls, workflow: str, mechanism: str, rows: Sequence[PredictedRow]) -> MeasuredWorkflow:
        """The summary of at least one row."""
        noise = [row.noise for row in rows if row.noise is not None]
        return cls(
            workflow=workflow,
            mechanism=mechanism,
            errors=ErrorSummary.of([row.error for row in rows]),
            errors_at_speed=ErrorSummary.of([row.error_at_speed for row in rows]),
            noise=round(statistics.fmean(noise), 6) if noise else None,
            inside=round(statistics.fmean(row.inside for row in rows), 6),
            half_width=round(statistics.fmean(row.half_width for row in rows), 6),
            others=mean_share(row.others for row in rows),
            rows=tuple(rows),
        )

    def distribution(self) -> Distribution:
        """The predictor's errors on these rows."""
        return Distribution(
            workflow=self.workflow,
            mechanism=self.mechanism,
            predictor=OURS,
            errors=tuple(round(row.error, 6) for row in self.rows),
            noise=self.noise,
        )


class MeasuredComparison(Document):
    """All workflows and mechanisms of one run on one platform."""

    format: Literal[1] = 1
    platform: Platform
    workflows: tuple[MeasuredWorkflow, ...]
    baselines: BaselineReport | None = None

    def distributions(self) -> list[Distribution]:
        """The errors of the predictor and of every baseline that ran."""
        learned = self.baselines.distributions if self.baselines else ()
        return [*(each.distribution() for each in self.workflows), *learned]


def compare_stored(
    path: Path,
    progress: Callable[[str], None],
    *,
    held_out: HeldOut | None,
    platform: Platform | None = None,
) -> MeasuredComparison:
    """Predict the rows in the folder `path` from the profiles and the platform beside them.

    Parameters
    ----------
    held_out
        What the baselines are not to see in training; None trains none.
    platform
        Constants, instead of those that are stored beside the rows.

    Raises
    ------
    ChironError
        What reading the folder raises.
    """
    stored_platform, stored = read_rows(path)
    place = platform or stored_platform
    summaries = [summary for each in stored for summary in _summaries(each, place)]
    profiles = {each.name: (each.workflow, each.profile) for each in stored}
    samples = [
        sample_of(each.workflow, row.plan, workflow, functions, row.measured_ms)
        for each in summaries
        for workflow, functions in [profiles[each.workflow]]
        for row in each.rows
    ]
    return MeasuredComparison(
        platform=place,
        workflows=tuple(summaries),
        baselines=compare_baselines(samples, held_out, progress) if held_out else None,
    )


def as_csv(comparison: MeasuredComparison) -> str:
    """One line a plan."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    learned = comparison.baselines.distributions if comparison.baselines else ()
    names = list(dict.fromkeys(each.predictor for each in learned))
    writer.writerow(
        ["workflow", "mechanism", "wraps", "measured_ms", "predicted_ms", "low_ms", "high_ms",
         "error", "error_at_speed", "noise", "probe_ms", "others",
         *(f"{name}_error" for name in names)]
    )  # fmt: skip
    for each in comparison.workflows:
        of_baselines = [d.errors for d in learned if d.place == (each.workflow, each.mechanism)]
        for index, row in enumerate(each.rows):
            wraps = [[stage.processes for stage in wrap.stages] for wrap in row.plan.wraps]
            predicted = row.predicted
            writer.writerow(
                [each.workflow, each.mechanism, json.dumps(wraps), row.measured_ms,
                 predicted.latency_ms, predicted.low_ms, predicted.high_ms, f"{row.error:.6f}",
                 f"{row.error_at_speed:.6f}", "" if row.noise is None else f"{row.noise:.6f}",
                 row.probe_ms, "" if row.others is None else row.others,
                 *(f"{errors[index]:.6f}" for errors in of_baselines)]
            )  # fmt: skip
    return text.getvalue()


def _summaries(stored: StoredWorkflow, platform: Platform) -> Iterator[MeasuredWorkflow]:
    for mechanism in tuple(MECHANISMS):
        rows = [
            PredictedRow.of(row, stored.workflow, stored.profile, platform)
            for row in stored.rows
            if row.plan.mechanism == mechanism
        ]
        if rows:
            yield MeasuredWorkflow.of(stored.name, mechanism, rows)
