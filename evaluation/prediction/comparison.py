"""Measured plans and how wrong the predictor and the baselines are about them."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from evaluation.prediction.baselines.learning import HeldOut
from evaluation.prediction.baselines.report import BaselineReport, compare_baselines
from evaluation.prediction.baselines.samples import sample_of
from evaluation.prediction.distribution import OURS, Distribution
from evaluation.prediction.errors import ErrorSummary
from evaluation.prediction.measured import PredictedRow
from evaluation.prediction.stored import StoredWorkflow, read_rows
from workflow.documents import Document
from workflow.plan import Mechanism
from workflow.platform import Platform


class MeasuredWorkflow(Document):
    """The rows of one workflow and mechanism, and what they say.

    ``noise`` is the mean relative difference between two deployments of one plan, which no
    predictor can foresee; null where none was deployed twice. ``inside`` is the share of medians
    within the predicted range.
    """

    workflow: str
    mechanism: Mechanism
    errors: ErrorSummary
    noise: float | None
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
            noise=round(statistics.fmean(noise), 6) if noise else None,
            inside=round(statistics.fmean(row.inside for row in rows), 6),
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
    """Predict the rows in the folder `path`, each at the speed that the machine then had.

    Parameters
    ----------
    held_out
        What the baselines are not to see in training; None trains none.
    platform
        Constants, instead of those that are stored beside the rows and of the rows' `wasted_cores`.

    Raises
    ------
    ChironError
        What reading the folder raises.
    """
    stored_platform, stored = read_rows(path)
    place = platform or _throughout(stored_platform, stored)
    summaries = [summary for each in stored for summary in _summaries(each, place)]
    profiles = {each.name: (each.workflow, each.profile) for each in stored}
    samples = [
        sample_of(each.workflow, row.plan, workflow, row.profile(functions), row.measured_ms)
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
         "error", "again_ms", "loop_ms", *(f"{name}_error" for name in names)]
    )  # fmt: skip
    for each in comparison.workflows:
        of_baselines = [d.errors for d in learned if d.place == (each.workflow, each.mechanism)]
        for index, row in enumerate(each.rows):
            wraps = [[stage.processes for stage in wrap.stages] for wrap in row.plan.wraps]
            predicted = row.predicted
            writer.writerow(
                [each.workflow, each.mechanism, json.dumps(wraps), row.measured_ms,
                 predicted.latency_ms, predicted.low_ms, predicted.high_ms, f"{row.error:.6f}",
                 "" if row.again_ms is None else f"{row.again_ms:.3f}", row.loop_ms,
                 *(f"{errors[index]:.6f}" for errors in of_baselines)]
            )  # fmt: skip
    return text.getvalue()


def _throughout(platform: Platform, stored: Sequence[StoredWorkflow]) -> Platform:
    """`platform` with the `wasted_cores` that is typical of all batches of all rows.

    From one batch to the next it differs by a third of itself, and what a single batch says of it
    by about as much.
    """
    found = [row.wasted_cores for each in stored for row in each.rows]
    wasted = [share for share in found if share is not None]
    if not wasted:
        return platform
    return platform.model_copy(update={"wasted_cores": round(statistics.median(wasted), 4)})


def _summaries(stored: StoredWorkflow, platform: Platform) -> Iterator[MeasuredWorkflow]:
    for mechanism in get_args(Mechanism):
        rows = [
            PredictedRow.of(row, stored.workflow, stored.profile, platform)
            for row in stored.rows
            if row.plan.mechanism == mechanism
        ]
        if rows:
            yield MeasuredWorkflow.of(stored.name, mechanism, rows)
