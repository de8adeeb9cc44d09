"""`chiron evaluate prediction`: the errors of predictions, here or on a published testbed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple, get_args

import click

from chiron.cli import options
from chiron.cli.artefacts import read_platform
from chiron.cli.output import emit, progress, table, warn
from chiron.cli.place import Place, place
from chiron.deployment.background_load import busy_line
from chiron.deployment.launcher import Launcher
from chiron.evaluation.bench.bench import Leftovers
from chiron.evaluation.bench.machine import Machine, target_of
from chiron.evaluation.bench.rounds import Journal
from chiron.evaluation.bench.settings import open_run
from chiron.evaluation.bench.setup import PLATFORM_FILE, place_of, require_profiles
from chiron.evaluation.bench.setup import Place as MeasuredPlace
from chiron.evaluation.commands.options import (
    FolderFaults,
    begin,
    command_line,
    open_folders,
    say_what_is_left_out,
)
from chiron.evaluation.optional import PICTURES, missing
from chiron.evaluation.prediction import comparison, published
from chiron.evaluation.prediction.baselines.learning import BASELINES, BaselineReport, HeldOut
from chiron.evaluation.prediction.comparison import MeasuredComparison, compare_stored, slos_kept
from chiron.evaluation.prediction.errors import Distribution, by_place, error_boxes
from chiron.evaluation.prediction.plans import measure_batch, missing_batches, random_plans
from chiron.evaluation.prediction.published import PublishedComparison, compare_with_testbed
from chiron.evaluation.prediction.rows import (
    MeasuredRow,
    PredictedRow,
    RowSettings,
    keep_workflow,
    profile_file,
)
from chiron.evaluation.testbed import read_platform as read_testbed_platform
from chiron.predictor.mechanisms import EVERYWHERE
from chiron.predictor.spread import evenly
from chiron.profiler.profile import profile
from chiron.scheduler.chance import SURPRISES
from chiron.workflow.documents import dump, write_atomically
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

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
@place(options.local)
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
    place: Place,
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
    say_what_is_left_out([PICTURES, *(BASELINES if baselines else ())])
    machine = begin(output)
    if testbed:
        constants = given or read_testbed_platform()
        found = compare_with_testbed(testbed, constants, held_out=kept_back, progress=progress)
        _keep(found, published.as_csv(found), output, as_json)
        return
    faults = FolderFaults(folders)
    if rows is None:
        rows = output / "prediction-rows"
        opened = open_folders(folders, faults)
        settings = RowSettings(samples=samples, seed=seed)
        with place.connect() as launcher:
            measure_rows(
                rows, opened, launcher, settings, faults, machine, plans=plans, platform=given
            )
        if faults.folders.issuperset(folders):
            faults.raise_all()
    measured = compare_stored(rows, progress, held_out=kept_back, platform=given)
    _keep(measured, comparison.as_csv(measured), output, as_json)
    _show_ranges(measured)
    faults.raise_all()


def _keep(
    found: MeasuredComparison | PublishedComparison, rows: str, output: Path, as_json: bool
) -> None:
    """Write the comparison, and print a row for every predictor, and why others did not run."""
    distributions, baselines = found.distributions(), found.baselines
    errors = f"errors on {found.platform.name}"
    write_atomically(output / "prediction.csv", rows)
    progress(f"wrote {output / 'prediction.csv'}")
    if not missing(PICTURES):
        picture = error_boxes(distributions, f"prediction {errors}")
        (output / "prediction.png").write_bytes(picture)
        progress(f"wrote {output / 'prediction.png'}")
    emit(found, output / "prediction.json", as_json)
    cells = [_row(each) for group in by_place(distributions) for each in group]
    table(f"{errors}{_trained(baselines)}", _COLUMNS, cells)
    for name, reason in (baselines.not_run if baselines else {}).items():
        progress(f"{name} not run: {reason}")


_COLUMNS = [
    "workflow", "mechanism", "plans", "predictor", "mean |error|", "bias", "p95 |error|", "noise"
]  # fmt: skip


_RANGE_COLUMNS = [
    "workflow", "mechanism", "medians inside", "half-width", "mean |error|", "bias",
    "p95: mean |error|", "bias",
]  # fmt: skip


def _show_ranges(comparison: MeasuredComparison) -> None:
    """Print the accuracy of ranges and SLOs, the errors without drift, and disturbances."""
    table(
        "predicted ranges, the errors had the speed beside the requests been known before, and "
        "those of the 95th percentile of the requests",
        _RANGE_COLUMNS,
        [
            [
                each.workflow,
                each.mechanism,
                f"{each.inside:.0%}",
                f"{each.half_width:.0%}",
                f"{each.errors_at_speed.mean_absolute:.2%}",
                f"{each.errors_at_speed.bias:+.2%}",
                f"{each.p95_errors.mean_absolute:.2%}",
                f"{each.p95_errors.bias:+.2%}",
            ]
            for each in comparison.workflows
        ],
    )
    rows_of: dict[str, list[PredictedRow]] = {}
    for each in comparison.workflows:
        rows_of.setdefault(each.workflow, []).extend(each.rows)
    table(
        "SLOs for which the cheapest of these plans is taken that is predicted to meet them",
        ["workflow", "have a plan", "kept by its median", "missed by at most"],
        [
            [
                name,
                f"{found.met:.0%}",
                "" if found.kept is None else f"{found.kept:.0%}",
                f"{found.missed_by:.0%}",
            ]
            for name, rows in rows_of.items()
            for found in [slos_kept(rows)]
        ],
    )
    surprises = [row.surprise for rows in rows_of.values() for row in rows]
    if len(surprises) > 1:
        told = ", ".join(f"{each:.2f}" for each in evenly(surprises, len(SURPRISES)))
        progress(f"plans took longer than predicted by so many halves of their range: {told}")
    for each in comparison.workflows:
        if busy := busy_line(each.others):
            progress(f"{each.workflow}, {each.mechanism}: {busy}")
    warn(comparison.platform.warnings)


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


#: The most concurrent processes of a wrap in a random plan: twice the cores of a small machine.
_MOST_PROCESSES = 4


class _Batch(NamedTuple):
    """Plans of one workflow to measure side by side, and the journal of their rows."""

    folder: WorkflowFolder
    mechanism: str
    journal: Journal[MeasuredRow]
    plans: Mapping[str, Plan]
    profile: Profile


def measure_rows(
    path: Path,
    folders: Sequence[WorkflowFolder],
    launcher: Launcher,
    settings: RowSettings,
    faults: FolderFaults,
    machine: Machine,
    *,
    plans: int,
    platform: Platform | None,
) -> None:
    """Profile every workflow, and store measured rows of `plans` plans per mechanism in `path`.

    Rows in `path` are not measured again. Workflows and mechanisms take turns, a batch each.
    So a stopped run has rows of all, and a slow hour affects all alike. An error of a workflow
    stops that workflow only, and is added to `faults`.

    Raises ``other-run`` if `path` has rows of other settings, another machine or another gateway,
    and the errors of calibrating.
    """
    require_profiles(profile_file(path, each.workflow.name) for each in folders)
    open_run(path, settings, machine, target_of(launcher.gateway), command_line())
    if platform is not None:
        write_atomically(path / PLATFORM_FILE, dump(platform))
    place = place_of(launcher, path, progress)
    leftovers = Leftovers(path / "deployed.json")
    series: list[list[_Batch]] = []
    for folder in folders:
        with faults.of(folder.path):
            series += _missing(path, folder, launcher, plans, settings.seed)
    for batch in filter(None, chain.from_iterable(zip_longest(*series))):
        if batch.folder.path not in faults.folders:
            with faults.of(batch.folder.path):
                _measure(batch, place, leftovers, settings.samples)
    progress(f"wrote {path}")


def _missing(
    path: Path, folder: WorkflowFolder, launcher: Launcher, plans: int, seed: int
) -> Iterator[list[_Batch]]:
    """Yield the missing batches of one workflow, a list for each mechanism."""
    functions, journal = keep_workflow(
        path, folder, lambda: profile(folder, launcher, progress=progress)
    )
    measured = [row.plan for row in journal.rows()]
    for mechanism in EVERYWHERE:
        drawn = random_plans(
            folder.workflow,
            functions,
            mechanism,
            count=plans,
            most_processes=_MOST_PROCESSES,
            seed=seed,
        )
        missing = missing_batches(list(drawn), measured)
        yield [_Batch(folder, mechanism, journal, batch, functions) for batch in missing]


def _measure(batch: _Batch, place: MeasuredPlace, leftovers: Leftovers, samples: int) -> None:
    def say(line: str) -> None:
        progress(f"{batch.folder.workflow.name} {batch.mechanism}: {line}")

    say(f"measuring {', '.join(batch.plans)}")
    named = place._replace(progress=say)
    rows = measure_batch(
        batch.folder, named, batch.plans, leftovers, profile=batch.profile, samples=samples
    )
    for row in rows:
        batch.journal.append(row)
