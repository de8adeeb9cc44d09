"""`chiron evaluate cpu`: CPU time that requests take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli import options
from cli.evaluate_options import Wanted, folders_argument, measuring, single


@click.command("cpu")
@folders_argument
@measuring
@options.as_json
def command(folders: tuple[Path, ...], as_json: bool, **wanted: Any) -> None:
    """Measure the CPU time that a request takes from every model's sandboxes.

    \b
    Example:
      chiron evaluate cpu benchmarks/finra --local
    """
    single("cpu", folders, Wanted(**wanted), as_json=as_json, samples=200)
