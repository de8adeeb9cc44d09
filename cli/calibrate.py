"""`chiron calibrate`: the constants of the place that the wraps run on, measured."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from cli import options
from cli.output import emit, next_step, progress
from cli.place import Place, place
from profiler.calibrate import calibrate


@click.command("calibrate")
@place(options.gateway_url_inside, options.local)
@options.output("platform.json")
@options.as_json
def command(place: Place, output: Path, as_json: bool) -> None:
    """Measure what invocations, processes and threads cost here, with wraps that do nothing.

    \b
    Example:
      chiron calibrate --local
    """
    with place.connect() as launcher:
        platform = calibrate(launcher, progress=progress)
    emit(platform, output, as_json)
    if platform.assumed:
        progress(f"assumed and not measured: {', '.join(platform.assumed)}")
    kept = [] if output == Path("platform.json") else ["--platform", str(output)]
    next_step(shlex.join(["chiron", "schedule", "DIR", "--slo", "200ms", *kept]))
