"""`chiron schedule`: the cheapest plan that the prediction says meets the SLO."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cli import options
from cli.artefacts import measured
from cli.choices import choices
from cli.output import emit, next_step, progress, table
from scheduler.choices import Choices, MechanismChoice
from scheduler.folder_settings import read_settings
from scheduler.options import Job
from scheduler.pareto import ParetoFront, pareto
from scheduler.pareto_picture import draw
from scheduler.schedule import job_of, schedule_as
from workflow.folder import WorkflowFolder

#: Exit status where no plan meets the SLO.
EXIT_MISSED = 3
#: From so many tasks on a search can take seconds.
_MANY_TASKS = 100
_COLUMNS = ["plan", "latency", "CPUs", "MiB", "wraps", "SLO"]


@click.command("schedule")
@options.workflow_folder
@options.slo
@options.profile
@options.platform
@choices
@click.option("--pareto", "front", is_flag=True, help="All plans that no other one dominates.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="plan.json, or with --pareto pareto.json or a .png for a picture too.",
)
@click.option("--best-effort", is_flag=True, help="Exit with 0 where the SLO is missed too.")
@options.as_json
def command(
    folder: Path,
    slo: float,
    profile: Path | None,
    platform: Path | None,
    choices: Choices,
    front: bool,
    output: Path | None,
    best_effort: bool,
    as_json: bool,
) -> int:
    """Plan the workflow in DIR for a latency SLO; needs no function and no gateway.

    Where the SLO cannot be met the fastest plan found is written, with meets_slo false, and the
    exit status is 3; with --best-effort it is 0.
    What wishes.json in DIR keeps apart or together stays so.

    \b
    Example:
      chiron schedule benchmarks/finra --slo 200ms
    """
    opened = WorkflowFolder.open(folder)
    functions, place = measured(folder, profile, platform)
    settings = read_settings(opened, os.environ)
    if front:
        job = job_of(
            opened.workflow,
            functions,
            place,
            slo,
            wishes=settings.wishes,
            environments=settings.environments,
            secrets=settings.secrets,
            limits=choices.limits,
            headroom=choices.headroom,
        )
        _pareto(job, slo, choices.mechanism, output or Path("pareto.json"), as_json)
        return 0
    if len(opened.workflow.tasks) >= _MANY_TASKS:
        progress(f"searching plans of {len(opened.workflow.tasks)} tasks")
    plan = schedule_as(opened.workflow, functions, place, slo, choices, settings)
    for line in plan.why:
        progress(line)
    output = output or Path("plan.json")
    emit(plan, output, as_json)
    next_step(f"chiron generate {output}")
    return 0 if plan.meets_slo or best_effort else EXIT_MISSED


def _pareto(
    job: Job, slo_ms: float, mechanism: MechanismChoice, output: Path, as_json: bool
) -> None:
    front = pareto(job, slo_ms, mechanism)
    if output.suffix.lower() == ".png":
        draw(front, output)
        progress(f"wrote {output}")
        output = output.with_suffix(".json")
    emit(front, output, as_json)
    _show(front)


def _show(front: ParetoFront) -> None:
    rows = [
        [
            str(number),
            f"{each.latency_ms:.1f}",
            str(each.cpus),
            str(each.memory_mib),
            str(len(each.plan.wraps)),
            "met" if each.plan.meets_slo else "missed",
        ]
        for number, each in enumerate(front.plans, start=1)
    ]
    title = f"{front.workflow}, plans that no other one dominates, SLO {front.slo_ms:g} ms"
    table(title, _COLUMNS, rows)
