"""`chiron schedule`: finds the cheapest plan that is predicted to meet the SLO."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.artefacts import emit_own, measured
from chiron.cli.load import show_load
from chiron.cli.main import EXIT_MISSED
from chiron.cli.options import choices
from chiron.cli.output import emit, next_step, progress, table, warn
from chiron.scheduler.chance import chance, in_words
from chiron.scheduler.choices import Choices, MechanismChoice
from chiron.scheduler.folder_settings import read_settings
from chiron.scheduler.options import Job, Option
from chiron.scheduler.pareto import considered, pareto, undominated
from chiron.scheduler.picture import Picture, draw
from chiron.scheduler.planners import DEFAULT_PLANNER, searched
from chiron.scheduler.prices import PAPER_PRICES, Prices
from chiron.scheduler.replicas import assess_load, considered_load, schedule_load
from chiron.scheduler.schedule import assess, job_of, schedule
from chiron.scheduler.strategies import memory_mib
from chiron.workflow.documents import read_document
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.load import Load
from chiron.workflow.plan import Plan

#: What CPUs and memory cost, in the folder of the workflow.
PRICES_FILE = "prices.json"
#: From so many tasks on a search can take seconds.
_MANY_TASKS = 100
#: Up to so many plans that are surer are named, until one is this sure.
_SURER, _SURE = 3, 0.95
#: For how long plans to draw beside the chosen one are looked for, in seconds.
_PICTURE_S = 1.0


@click.command("schedule")
@options.workflow_folder
@options.slo
@options.rate
@options.profile
@options.platform
@choices
@click.option("--pareto", "front", is_flag=True, help="All plans that no other one dominates.")
@click.option(
    "-o",
    "--output",
    type=options.Output(),
    help="plan.json, or with --pareto pareto.json or a .png for a picture too.",
)
@click.option(
    "--prices",
    "prices_file",
    type=click.Path(path_type=Path),
    help="What CPUs and memory cost (default: prices.json in DIR, else Chiron's paper).",
)
@click.option("--best-effort", is_flag=True, help="Exit with 0 where the SLO is missed too.")
@options.as_json
def command(
    folder: Path,
    slo: float,
    rate: float | None,
    profile: Path | None,
    platform: Path | None,
    choices: Choices,
    front: bool,
    output: Path | None,
    prices_file: Path | None,
    best_effort: bool,
    as_json: bool,
) -> int:
    """Plan the workflow in DIR for a latency SLO; needs no function and no gateway.

    Where the SLO cannot be met the fastest plan found is written, with meets_slo false, and the
    exit status is 3; with --best-effort it is 0.
    What constraints.json in DIR keeps apart or together stays so.
    What other plans would cost is shown, and drawn beside the plan where matplotlib is installed.
    With --rate the plan and its replicas keep the SLO while requests arrive at that rate.

    \b
    Example:
      chiron schedule benchmarks/finra --slo 200ms
      chiron schedule benchmarks/finra --slo 200ms --rate 50/s
    """
    if front and rate is None and not searched(choices.planner):
        found = f"the plans that {DEFAULT_PLANNER} finds: leave out --planner {choices.planner}"
        raise click.UsageError(f"--pareto shows {found}")
    opened = WorkflowFolder.open(folder)
    warn(opened.workflow.warnings)
    functions, place = measured(opened, profile, platform)
    prices = _prices(prices_file, folder)
    settings = read_settings(opened, os.environ)
    job = job_of(opened.workflow, functions, place, slo, choices, settings)
    load = Load(per_s=rate) if rate else None
    if front:
        _pareto(job, slo, choices, load, prices, output or Path("pareto.json"), as_json)
        return 0
    tasks = len(opened.workflow.tasks)
    if tasks >= _MANY_TASKS:
        progress(f"searching plans of {tasks} tasks")
    if load is None:
        plan = schedule(opened.workflow, functions, place, slo, choices, settings)
    else:
        plan = schedule_load(opened.workflow, functions, place, slo, load, choices, settings)
    for line in plan.why:
        progress(line)
    warn(plan.predicted.warnings if plan.predicted else ())
    output = output or Path("plan.json")
    emit_own(plan, output, as_json)
    if plan.under_load and not as_json:
        show_load(plan, plan.under_load, prices.cost(plan))
    elif not as_json and tasks < _MANY_TASKS:
        told = None if prices is PAPER_PRICES else prices
        _show_others(plan, job, slo, choices.mechanism, output.with_suffix(".png"), told)
    next_step(shlex.join(["chiron", "generate", str(output), "--workflow", str(folder)]))
    return 0 if plan.meets_slo or best_effort else EXIT_MISSED


def _show_others(
    plan: Plan,
    job: Job,
    slo_ms: float,
    mechanism: MechanismChoice,
    file: Path,
    prices: Prices | None,
) -> None:
    """Show the cost of other plans and how often they keep the SLO; draw them in `file`."""
    found = considered(job, mechanism, _PICTURE_S)
    chosen = Option(plan, plan.predicted.judged_ms, fits=True) if plan.predicted else None
    picture = Picture(plan.workflow, slo_ms, found, job.percentile, chosen)
    show(picture, prices)
    if more := list(_surer(plan, found, job, slo_ms)):
        progress(f"with more CPUs it is kept in more cases: {', '.join(more)}")
    if find_spec("matplotlib"):
        draw(picture, file)
        progress(f"wrote {file}")


def _surer(plan: Plan, found: Sequence[Option], job: Job, slo_ms: float) -> Iterator[str]:
    """Show how often plans with more CPUs keep the SLO, up to near certainty."""
    sure = chance(plan.predicted, slo_ms) if plan.predicted else 0.0
    faster = (option for option in undominated(found) if option.plan.cpus > plan.cpus)
    for option in islice(sorted(faster, key=lambda option: option.plan.cpus), _SURER):
        if sure >= _SURE:
            return
        predicted = assess(option.plan, job, slo_ms).predicted
        share = chance(predicted, slo_ms) if predicted else 0.0
        if share > sure:
            sure = share
            yield f"{option.plan.cpus} CPUs {in_words(share)}"


def _prices(given: Path | None, folder: Path) -> Prices:
    """Return the prices in the file `given`, or in `folder`, if any."""
    file = given or folder / PRICES_FILE
    return read_document(Prices, file, "prices") if given or file.exists() else PAPER_PRICES


def _pareto(
    job: Job,
    slo_ms: float,
    choices: Choices,
    load: Load | None,
    prices: Prices,
    output: Path,
    as_json: bool,
) -> None:
    finished: Callable[[Plan, Job, float], Plan] = assess
    if load is None:
        found = considered(job, choices.mechanism)
    else:
        found = considered_load(job, choices, load, slo_ms)
        finished = partial(assess_load, load=load)
        if not found:
            lower = "ask for a lower rate, or plan for a platform with more cores"
            raise ChironError("too-much", f"no plan bears {load.shown}: {lower}")
    picture = Picture(job.workflow.name, slo_ms, found, job.percentile, load=load)
    if output.suffix.lower() == ".png":
        draw(picture, output)
        progress(f"wrote {output}")
        output = output.with_suffix(".json")
    front = pareto(found, job, slo_ms, prices, finished)
    emit(front, output, as_json)
    show(picture, prices)
    warn(line for each in front.plans if (p := each.plan.predicted) for line in p.warnings)


#: The longest bar, in characters.
_WIDTH = 32
#: Plans that are shown at most.
_ROWS = 16


def show(picture: Picture, prices: Prices | None = None) -> None:
    """Show the Pareto front with the chosen plan marked and the SLO across the bars."""
    plans = picture.front
    longest_ms = max(option.judged_ms for option in plans)
    scale_ms = max(longest_ms, picture.slo_ms) if picture.slo_ms < 2 * longest_ms else longest_ms
    columns = ["plan", "CPUs", "MiB", "wraps", f"p{picture.percentile:g} ms"]
    rows = [
        [
            "> chosen" if picture.is_chosen(option) else "",
            str(option.plan.allocated_cpus),
            str(memory_mib(option.plan)),
            str(len(option.plan.wraps)),
            f"{option.judged_ms:.1f}",
        ]
        for option in _some(plans, picture)
    ]
    if prices is not None:
        columns += ["replicas", f"{prices.currency}/h"]
        for row, option in zip(rows, _some(plans, picture), strict=True):
            replicas = sum(wrap.replicas for wrap in option.plan.wraps)
            row += [str(replicas), f"{prices.cost(option.plan).per_hour:.4g}"]
    for row, option in zip(rows, _some(plans, picture), strict=True):
        row.append(bar(option.judged_ms / scale_ms, picture.slo_ms / scale_ms))
    columns.append(f"0 to {scale_ms:.0f} ms, | SLO")
    table(f"{picture.title}, SLO {picture.slo_ms:g} ms", columns, rows, words=(0, len(columns) - 1))


def bar(share: float, slo_share: float) -> str:
    """Draw a bar over `share` of the width, dotted beyond the SLO, with a mark at the SLO."""
    end, slo = round(share * _WIDTH), round(slo_share * _WIDTH)
    drawn = ["=" if place < slo else "!" for place in range(end)]
    drawn += [" "] * (_WIDTH + 1 - end)
    if slo <= _WIDTH:
        drawn[slo] = "|"
    return "".join(drawn)


def _some(plans: Sequence[Option], picture: Picture) -> Sequence[Option]:
    """Pick plans to show, evenly spaced, including the chosen one."""
    step = -(-len(plans) // _ROWS)
    return [
        option
        for number, option in enumerate(plans)
        if number % step == 0 or number == len(plans) - 1 or picture.is_chosen(option)
    ]
