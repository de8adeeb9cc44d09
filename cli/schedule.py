"""`chiron schedule`: the cheapest plan that the prediction says meets the SLO."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import click

from cli import options
from cli.artefacts import read_platform, read_profile
from cli.output import emit, next_step, progress, table
from scheduler.environments import read_environments
from scheduler.limits import COMMUNITY_EDITION_FUNCTIONS, Limits
from scheduler.options import Job
from scheduler.pareto import ParetoFront, pareto
from scheduler.pareto_picture import draw
from scheduler.schedule import MechanismChoice, job_of, schedule
from scheduler.strategies import Strategy
from scheduler.wishes import read_wishes
from workflow.folder import WorkflowFolder
from workflow.plan import Mechanism, Model

_COLUMNS = ["plan", "latency", "CPUs", "MiB", "wraps", "SLO"]


@click.command("schedule")
@options.workflow_folder
@options.slo
@options.profile
@options.platform
@options.model
@click.option(
    "--mechanism",
    type=click.Choice([*get_args(Mechanism), "auto"]),
    default="fork",
    show_default=True,
    help="auto: whichever gives the better plan.",
)
@click.option(
    "--strategy",
    type=click.Choice(get_args(Strategy)),
    default="cost",
    show_default=True,
    help="Of the plans that meet the SLO: fewest CPUs, least CPUs x latency, or fastest.",
)
@click.option("--headroom", is_flag=True, help="The high end of the prediction meets the SLO too.")
@click.option(
    "--max-functions",
    type=click.IntRange(min=1),
    default=COMMUNITY_EDITION_FUNCTIONS,
    show_default=True,
    help="How many functions OpenFaaS deploys.",
)
@click.option("--node-memory", type=click.IntRange(min=1), metavar="MIB", help="Memory of a node.")
@click.option("--pareto", "front", is_flag=True, help="All plans that no other one dominates.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="plan.json, or with --pareto pareto.json or a .png for a picture too.",
)
@options.as_json
def command(
    folder: Path,
    slo: float,
    profile: Path,
    platform: Path,
    model: Model,
    mechanism: MechanismChoice,
    strategy: Strategy,
    headroom: bool,
    max_functions: int,
    node_memory: int | None,
    front: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Plan the workflow in DIR for a latency SLO; needs no function and no gateway.

    An SLO that cannot be met is an answer too: the fastest plan found, with meets_slo false.
    What wishes.json in DIR keeps apart or together stays so.

    \b
    Example:
      chiron schedule benchmarks/finra --slo 200ms
    """
    opened = WorkflowFolder.open(folder)
    functions, place = read_profile(profile), read_platform(platform)
    wishes, limits = read_wishes(folder), Limits(max_functions, node_memory)
    environments = read_environments(opened, os.environ)
    if front:
        job = job_of(
            opened.workflow,
            functions,
            place,
            slo,
            wishes=wishes,
            environments=environments,
            limits=limits,
            headroom=headroom,
        )
        _pareto(job, slo, mechanism, output or Path("pareto.json"), as_json)
        return
    plan = schedule(
        opened.workflow,
        functions,
        place,
        slo,
        model=model,
        mechanism=mechanism,
        strategy=strategy,
        wishes=wishes,
        environments=environments,
        limits=limits,
        headroom=headroom,
    )
    for line in plan.why:
        progress(line)
    output = output or Path("plan.json")
    emit(plan, output, as_json)
    next_step(f"chiron generate {output}")


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
