"""`chiron diff`: shows the differences between two plans."""

from __future__ import annotations

import json
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.artefacts import read_plan
from chiron.cli.output import data, progress
from chiron.scheduler.diff import compare


@click.command("diff")
@click.argument("old", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("new", type=click.Path(path_type=Path, dir_okay=False))
@options.as_json
def command(old: Path, new: Path, as_json: bool) -> None:
    """Show which figures of the plans OLD and NEW differ, and which tasks moved.

    \b
    Example:
      chiron diff old-plan.json plan.json
    """
    lines = compare(read_plan(old), read_plan(new))
    if as_json:
        data(json.dumps(lines, ensure_ascii=False) + "\n")
        return
    for line in lines or ("no difference",):
        progress(line)
