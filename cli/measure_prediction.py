"""Measures plans at random for `chiron evaluate prediction`, and keeps every row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from cli.evaluate_options import command_line, require_distinct
from cli.output import progress
from evaluation.bench.journal import Journal
from evaluation.bench.leftovers import Leftovers
from evaluation.bench.machine import target_of, this_machine
from evaluation.bench.settings import open_run
from evaluation.bench.setup import PLATFORM_FILE, Place, place_of, require_profiles
from evaluation.bench.variants import MECHANISMS
from evaluation.prediction.batches import measure_batch, missing_batches
from evaluation.prediction.measured import MeasuredRow
from evaluation.prediction.random_plans import random_plans
from evaluation.prediction.stored import RowSettings, keep_workflow, profile_file
from generator.launcher import Launcher
from profiler.profile import profile
from workflow.documents import dump, write_atomically
from workflow.folder import WorkflowFolder
from workflow.plan import Mechanism, Plan
from workflow.platform import Platform
from workflow.profile import Profile

#: Processes that a random plan runs at once in a wrap at most: twice the cores of a small machine.
_MOST_PROCESSES = 4


@dataclass(frozen=True)
class _Batch:
    """Plans of one workflow that are measured side by side, and where their rows go."""

    folder: WorkflowFolder
    mechanism: Mechanism
    journal: Journal[MeasuredRow]
    plans: Mapping[str, Plan]
    profile: Profile


def measure_rows(
    path: Path,
    folders: Sequence[WorkflowFolder],
    launcher: Launcher,
    settings: RowSettings,
    *,
    plans: int,
    platform: Platform | None,
) -> None:
    """Profile every workflow, and measure `plans` plans of both mechanisms into `path`.

    What `path` has already is not measured again. Workflows and mechanisms take turns, a batch
    each, so that a run that is stopped has rows of all, and a slow hour falls on all alike.

    Raises
    ------
    ChironError
        ``other-run`` where `path` has rows of other settings, machines or workflows, and what
        calibrating, profiling and deploying raise.
    """
    require_distinct(folders)
    require_profiles(profile_file(path, each.workflow.name) for each in folders)
    open_run(path, settings, this_machine(), target_of(launcher.gateway), command_line())
    if platform is not None:
        write_atomically(path / PLATFORM_FILE, dump(platform))
    place = place_of(launcher, path, progress)
    leftovers = Leftovers(path / "deployed.json")
    series = [
        batches
        for folder in folders
        for batches in _missing(path, folder, launcher, plans, settings.seed)
    ]
    for batch in filter(None, chain.from_iterable(zip_longest(*series))):
        _measure(batch, place, leftovers, settings.samples)
    progress(f"wrote {path}")


def _missing(
    path: Path, folder: WorkflowFolder, launcher: Launcher, plans: int, seed: int
) -> Iterator[list[_Batch]]:
    """The batches of one workflow that are not measured yet, by mechanism."""
    functions, journal = keep_workflow(
        path, folder, lambda: profile(folder, launcher, progress=progress)
    )
    measured = [row.plan for row in journal.rows()]
    for mechanism in MECHANISMS:
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


def _measure(batch: _Batch, place: Place, leftovers: Leftovers, samples: int) -> None:
    def say(line: str) -> None:
        progress(f"{batch.folder.workflow.name} {batch.mechanism}: {line}")

    say(f"measuring {', '.join(batch.plans)}")
    named = Place(place.launcher, place.platform, say)
    rows = measure_batch(
        batch.folder, named, batch.plans, leftovers, profile=batch.profile, samples=samples
    )
    for row in rows:
        batch.journal.append(row)
