"""The options and the common steps of the verbs of `evaluate` that measure deployments."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Any, cast, get_args

import click

from chiron.cli import options
from chiron.cli.artefacts import read_platform, read_profile
from chiron.cli.output import emit, error_line, progress, table, warn
from chiron.cli.place import Place, place
from chiron.evaluation.bench.machine import (
    Machine,
    no_evidence,
    require_evidence,
    target_of,
    this_machine,
)
from chiron.evaluation.bench.settings import FULL, QUICK, Scale, Settings, open_run
from chiron.evaluation.bench.setup import PLATFORM_FILE, PROFILE_FILE, place_of, require_profiles
from chiron.evaluation.bench.variants import parse_mechanisms, parse_planners
from chiron.evaluation.experiments.recorded import read_run
from chiron.evaluation.experiments.results import measurements_of, results_of
from chiron.evaluation.measurements.forecast import forecast, in_words
from chiron.evaluation.measurements.run import measure_workflow
from chiron.evaluation.optional import PICTURES, left_out
from chiron.evaluation.report.page import write_results
from chiron.evaluation.report.tables import table_of
from chiron.predictor.mechanisms import EVERYWHERE
from chiron.profiler.kept_platform import KeptPlatforms
from chiron.scheduler.choices import Strategy
from chiron.scheduler.planners import PLANNERS
from chiron.workflow.documents import dump, write_atomically
from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import DEFAULT_TRIGGER
from chiron.wrap.core.triggers import TriggerKind

DEFAULT_PLANNERS = "one-to-one,sand,faastlane,pgp"
_OPTIONS: tuple[Callable[[options.Command], options.Command], ...] = (
    click.option(
        "--planners",
        default=DEFAULT_PLANNERS,
        show_default=True,
        help=f"Of {', '.join(PLANNERS)}.",
    ),
    click.option("--mechanisms", default=",".join(EVERYWHERE), show_default=True),
    click.option(
        "--trigger",
        type=click.Choice(get_args(TriggerKind)),
        default=DEFAULT_TRIGGER,
        show_default=True,
        help="What tasks wait for in all plans; one-to-one's client calls stage by stage, unless "
        "the workflow decides while it runs.",
    ),
    click.option("--slo", type=options.DURATION, help="Instead of faastlane's mean + 10 ms."),
    click.option(
        "--strategy", type=click.Choice(get_args(Strategy)), default="cost", show_default=True
    ),
    options.percentile,
    options.check,
    click.option("--samples", type=click.IntRange(min=1), help="Requests one at a time."),
    click.option("--quick", is_flag=True, help="Few samples, wide intervals."),
    click.option("--profile", type=click.Path(path_type=Path), help="Instead of measuring it."),
    click.option("--platform", type=click.Path(path_type=Path), help="Instead of measuring it."),
    place(options.local),
    options.output("out"),
)

folders_argument = click.argument(
    "folders",
    metavar="DIR...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
)


@dataclass(frozen=True)
class RunOptions:
    """The user's request: settings, amount, the place to measure and the folder of the results.

    ``profile`` and ``platform`` are files of earlier measurements. ``platforms``, if given, keeps
    platforms between runs.
    """

    settings: Settings
    samples: int | None
    profile: Path | None
    platform: Path | None
    place: Place
    output: Path
    platforms: KeptPlatforms | None = None

    def scale(self, samples: int | None) -> Scale:
        """Return the scale of the run, with `samples` requests unless the user sets the number."""
        scale = QUICK if self.settings.quick else FULL
        if self.samples:
            return replace(scale, requests=self.samples, requests_s=math.inf)
        return scale if self.settings.quick or samples is None else replace(scale, requests=samples)


def measuring(command: options.Command) -> options.Command:
    """Add the options of a verb that measures deployments, as one argument `run_options`."""

    @wraps(command)
    def with_run_options(
        *arguments: Any, planners: str, mechanisms: str, slo: float | None, **others: Any
    ) -> Any:
        settings = Settings(
            planners=parse_planners(planners),
            mechanisms=parse_mechanisms(mechanisms),
            slo_ms=slo,
            **{name: others.pop(name) for name in Settings.model_fields if name in others},
        )
        given = {f.name: others.pop(f.name) for f in fields(RunOptions) if f.name in others}
        return command(*arguments, run_options=RunOptions(settings=settings, **given), **others)

    decorated = cast(options.Command, with_run_options)
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def measure(
    experiments: Sequence[str],
    folders: Sequence[Path],
    run_options: RunOptions,
    scale: Scale,
    further_s: Mapping[str, float] | None = None,
) -> FolderFaults:
    """Run the measurements of `experiments` on the workflows in `folders`.

    Measurements in the output folder are not repeated. `further_s` has the durations of the
    caller's later steps in seconds, for the forecast. A workflow that cannot be measured does not
    stop the others: its error is printed, and returned so that the caller can raise it at the end.
    """
    machine = begin(run_options.output)
    settings, measurements = run_options.settings, measurements_of(list(experiments))
    faults = FolderFaults(folders)
    opened = open_folders(folders, faults)
    _keep_given(opened, run_options)
    names = [each.workflow.name for each in opened]
    profiles = {name: run_options.output / name / PROFILE_FILE for name in names}
    require_profiles(profiles.values())
    with run_options.place.connect() as launcher:
        parts = forecast(
            [each.workflow for each in opened],
            settings,
            scale,
            measurements,
            calibrated=(run_options.output / PLATFORM_FILE).exists(),
            profiled=[name for name, file in profiles.items() if file.exists()],
            pulling=not launcher.gateway.info().embedded,
        )
        progress(in_words({**parts, **(further_s or {})}))
        target = target_of(launcher.gateway)
        run = open_run(run_options.output, settings, machine, target, command_line())
        here = place_of(launcher, run_options.output, progress, run_options.platforms)
        for folder in opened:
            out = run_options.output / folder.workflow.name
            with faults.of(folder.path):
                measure_workflow(folder, here, out, run, scale, measurements)
    return faults


class FolderFaults(Faults):
    """The errors of workflow folders; with several folders, each error is printed at once.

    ``folders`` has the folders with errors.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._several = len(folders) > 1
        self.folders = set[Path]()
        super().__init__(self._tell_one if self._several else None)

    @contextmanager
    def of(self, folder: Path) -> Iterator[None]:
        """Record a ChironError of the block as an error of `folder`, and continue."""
        with self.noting(str(folder) if self._several else ""):
            self.folders.add(folder)
            yield
            self.folders.remove(folder)

    @staticmethod
    def _tell_one(error: ChironError) -> None:
        error_line(str(error))


def open_folders(folders: Sequence[Path], faults: FolderFaults) -> list[WorkflowFolder]:
    """Open the workflows in `folders`; errors of opening are added to `faults`.

    Raises the faults if no workflow can be opened; ``same-name`` if two workflows share a name.
    """
    opened = []
    for folder in folders:
        with faults.of(folder):
            opened.append(WorkflowFolder.open(folder))
    if not opened:
        faults.raise_all()
    names = [folder.workflow.name for folder in opened]
    for name in names:
        if names.count(name) > 1:
            raise ChironError("same-name", f"two of the workflows are called {name}: rename one")
    return opened


def single(
    name: str,
    folders: Sequence[Path],
    run_options: RunOptions,
    *,
    as_json: bool,
    samples: int | None = None,
) -> None:
    """Run the verb `name`: measure, write its results and print them as tables."""
    say_what_is_left_out([PICTURES])
    faults = measure([name], folders, run_options, run_options.scale(samples))
    folder = read_run(run_options.output)
    results = results_of([name], folder)
    write_results(results, folder, run_options.output)
    for result in results:
        shown = table_of(result)
        table(shown.title, shown.columns, shown.rows, shown.notes, shown.keys)
    warn(folder.warnings)
    if results:
        progress(f"wrote {', '.join(f'{run_options.output / r.experiment}.json' for r in results)}")
    if as_json and results and not faults:  # with faults, their JSON is the only document
        emit(results[0], None, as_json)
    faults.raise_all()


def say_what_is_left_out(parts: Iterable[str]) -> None:
    """Print which of `parts` lack a library; call this before anything that takes minutes."""
    for line in left_out(parts):
        progress(line)


def _keep_given(folders: Sequence[WorkflowFolder], run_options: RunOptions) -> None:
    """Copy the user's profile and platform to their places in the output folder."""
    if run_options.profile:
        if len(folders) > 1:
            message = (
                f"{run_options.profile} is of one workflow: put each in OUTPUT/WORKFLOW/ instead"
            )
            raise ChironError("one-profile", message)
        file = run_options.output / folders[0].workflow.name / PROFILE_FILE
        write_atomically(file, dump(read_profile(run_options.profile)))
    if run_options.platform:
        write_atomically(
            run_options.output / PLATFORM_FILE, dump(read_platform(run_options.platform))
        )


def begin(output: Path) -> Machine:
    """Return this machine and the commit of its code, for the results in `output`.

    Prints the measured commit, or why the results are no evidence. In that case it raises
    ``no-evidence`` if `output` is in the folder of cited results.
    """
    machine = this_machine()
    require_evidence(machine, output)
    progress(no_evidence([machine.commit]) or f"measuring commit {machine.commit}")
    return machine


def command_line() -> str:
    """Return the typed command without its output folder, to be stored with the results."""
    words = [word for word in sys.argv[1:] if not word.startswith("--output=")]
    for flag in ("-o", "--output"):
        if flag in words:
            at = words.index(flag)
            del words[at : at + 2]
    return shlex.join(["chiron", *words])
