"""`chiron evaluate predictor-speed`: how long a prediction takes, in Python and compiled."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options
from cli.output import emit, progress, table
from evaluation.predictor_speed import Speeds, measure_speed

_COLUMNS = ["process", "engine", "median", "p25", "p75", "samples"]


@click.command("predictor-speed")
@options.output("out")
@options.as_json
def command(output: Path, as_json: bool) -> None:
    """Time the simulation of one process of many threads.

    \b
    Example:
      chiron evaluate predictor-speed
    """
    speeds = measure_speed()
    emit(speeds, output / "predictor-speed.json", as_json)
    _show(speeds)


def _show(speeds: Speeds) -> None:
    rows = [
        [
            f"{each.threads} threads of {each.periods} periods",
            each.engine,
            f"{each.median_us:.1f}",
            f"{each.low_us:.1f}",
            f"{each.high_us:.1f}",
            str(each.samples),
        ]
        for each in speeds.speeds
    ]
    table("one simulation, times in us", _COLUMNS, rows)
    progress(f"the compiled kernel is loaded in {speeds.load_ms:.0f} ms")
