"""Compares measured plans with the predictor and the baselines."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from chiron.deployment.background_load import mean_share
from chiron.evaluation.prediction.baselines.features import sample_of
from chiron.evaluation.prediction.baselines.learning import (
    BaselineReport,
    HeldOut,
    compare_baselines,
)
from chiron.evaluation.prediction.errors import OURS, Distribution, ErrorSummary
from chiron.evaluation.prediction.rows import PredictedRow, read_rows
from chiron.evaluation.report.tables import csv_of
from chiron.predictor.mechanisms import MECHANISMS
from chiron.workflow.documents import Document
from chiron.workflow.platform import Platform

_SLOS = 200


class MeasuredWorkflow(Document):
    """The rows of one workflow and mechanism, and their summary."""

    workflow: str
    mechanism: str
    #: Errors of predictions against the median of all requests; and, in hindsight, of predictions
    #: at the machine's speed beside the requests.
    errors: ErrorSummary
    errors_at_speed: ErrorSummary
    #: Errors against the 95th percentile of all requests.
    p95_errors: ErrorSummary
    #: The mean difference of two deployments of one plan; None if no plan was deployed twice.
    noise: float | None
    #: The share of medians within the predicted range, and the mean of its half-widths relative to
    #: the prediction.
    inside: float
    half_width: float
    #: The share of the cores that other programs had.
    others: float | None = None
    rows: tuple[PredictedRow, ...]

    @classmethod
    def of(cls, workflow: str, mechanism: str, rows: Sequence[PredictedRow]) -> MeasuredWorkflow:
        """Summarise at least one row."""
        noise = [row.noise for row in rows if row.noise is not None]
        return cls(
            workflow=workflow,
            mechanism=mechanism,
            errors=ErrorSummary.of([row.error for row in rows]),
            errors_at_speed=ErrorSummary.of([row.error_at_speed for row in rows]),
            p95_errors=ErrorSummary.of([row.p95_error for row in rows]),
            noise=round(statistics.fmean(noise), 6) if noise else None,
            inside=round(statistics.fmean(row.inside for row in rows), 6),
            half_width=round(statistics.fmean(row.half_width for row in rows), 6),
            others=mean_share(row.others for row in rows),
            rows=tuple(rows),
        )

    def distribution(self) -> Distribution:
        """Return the predictor's errors on these rows."""
        errors = (row.error for row in self.rows)
        return Distribution.of(self.workflow, self.mechanism, OURS, errors, self.noise)


class MeasuredComparison(Document):
    """All workflows and mechanisms of one run on one platform."""

    format: Literal[1] = 1
    platform: Platform
    workflows: tuple[MeasuredWorkflow, ...]
    baselines: BaselineReport | None = None

    def distributions(self) -> list[Distribution]:
        """Return the errors of the predictor and of every baseline that ran."""
        learned = self.baselines.distributions if self.baselines else ()
        return [*(each.distribution() for each in self.workflows), *learned]


class SlosKept(NamedTuple):
    """How often SLOs are kept if each gets the cheapest plan that is predicted to meet it."""

    #: The share of the SLOs that a plan is predicted to meet.
    met: float
    #: The share of these SLOs that the plan's measured median keeps; None without such SLOs.
    kept: float | None
    #: The largest excess over an SLO, as a share of the SLO.
    missed_by: float


def slos_kept(rows: Sequence[PredictedRow]) -> SlosKept:
    """Return the result of SLOs spaced evenly from the fastest prediction to the top high end."""
    first = min(row.predicted.latency_ms for row in rows)
    step = (max(row.predicted.high_ms for row in rows) - first) / (_SLOS - 1)
    over = []
    for slo_ms in (first + number * step for number in range(_SLOS)):
        meeting = [row for row in rows if row.predicted.latency_ms <= slo_ms]
        if meeting:
            taken = min(meeting, key=lambda row: (row.plan.cpus, row.predicted.latency_ms))
            over.append(taken.measured_ms / slo_ms - 1)
    kept = statistics.fmean(share <= 0 for share in over) if over else None
    return SlosKept(len(over) / _SLOS, kept, max(0.0, *over, 0.0))


def compare_stored(
    path: Path,
    progress: Callable[[str], None],
    *,
    held_out: HeldOut | None,
    platform: Platform | None = None,
) -> MeasuredComparison:
    """Predict the rows in the folder `path` from the profiles and the platform beside them.

    `held_out` names what baselines must not see in training; None trains no baseline. `platform`
    replaces the stored constants.
    """
    stored_platform, stored = read_rows(path)
    place = platform or stored_platform
    summaries, samples = [], []
    for each in stored:
        for mechanism in MECHANISMS:
            rows = [row for row in each.rows if row.plan.mechanisms == mechanism]
            if rows:
                predicted = [PredictedRow.of(r, each.workflow, each.profile, place) for r in rows]
                summaries.append(MeasuredWorkflow.of(each.name, mechanism, predicted))
            samples += [
                sample_of(each.name, row.plan, each.workflow, each.profile, row.measured_ms)
                for row in rows
            ]
    return MeasuredComparison(
        platform=place,
        workflows=tuple(summaries),
        baselines=compare_baselines(samples, held_out, progress) if held_out else None,
    )


def as_csv(comparison: MeasuredComparison) -> str:
    """Return a table with a line for each plan."""
    learned = comparison.baselines.distributions if comparison.baselines else ()
    lines = []
    for each in comparison.workflows:
        of_baselines = [d for d in learned if d.place == (each.workflow, each.mechanism)]
        for index, row in enumerate(each.rows):
            wraps = [wrap.processes for wrap in row.plan.wraps]
            line = {
                "workflow": each.workflow,
                "mechanism": each.mechanism,
                "wraps": json.dumps(wraps),
                "measured_ms": row.measured_ms,
                "predicted_ms": row.predicted.latency_ms,
                "low_ms": row.predicted.low_ms,
                "high_ms": row.predicted.high_ms,
                "error": f"{row.error:.6f}",
                "error_at_speed": f"{row.error_at_speed:.6f}",
                "noise": None if row.noise is None else f"{row.noise:.6f}",
                "probe_ms": row.probe_ms,
                "others": row.others,
            }
            line |= {f"{d.predictor}_error": f"{d.errors[index]:.6f}" for d in of_baselines}
            lines.append(line)
    return csv_of(lines)
