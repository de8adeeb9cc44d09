"""`chiron evaluate prediction`: how wrong predictions are."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options
from cli.artefacts import read_platform
from cli.output import emit, progress, table
from evaluation.prediction.errors import ErrorSummary
from evaluation.prediction.published import PublishedComparison, as_csv, compare_with_testbed
from evaluation.testbed import read_platform as read_testbed_platform
from workflow.documents import write_atomically

_COLUMNS = ["workflow", "rows", "predictor", "mean |error|", "bias", "p95 |error|"]


@click.command("prediction")
@click.option(
    "--testbed",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder with a published testbed's profiles, workflows and measurements.",
)
@click.option(
    "--platform",
    type=click.Path(path_type=Path),
    help="Constants other than those fitted to Chiron's testbed.",
)
@options.output("out")
@options.as_json
def command(testbed: Path, platform: Path | None, output: Path, as_json: bool) -> None:
    """Predict what a published testbed measured, beside what its authors predicted.

    \b
    Example:
      chiron evaluate prediction --testbed testbed
    """
    place = read_platform(platform) if platform else read_testbed_platform()
    comparison = compare_with_testbed(testbed, place)
    rows = output / "prediction.csv"
    write_atomically(rows, as_csv(comparison))
    progress(f"wrote {rows}")
    emit(comparison, output / "prediction.json", as_json)
    _show(comparison)


def _show(comparison: PublishedComparison) -> None:
    rows = []
    for each in comparison.workflows:
        start = [each.workflow, str(len(each.rows))]
        rows.append([*start, "chiron", *_percentages(each.predicted)])
        rows.append([*start, "published", *_percentages(each.published)])
    table(f"errors on {comparison.platform.name}", _COLUMNS, rows)


def _percentages(errors: ErrorSummary) -> list[str]:
    return [
        f"{errors.mean_absolute:.2%}",
        f"{errors.bias:+.2%}",
        f"{errors.p95_absolute:.2%}",
    ]
