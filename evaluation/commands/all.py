"""`chiron evaluate all`: runs every experiment on every workflow, and writes one report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from chiron.cli.output import next_step, progress, table, warn
from chiron.evaluation.bench.setup import PLATFORM_FILE
from chiron.evaluation.commands import command as evaluate
from chiron.evaluation.commands.options import (
    FolderFaults,
    RunOptions,
    measure,
    measuring,
    say_what_is_left_out,
)
from chiron.evaluation.experiments.recorded import read_run
from chiron.evaluation.experiments.results import EXPERIMENTS, results_of
from chiron.evaluation.optional import PICTURES
from chiron.evaluation.prediction.baselines.learning import BASELINES
from chiron.evaluation.report.glance import averages_table
from chiron.evaluation.report.page import write_report
from chiron.evaluation.runtime.deployed import BENCHMARKS
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.forms import workflow_file, workflow_folders


@dataclass(frozen=True)
class Other:
    """Another verb of `evaluate` whose result belongs to the report.

    It has to write NAME.json to the folder after ``-o``; the report also shows NAME.csv and
    NAME.png. ``arguments`` returns its command line, None if the verb is not to run. ``quick_s``
    and ``full_s`` are its durations in seconds, timed on two cores.
    """

    name: str
    quick_s: float
    full_s: float
    arguments: Callable[[tuple[Path, ...], RunOptions], list[str] | None]


def _prediction(folders: tuple[Path, ...], run_options: RunOptions) -> list[str] | None:
    if not folders:
        return None
    plans, samples = ("2", "8") if run_options.settings.quick else ("24", "20")
    chosen = folders[:1] if run_options.settings.quick else folders
    constants = ["--platform", str(run_options.output / PLATFORM_FILE)]
    # Baselines are trained on the other workflows: this needs several workflows, and time.
    baselines = [] if len(chosen) > 1 else ["--no-baselines"]
    amount = ["--plans", plans, "--samples", samples]
    return [*map(str, chosen), *amount, *baselines, *constants, *run_options.place.flags]


def _scheduler(_: tuple[Path, ...], run_options: RunOptions) -> list[str]:
    return ["--cases", "4", "--samples", "2", "--no-large"] if run_options.settings.quick else []


def _runtime(_: tuple[Path, ...], run_options: RunOptions) -> list[str] | None:
    """Return the arguments of `runtime`, which measures its own embedded gateway."""
    if not run_options.place.local:
        return None
    return ["--quick"] if run_options.settings.quick else []


#: The registry of these verbs; a new verb also needs an entry in `chiron.evaluation.commands`.
OTHERS = (
    Other("prediction", 30, 720, _prediction),
    Other("scheduler", 25, 240, _scheduler),
    Other("runtime", 70, 500, _runtime),
)


@click.command("all")
@click.option(
    "--workflows",
    metavar="DIR,...",
    help=f"Folders, or names of those in {BENCHMARKS}/ (default: all there without buckets).",
)
@click.option("--only-report", is_flag=True, help="Measure nothing: render what is there.")
@measuring
def command(workflows: str | None, only_report: bool, run_options: RunOptions) -> None:
    """Measure planners on workflows by all experiments, and write one report.

    The same command with the same output folder continues a run that was stopped.

    \b
    Example:
      chiron evaluate all --local --quick -o out/evaluation
    """
    folders = () if only_report else find_workflows(workflows, Path.cwd())
    say_what_is_left_out(
        [PICTURES, *(() if only_report or run_options.settings.quick else BASELINES)]
    )
    faults = FolderFaults(folders)
    if not only_report:
        further_s = {o.name: o.quick_s if run_options.settings.quick else o.full_s for o in OTHERS}
        faults = measure(
            list(EXPERIMENTS), folders, run_options, run_options.scale(None), further_s
        )
        good = tuple(folder for folder in folders if folder not in faults.folders)
        for other in OTHERS:
            with faults.noting(f"chiron evaluate {other.name}"):
                _run_other(other, good, run_options)
    report = write_report(run_options.output)
    folder = read_run(run_options.output)
    if shown := averages_table(results_of(list(EXPERIMENTS), folder), folder.ours):
        table(shown.title, shown.columns, shown.rows, shown.notes, shown.keys)
    warn(folder.warnings)
    progress(f"wrote {report}")
    next_step(f"open {report} in a browser")
    faults.raise_all()


def find_workflows(text: str | None, here: Path) -> tuple[Path, ...]:
    """Return the workflow folders in the comma-separated list `text`, or all benchmarks in `here`.

    Benchmarks with buckets are left out: most planners cannot deploy them, and `runtime` measures
    such workflows.

    Raises ``no-workflows`` if there are no benchmarks, ``missing-file`` if a named folder is none.
    """
    benchmarks = here / BENCHMARKS
    if text is None:
        found = [f for f in workflow_folders(benchmarks, "*/") if not _has_buckets(f)]
        if not found:
            message = f"there are no workflows in {BENCHMARKS}/: name folders with --workflows"
            raise ChironError("no-workflows", message)
        return tuple(each.relative_to(here) for each in found)
    return tuple(_folder(name.strip(), here) for name in text.split(",") if name.strip())


def _has_buckets(folder: Path) -> bool:
    with suppress(ChironError):  # the error is reported when the workflow is measured
        return WorkflowFolder.open(folder).workflow.buckets is not None
    return False


def _folder(name: str, here: Path) -> Path:
    for folder in (Path(name), BENCHMARKS / name):
        if workflow_file(here / folder):
            return folder
    message = f"{name!a} is no workflow folder, and {BENCHMARKS}/ has none of that name"
    raise ChironError("missing-file", message)


def _run_other(other: Other, folders: tuple[Path, ...], run_options: RunOptions) -> None:
    """Run another verb unless its result exists; its errors are raised as ChironError."""
    if (run_options.output / f"{other.name}.json").exists():
        return
    found = evaluate.get_command(click.Context(evaluate), other.name)
    arguments = other.arguments(folders, run_options)
    if found is None or arguments is None:
        return
    progress(f"chiron evaluate {other.name}")
    line = [*arguments, "--output", str(run_options.output)]
    try:
        found.main(line, prog_name=f"chiron evaluate {other.name}", standalone_mode=False)
    except (click.ClickException, ImportError) as error:
        raise ChironError("failed", str(error), status=500) from None
