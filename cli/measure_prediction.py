"""Measures plans at random for `chiron evaluate prediction`, and keeps every row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from cli.output import progress
from evaluation.prediction.measured import measure_plans
from evaluation.prediction.random_plans import random_plans
from evaluation.prediction.stored import add_row, add_workflow, begin
from generator.launcher import Launcher
from profiler.profile import profile
from workflow.folder import WorkflowFolder
from workflow.plan import Mechanism
from workflow.platform import Platform

#: Processes that a random plan runs at once in a wrap at most: twice the cores of a small machine.
_MOST_PROCESSES = 4


def measure_rows(
    path: Path,
    folders: Sequence[WorkflowFolder],
    launcher: Launcher,
    platform: Platform,
    *,
    plans: int,
    samples: int,
    seed: int,
) -> None:
    """Profile every workflow, and measure `plans` plans of both mechanisms into `path`."""
    begin(path, platform)
    for folder in folders:
        name = folder.workflow.name
        functions = profile(folder, launcher, progress=progress)
        add_workflow(path, folder, functions)
        for mechanism in get_args(Mechanism):
            progress(f"{name}, {mechanism}")
            drawn = random_plans(
                folder.workflow,
                functions,
                mechanism,
                count=plans,
                most_processes=_MOST_PROCESSES,
                seed=seed,
            )
            for row in measure_plans(
                folder,
                launcher,
                list(drawn),
                functions,
                platform,
                samples=samples,
                progress=progress,
            ):
                add_row(path, name, row)
    progress(f"wrote {path}")
