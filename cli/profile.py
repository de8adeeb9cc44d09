"""`chiron profile`: runs each function of a workflow alone and traced, and records its periods."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from chiron.adaptation.alone import deploying
from chiron.cli import options
from chiron.cli.artefacts import emit_own, read_profile
from chiron.cli.output import next_step, progress, table, warn
from chiron.cli.place import Place, place
from chiron.deployment.launcher import Launcher
from chiron.deployment.local_launcher import LocalLauncher
from chiron.generator.generate import Sources
from chiron.generator.stores import StorePlace
from chiron.profiler.compare import Changes
from chiron.profiler.compare import compare as profile_changes
from chiron.profiler.profile import IncompleteProfileError, profile
from chiron.workflow.chrome_trace import profile_trace
from chiron.workflow.documents import write_atomically
from chiron.workflow.folder import WorkflowFolder


@click.command("profile")
@options.workflow_folder
@place(options.gateway_url_inside, options.store, options.local)
@click.option(
    "--local-launcher",
    is_flag=True,
    help="Run the functions here, without any gateway; .secrets/ of the current folder has their "
    "secrets.",
)
@click.option(
    "--compare", type=click.Path(path_type=Path), help="An older profile.json: show what changed."
)
@click.option("--trace", type=options.Output(), help="Also write the periods as a Chrome trace.")
@options.output("profile.json")
@options.as_json
def command(
    folder: Path,
    place: Place,
    local_launcher: bool,
    compare: Path | None,
    trace: Path | None,
    output: Path,
    as_json: bool,
) -> None:
    """Run every function of the workflow in DIR alone, traced, and record its periods.

    With --local-launcher the functions run as processes of this interpreter, and where strace is
    missing their periods are those that the probe of the GIL sees.

    \b
    Example:
      chiron profile benchmarks/finra --local
    """
    if local_launcher and (place.local or place.gateway):
        raise click.UsageError("--local-launcher uses no gateway: leave out --local and --gateway")
    opened = WorkflowFolder.open(folder)
    sources = Sources.read(opened)
    old = read_profile(compare) if compare else None
    with ExitStack() as stack:
        here: Launcher | LocalLauncher = (
            LocalLauncher(progress, store=StorePlace.read(place.store, os.environ))
            if local_launcher
            else stack.enter_context(place.connect())
        )
        if isinstance(here, Launcher):
            stack.enter_context(deploying(here.gateway, opened.workflow.name))
        warn((here.sources(opened) if isinstance(here, Launcher) else sources).warnings)
        try:
            measured = profile(opened, here, progress=progress, probe_alone=local_launcher)
        except IncompleteProfileError as error:
            if error.profile.functions:
                emit_own(error.profile, output, as_json=False)
            raise
    emit_own(measured, output, as_json)
    if trace:
        write_atomically(trace, json.dumps(profile_trace(measured)) + "\n")
        progress(f"wrote {trace}")
    if old:
        _show(profile_changes(old, measured))
    if local_launcher:
        place = replace(place, local="process")
    next_step(shlex.join(["chiron", "calibrate", *place.flags]))


def _show(changes: Changes) -> None:
    """Show the changes since an older profile, corrected for the machine's drift."""

    def shown(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    rows = [
        [
            one.function,
            shown(one.old_ms, ".2f"),
            shown(one.new_ms, ".2f"),
            shown(None if one.ratio is None else one.ratio - 1, "+.1%"),
            *(shown(one.kinds_ms.get(kind), "+.2f") for kind in ("cpu", "native", "block")),
            ", ".join(one.facts) or "-",
        ]
        for one in changes.changes
    ]
    columns = ["function", "old", "new", "change", "cpu", "native", "block", "facts"]
    table("since the older profile, times in ms", columns, rows)
