"""`chiron evaluate latency`: measures deployment models against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli import options
from cli.evaluate_options import Wanted, folders_argument, measuring, single


@click.command("latency")
@folders_argument
@measuring
@options.as_json
def command(folders: tuple[Path, ...], as_json: bool, **wanted: Any) -> None:
    """Deploy a plan of every model of the workflows in DIR... and measure them in turn.

    \b
    Example:
      chiron evaluate latency benchmarks/finra --slo 100ms --local
    """
    single("latency", folders, Wanted(**wanted), as_json=as_json, samples=100)
