"""`chiron evaluate prediction`: how wrong predictions are, here or on a published testbed."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from cli import options
from cli.artefacts import read_platform
from cli.output import emit, progress, table
from cli.place import connect
from evaluation.prediction import comparison as measured
from evaluation.prediction import published
from evaluation.prediction.comparison import MeasuredComparison, MeasuredWorkflow
from evaluation.prediction.errors import ErrorSummary
from evaluation.prediction.measured import measure_plans
from evaluation.prediction.published import PublishedComparison, compare_with_testbed
from evaluation.prediction.random_plans import random_plans
from evaluation.testbed import read_platform as read_testbed_platform
from generator.launcher import Launcher
from profiler.calibrate import calibrate
from profiler.profile import profile
from workflow.documents import write_atomically
from workflow.folder import WorkflowFolder
from workflow.plan import Mechanism
from workflow.platform import Platform

_ERRORS = ["mean |error|", "bias", "p95 |error|"]
#: Processes that a random plan runs at once in a wrap at most: twice the cores of a small machine.
_MOST_PROCESSES = 4


@click.command("prediction")
@click.argument(
    "folders", metavar="[DIR]...", nargs=-1, type=click.Path(path_type=Path, file_okay=False)
)
@click.option(
    "--testbed",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with a published testbed's profiles, workflows and measurements.",
)
@click.option(
    "--platform", type=click.Path(path_type=Path), help="Constants, instead of measured or fitted."
)
@click.option("--plans", type=click.IntRange(min=1), default=60, show_default=True)
@click.option("--samples", type=click.IntRange(min=1), default=30, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Which plans are drawn.")
@options.gateway
@options.tls_no_verify
@options.local
@options.output("out")
@options.as_json
def command(
    folders: tuple[Path, ...],
    testbed: Path | None,
    platform: Path | None,
    plans: int,
    samples: int,
    seed: int,
    gateway: str | None,
    tls_no_verify: bool,
    local: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Measure plans at random of the workflows in DIR... and compare them with their predictions.

    With --testbed, compare predictions with what a published testbed measured instead, beside
    what its authors predicted.

    \b
    Example:
      chiron evaluate prediction benchmarks/finra benchmarks/slapp --local
      chiron evaluate prediction --testbed testbed
    """
    if bool(folders) == bool(testbed):
        raise click.UsageError("name either workflow folders or --testbed")
    if testbed:
        place = read_platform(platform) if platform else read_testbed_platform()
        compared = compare_with_testbed(testbed, place)
        _write(output, published.as_csv(compared))
        emit(compared, output / "prediction.json", as_json)
        _show_published(compared)
        return
    opened = [WorkflowFolder.open(folder) for folder in folders]
    with connect(gateway, local=local, tls_no_verify=tls_no_verify) as launcher:
        given = read_platform(platform) if platform else None
        place = given or calibrate(launcher, progress=progress)
        rows = [
            each
            for folder in opened
            for each in _measure(folder, launcher, place, plans, samples, seed)
        ]
    result = MeasuredComparison(platform=place, seed=seed, workflows=tuple(rows))
    _write(output, measured.as_csv(result))
    emit(result, output / "prediction.json", as_json)
    _show_measured(result)


def _measure(
    folder: WorkflowFolder,
    launcher: Launcher,
    platform: Platform,
    plans: int,
    samples: int,
    seed: int,
) -> list[MeasuredWorkflow]:
    """The rows of both mechanisms of one workflow."""
    functions = profile(folder, launcher, progress=progress)
    result = []
    for mechanism in get_args(Mechanism):
        progress(f"{folder.workflow.name}, {mechanism}")
        drawn = random_plans(
            folder.workflow,
            functions,
            mechanism,
            count=plans,
            most_processes=_MOST_PROCESSES,
            seed=seed,
        )
        rows = list(
            measure_plans(
                folder,
                launcher,
                list(drawn),
                functions,
                platform,
                samples=samples,
                progress=progress,
            )
        )
        result.append(MeasuredWorkflow.of(folder.workflow.name, mechanism, rows))
    return result


def _write(output: Path, rows: str) -> None:
    write_atomically(output / "prediction.csv", rows)
    progress(f"wrote {output / 'prediction.csv'}")


def _show_measured(comparison: MeasuredComparison) -> None:
    rows = [
        [
            each.workflow,
            each.mechanism,
            str(len(each.rows)),
            *_percentages(each.errors),
            f"{each.noise:.2%}",
            f"{each.inside:.0%}",
        ]
        for each in comparison.workflows
    ]
    columns = ["workflow", "mechanism", "plans", *_ERRORS, "noise", "in range"]
    table(f"errors on {comparison.platform.name}", columns, rows)


def _show_published(comparison: PublishedComparison) -> None:
    rows = []
    for each in comparison.workflows:
        start = [each.workflow, str(len(each.rows))]
        rows.append([*start, "chiron", *_percentages(each.predicted)])
        rows.append([*start, "published", *_percentages(each.published)])
    columns = ["workflow", "rows", "predictor", *_ERRORS]
    table(f"errors on {comparison.platform.name}", columns, rows)


def _percentages(errors: ErrorSummary) -> list[str]:
    return [
        f"{errors.mean_absolute:.2%}",
        f"{errors.bias:+.2%}",
        f"{errors.p95_absolute:.2%}",
    ]
