"""`chiron schedule`: the cheapest plan that the prediction says meets the SLO."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options
from cli.artefacts import read_platform, read_profile
from cli.output import emit, next_step, progress
from scheduler.schedule import schedule
from workflow.folder import WorkflowFolder
from workflow.plan import Mechanism, Model


@click.command("schedule")
@options.workflow_folder
@options.slo
@options.profile
@options.platform
@options.model
@options.mechanism
@options.output("plan.json")
@options.as_json
def command(
    folder: Path,
    slo: float,
    profile: Path,
    platform: Path,
    model: Model,
    mechanism: Mechanism,
    output: Path,
    as_json: bool,
) -> None:
    """Plan the workflow in DIR for a latency SLO; needs no function and no gateway.

    An SLO that cannot be met is an answer too: the fastest plan found, with meets_slo false.

    \b
    Example:
      chiron schedule benchmarks/finra --slo 200ms
    """
    plan = schedule(
        WorkflowFolder.open(folder).workflow,
        read_profile(profile),
        read_platform(platform),
        slo,
        model=model,
        mechanism=mechanism,
    )
    for line in plan.why:
        progress(line)
    emit(plan, output, as_json)
    next_step(f"chiron generate {output}")
