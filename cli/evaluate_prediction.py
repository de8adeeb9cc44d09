"""`chiron evaluate prediction`: how wrong predictions are, here or on a published testbed."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from cli import options
from cli.artefacts import read_platform
from cli.measure_prediction import measure_rows
from cli.output import emit, progress
from cli.place import connect
from cli.prediction_tables import show_errors, show_ranges
from evaluation.prediction import comparison, published
from evaluation.prediction.baselines.learning import HeldOut
from evaluation.prediction.comparison import compare_stored
from evaluation.prediction.distribution import Distribution
from evaluation.prediction.plots import error_boxes
from evaluation.prediction.published import compare_with_testbed
from evaluation.prediction.stored import RowSettings
from evaluation.testbed import read_platform as read_testbed_platform
from gateway.names import BackendName as Backend
from workflow.documents import write_atomically
from workflow.folder import WorkflowFolder

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("prediction")
@click.argument("folders", metavar="[DIR]...", nargs=-1, type=_FOLDER)
@click.option(
    "--testbed",
    type=_FOLDER,
    help="Folder with a published testbed's profiles, workflows and measurements.",
)
@click.option("--rows", type=_FOLDER, help="Rows of an earlier run, to predict them again.")
@click.option(
    "--platform", type=click.Path(path_type=Path), help="Constants, instead of measured or fitted."
)
@click.option("--plans", type=click.IntRange(min=1), default=60, show_default=True)
@click.option("--samples", type=click.IntRange(min=1), default=60, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Which plans are drawn.")
@click.option(
    "--held-out",
    type=click.Choice(get_args(HeldOut)),
    default="workflow",
    show_default=True,
    help="What the baselines do not see in training.",
)
@click.option("--baselines/--no-baselines", default=True, help="Train RFR, LSTM and GNN too.")
@options.gateway
@options.tls_no_verify
@options.local
@options.output("out")
@options.as_json
def command(
    folders: tuple[Path, ...],
    testbed: Path | None,
    rows: Path | None,
    platform: Path | None,
    plans: int,
    samples: int,
    seed: int,
    held_out: HeldOut,
    baselines: bool,
    gateway: str | None,
    tls_no_verify: bool,
    local: Backend | None,
    output: Path,
    as_json: bool,
) -> None:
    """Measure plans at random of the workflows in DIR... and compare them with their predictions.

    A run that was stopped goes on where it was when it is given the same output folder. With
    --testbed, compare predictions with what a published testbed measured instead, beside what
    its authors predicted. With --rows, predict the rows of an earlier run again. Baselines
    (random forest, LSTM, GNN) are trained on other workflows than they are asked about.

    \b
    Example:
      chiron evaluate prediction benchmarks/finra benchmarks/slapp --local
      chiron evaluate prediction --rows out/prediction-rows --held-out structure
      chiron evaluate prediction --testbed testbed
    """
    if sum(map(bool, (folders, testbed, rows))) != 1:
        raise click.UsageError("name either workflow folders, --testbed or --rows")
    given = read_platform(platform) if platform else None
    kept_back = held_out if baselines else None
    if testbed:
        place = given or read_testbed_platform()
        found = compare_with_testbed(testbed, place, held_out=kept_back, progress=progress)
        _write(output, published.as_csv(found), found.distributions(), place.name)
        emit(found, output / "prediction.json", as_json)
        show_errors(place.name, found.distributions(), found.baselines)
        return
    if rows is None:
        rows = output / "prediction-rows"
        opened = [WorkflowFolder.open(folder) for folder in folders]
        settings = RowSettings(samples=samples, seed=seed)
        with connect(gateway, local=local, tls_no_verify=tls_no_verify) as launcher:
            measure_rows(rows, opened, launcher, settings, plans=plans, platform=given)
    measured = compare_stored(rows, progress, held_out=kept_back, platform=given)
    name = measured.platform.name
    _write(output, comparison.as_csv(measured), measured.distributions(), name)
    emit(measured, output / "prediction.json", as_json)
    show_errors(name, measured.distributions(), measured.baselines)
    show_ranges(measured)


def _write(output: Path, rows: str, distributions: list[Distribution], place: str) -> None:
    write_atomically(output / "prediction.csv", rows)
    progress(f"wrote {output / 'prediction.csv'}")
    try:
        picture = error_boxes(distributions, f"prediction errors on {place}")
    except ImportError:
        progress("no picture: matplotlib is missing: pip install 'chiron-openfaas[evaluation]'")
        return
    (output / "prediction.png").write_bytes(picture)
    progress(f"wrote {output / 'prediction.png'}")
