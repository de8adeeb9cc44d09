"""`chiron evaluate throughput`: maximum throughput, and latency under load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli import options
from cli.evaluate_options import Wanted, folders_argument, measuring, single


@click.command("throughput")
@folders_argument
@measuring
@options.as_json
def command(folders: tuple[Path, ...], as_json: bool, **wanted: Any) -> None:
    """Find the most requests per second of every model, and its latency at constant rates.

    \b
    Example:
      chiron evaluate throughput benchmarks/finra --local
    """
    single("throughput", folders, Wanted(**wanted), as_json=as_json)
