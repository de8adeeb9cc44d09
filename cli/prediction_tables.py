"""What `chiron evaluate prediction` shows: errors by workflow, mechanism and predictor."""

from __future__ import annotations

from collections.abc import Sequence

from cli.output import progress, table
from evaluation.prediction.baselines.report import BaselineReport
from evaluation.prediction.comparison import MeasuredComparison
from evaluation.prediction.distribution import Distribution, by_place

_COLUMNS = [
    "workflow", "mechanism", "plans", "predictor", "mean |error|", "bias", "p95 |error|", "noise"
]  # fmt: skip


def show_errors(
    place: str, distributions: Sequence[Distribution], baselines: BaselineReport | None
) -> None:
    """A row for every predictor of every workflow and mechanism, and why others are missing."""
    rows = [_row(each) for group in by_place(distributions) for each in group]
    table(f"errors on {place}{_trained(baselines)}", _COLUMNS, rows)
    for name, reason in (baselines.not_run if baselines else {}).items():
        progress(f"{name} not run: {reason}")


def show_ranges(comparison: MeasuredComparison) -> None:
    """How often the measured median was in the predicted range."""
    for each in comparison.workflows:
        where = f"{each.workflow}, {each.mechanism}"
        progress(f"{where}: {each.inside:.0%} of the medians lie in the predicted range")


def _row(distribution: Distribution) -> list[str]:
    errors, noise = distribution.summary, distribution.noise
    return [
        distribution.workflow,
        distribution.mechanism,
        str(len(distribution.errors)),
        distribution.predictor,
        f"{errors.mean_absolute:.2%}",
        f"{errors.bias:+.2%}",
        f"{errors.p95_absolute:.2%}",
        "" if noise is None else f"{noise:.2%}",
    ]


def _trained(baselines: BaselineReport | None) -> str:
    if baselines is None or not baselines.distributions:
        return ""
    others = {
        "workflow": "plans of the other workflows",
        "structure": "plans of other numbers of processes and threads",
    }
    return f"; baselines trained on {others[baselines.held_out]}"
