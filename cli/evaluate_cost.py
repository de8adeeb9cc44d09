"""`chiron evaluate cost`: what requests cost by the paper's prices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli import options
from cli.evaluate_options import Wanted, folders_argument, measuring, single


@click.command("cost")
@folders_argument
@measuring
@options.as_json
def command(folders: tuple[Path, ...], as_json: bool, **wanted: Any) -> None:
    """Compute what a million requests of every model cost, by measured latency and memory.

    \b
    Example:
      chiron evaluate cost benchmarks/finra --local
    """
    single("cost", folders, Wanted(**wanted), as_json=as_json, samples=100)
