"""`chiron calibrate`: measures the constants of the place that runs the wraps."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.output import emit, next_step, progress
from chiron.cli.place import Place, place
from chiron.gateway.images import home
from chiron.profiler.calibrate import calibrate
from chiron.profiler.kept_platform import KeptPlatforms
from chiron.workflow.platform import Platform


@click.command("calibrate")
@place(options.gateway_url_inside, options.store, options.local)
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
        kept_platforms().keep(platform, launcher, progress)
    emit(platform, output, as_json)
    for line in _paths(platform):
        progress(line)
    if platform.assumed:
        progress(f"assumed and not measured: {', '.join(platform.assumed)}")
    kept = [] if output == Path("platform.json") else ["--platform", str(output)]
    next_step(shlex.join(["chiron", "schedule", "DIR", "--slo", "200ms", *kept]))


def kept_platforms() -> KeptPlatforms:
    return KeptPlatforms(home() / "platforms")


def _paths(platform: Platform) -> Iterator[str]:
    """Yield the cost of an object by each path, and whether wraps can connect directly."""
    if "direct" not in platform.paths:
        yield "direct connections between wraps are not possible here"
    for path, cost in platform.paths.items():
        yield f"from wrap to wrap, {path}: {cost.ms:.2f} ms + {cost.ms_per_mb:.2f} ms per MB"
