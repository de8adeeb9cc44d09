"""`chiron profile`: what each function of a workflow does, recorded solo and traced."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from cli import options
from cli.output import emit, next_step, progress
from cli.place import connect
from generator.harness import Harness
from profiler.launcher import SoloLauncher
from profiler.profile import IncompleteProfileError, profile
from workflow.folder import WorkflowFolder


@click.command("profile")
@options.workflow_folder
@options.gateway
@options.tls_no_verify
@options.local
@click.option("--harness", is_flag=True, help="Run the functions here, without any gateway.")
@options.output("profile.json")
@options.as_json
def command(
    folder: Path,
    gateway: str | None,
    tls_no_verify: bool,
    local: bool,
    harness: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Run every function of the workflow in DIR alone, traced, and record its periods.

    With --harness the functions run as processes of this interpreter, and where strace is missing
    their periods are those that the probe of the GIL sees.

    \b
    Example:
      chiron profile benchmarks/finra --local
    """
    opened = WorkflowFolder.open(folder)
    with ExitStack() as stack:
        place: SoloLauncher = (
            Harness(progress)
            if harness
            else stack.enter_context(connect(gateway, local=local, tls_no_verify=tls_no_verify))
        )
        try:
            measured = profile(opened, place, progress=progress, probe_alone=harness)
        except IncompleteProfileError as error:
            if error.profile.functions:
                emit(error.profile, output, as_json=False)
            raise
    emit(measured, output, as_json)
    next_step("chiron calibrate" + (" --local" if local or harness else ""))
