"""`chiron evaluate gain`: compares a workflow's present deployment with chiron's plan."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.calibrate import kept_platforms
from chiron.cli.output import next_step, progress, table
from chiron.cli.place import Place, place
from chiron.evaluation.bench.settings import Settings
from chiron.evaluation.bench.variants import OURS, Variant
from chiron.evaluation.commands.options import RunOptions, measure, say_what_is_left_out
from chiron.evaluation.experiments.metrics import LATENCY
from chiron.evaluation.experiments.recorded import read_run
from chiron.evaluation.optional import PICTURES
from chiron.evaluation.report.gain import Gain, gain_of
from chiron.evaluation.report.page import write_report
from chiron.predictor.mechanisms import DEFAULT_MECHANISM
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder

#: The usual deployment: one function in each sandbox.
_BEFORE = Variant("one-to-one", DEFAULT_MECHANISM)
_AFTER = Variant(OURS, DEFAULT_MECHANISM)
#: Requests to each of the two: enough to tell them apart by a tenth.
_REQUESTS = 36


@click.command("gain")
@options.workflow_folder
@options.slo
@click.option("--samples", type=click.IntRange(min=1), help="Requests one at a time.")
@place(options.local)
@options.output("out")
def command(folder: Path, slo: float, samples: int | None, place: Place, output: Path) -> None:
    """Measure the workflow in DIR as it is and as chiron deploys it, and say what to take.

    Both stand side by side and take turns. All else that was measured is in the report.

    \b
    Example:
      chiron evaluate gain benchmarks/finra --slo 100ms --local
    """
    workflow = WorkflowFolder.open(folder).workflow.name
    say_what_is_left_out([PICTURES])
    settings = Settings(
        planners=(_BEFORE.planner, _AFTER.planner),
        mechanisms=(DEFAULT_MECHANISM,),
        slo_ms=slo,
        quick=True,
    )
    run_options = RunOptions(settings, samples, None, None, place, output, kept_platforms())
    scale = replace(run_options.scale(None), replicate=False, requests=samples or _REQUESTS)
    faults = measure(["latency"], [folder], run_options, scale)
    faults.raise_all()
    report = write_report(output)
    found = gain_of(LATENCY.of(read_run(output)), workflow, _BEFORE.label, _AFTER.label)
    if found is None:
        message = f"{workflow} was not measured both ways: {report} has the reason"
        raise ChironError("nothing-deployed", message, status=502)
    _show(found, slo, report)
    deploy = ["chiron", "deploy", str(folder), "--slo", f"{slo:g}ms", *place.flags]
    next_step(shlex.join(deploy))


def _show(found: Gain, slo_ms: float, report: Path) -> None:
    title = f"{found.before.workflow}, SLO {slo_ms:g} ms"
    table(title, found.columns, list(found.rows), words=(0, len(found.columns) - 1))
    for sentence in found.sentences:
        progress(sentence)
    progress("the answers of both were those of the functions alone")
    progress(f"the breakdown and all figures: {report}")
