"""`chiron evaluate memory`: memory of the sandboxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli import options
from cli.evaluate_options import Wanted, folders_argument, measuring, single


@click.command("memory")
@folders_argument
@measuring
@options.as_json
def command(folders: tuple[Path, ...], as_json: bool, **wanted: Any) -> None:
    """Measure the memory of every model's sandboxes, every page once, while requests run.

    \b
    Example:
      chiron evaluate memory benchmarks/finra --local
    """
    single("memory", folders, Wanted(**wanted), as_json=as_json)
