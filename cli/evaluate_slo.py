"""`chiron evaluate slo`: how often requests miss the SLO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli import options
from cli.evaluate_options import Wanted, folders_argument, measuring, single


@click.command("slo")
@folders_argument
@measuring
@options.as_json
def command(folders: tuple[Path, ...], as_json: bool, **wanted: Any) -> None:
    """Count the requests of every model that take longer than faastlane's mean + 10 ms.

    \b
    Example:
      chiron evaluate slo benchmarks/finra --local
    """
    single("slo", folders, Wanted(**wanted), as_json=as_json, samples=500)
