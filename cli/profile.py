"""`chiron profile`: what each function of a workflow does, recorded solo and traced."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options
from cli.output import emit, next_step, progress
from cli.place import connect
from profiler.profile import profile
from workflow.folder import WorkflowFolder


@click.command("profile")
@options.workflow_folder
@options.gateway
@options.tls_no_verify
@options.local
@options.output("profile.json")
@options.as_json
def command(
    folder: Path,
    gateway: str | None,
    tls_no_verify: bool,
    local: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Run every function of the workflow in DIR alone, traced, and record its periods.

    \b
    Example:
      chiron profile benchmarks/finra --local
    """
    opened = WorkflowFolder.open(folder)
    with connect(gateway, local=local, tls_no_verify=tls_no_verify) as launcher:
        emit(profile(opened, launcher, progress=progress), output, as_json)
    next_step("chiron calibrate" + (" --local" if local else ""))
