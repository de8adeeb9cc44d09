"""`chiron predict`: predicts the latency of one plan, or of many, one JSON line each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.artefacts import measured, read_plan
from chiron.cli.load import load_of, show_load
from chiron.cli.output import data, emit, progress, table, warn, write_timeline
from chiron.predictor.explain import Explanation, Parts, PayloadExplanation, explanation
from chiron.predictor.predict import predict
from chiron.predictor.waits import waits_of
from chiron.scheduler.load import predict_load
from chiron.workflow.documents import Document, parse_json, validate
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.load import Load
from chiron.workflow.model import Workflow
from chiron.workflow.plan import MOST_REPLICAS, Plan, Prediction
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile
from chiron.workflow.trace import task_of

Known = tuple[Workflow, Profile, Platform]
_PARTS = tuple(Parts.model_fields)


@click.command("predict")
@options.workflow_folder
@options.profile
@options.platform
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="One plan.")
@click.option("--plans", "plans_file", type=click.Path(path_type=Path), help="A plan a line.")
@options.rate
@click.option(
    "--clients", type=options.WholeNumber(1, 10_000), help="Clients that send all the time."
)
@click.option(
    "--replicas",
    type=options.WholeNumber(1, MOST_REPLICAS),
    help="Replicas of each wrap under load (default: as the plan has them).",
)
@options.percentile
@click.option("--explain", "explained", is_flag=True, help="Say where the time goes.")
@options.trace
@options.timeline
@options.as_json
def command(
    folder: Path,
    profile: Path | None,
    platform: Path | None,
    plan_file: Path | None,
    plans_file: Path | None,
    rate: float | None,
    clients: int | None,
    replicas: int | None,
    percentile: float,
    explained: bool,
    trace: Path | None,
    timeline_file: Path | None,
    as_json: bool,
) -> None:
    """Predict the latency of plans of the workflow in DIR; needs no function and no gateway.

    \b
    Example:
      chiron predict benchmarks/finra --plan plan.json
      chiron predict benchmarks/finra --plan plan.json --rate 50/s --replicas 2
    """
    if (plan_file is None) == (plans_file is None):
        raise click.UsageError("name either --plan or --plans")
    if plans_file is not None and (explained or trace or timeline_file):
        raise click.UsageError("--explain, --trace and --timeline are for one --plan")
    load = load_of(rate, clients)
    if load and (explained or trace or timeline_file):
        raise click.UsageError("--explain, --trace and --timeline are of one request: no load")
    if replicas and not load:
        raise click.UsageError("--replicas serve a load: add --rate or --clients")
    opened = WorkflowFolder.open(folder)
    known = opened.workflow, *measured(opened, profile, platform)
    if plans_file is not None:
        for plan in _lines(plans_file, opened.workflow):
            found = _of(plan, known, load, replicas, percentile)
            data(f"{found.model_dump_json(exclude_none=True)}\n")
    elif plan_file is not None:
        plan = _checked(read_plan(plan_file), opened.workflow, f"plan {plan_file}")
        if load:
            _show_under_load(plan.with_replicas(replicas), known, load, percentile, as_json)
        else:
            files = trace, timeline_file
            _show_explained(plan, known, percentile, files, explained=explained, as_json=as_json)


def _of(
    plan: Plan, known: Known, load: Load | None, replicas: int | None, percentile: float
) -> Document:
    if load:
        return predict_load(plan.with_replicas(replicas), *known, load, percentile)
    return predict(plan, *known, percentile)


def _show_under_load(
    plan: Plan, known: Known, load: Load, percentile: float, as_json: bool
) -> None:
    found = predict_load(plan, *known, load, percentile)
    if as_json:
        emit(found, None, as_json)
    else:
        show_load(plan, found)
        _, functions, place = known
        warn([*functions.warnings, *place.warnings])


def _show_explained(
    plan: Plan,
    known: Known,
    percentile: float,
    files: tuple[Path | None, Path | None],
    *,
    explained: bool,
    as_json: bool,
) -> None:
    """Show the prediction of one request, and write its timeline to --trace and --timeline."""
    found, timelines = explanation(plan, *known, percentile)
    if any(files) and len(found.payloads) > 1:
        progress(f"the timeline is that of {found.payloads[0].payload}")
    write_timeline(timelines[0], *files)
    if as_json:
        emit(found if explained else found.prediction, None, as_json)
        return
    _show(plan, found.prediction)
    if explained:
        _show_explanation(found)
    for wait in waits_of(known[0]):
        progress(wait.line)
    warn(found.prediction.warnings)


def _lines(path: Path, workflow: Workflow) -> Iterator[Plan]:
    """Yield the plans of a file, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        message = f"plans {path} cannot be read: {error.strerror}"
        raise ChironError("missing-file", message) from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            what = f"line {number} of {path}"
            yield _checked(validate(Plan, parse_json(line, what), what), workflow, what)


def _checked(plan: Plan, workflow: Workflow, what: str) -> Plan:
    """Return `plan` if it belongs to `workflow`; else raise an error with the plan's number."""
    try:
        plan.check_against(workflow)
    except ChironError as error:
        raise error.within(what) from None
    return plan


def _show(plan: Plan, prediction: Prediction) -> None:
    found = {"p50": (prediction.latency_ms, prediction.low_ms, prediction.high_ms)}
    if within := prediction.within:
        found[f"p{within.percentile:g}"] = within.ms, within.low_ms, within.high_ms
    rows = [[name, *(f"{ms:.2f}" for ms in figures)] for name, figures in found.items()]
    columns = ["of requests", "predicted ms", "low", "high"]
    table(f"{plan.workflow}, {plan.planner}, {plan.mechanisms}", columns, rows)


def _show_explanation(explanation: Explanation) -> None:
    if explanation.tasks:
        rows = [
            [each.task, f"{each.requests:.1%}", f"{each.runs:.2f}", f"{each.failed:.1%}"]
            for each in explanation.tasks
        ]
        table("what is run", ["task", "of requests", "runs a request", "failed"], rows)
    names = (name.removesuffix("_ms").replace("_", " ") for name in _PARTS)
    columns = ["the request waits for", *names]
    for payload in explanation.payloads:
        which = f" with {payload.payload}" if len(explanation.payloads) > 1 else ""
        table(f"where the time goes{which}, ms", columns, list(_rows(payload)))


def _rows(explanation: PayloadExplanation) -> Iterator[list[str]]:
    """Return rows: the request's critical path, then a row for each task."""
    way = Parts(network_ms=explanation.request_ms)
    yield ["its own way", *(f"{getattr(way, name):.2f}" for name in _PARTS)]
    together: dict[str, list[Parts]] = {}
    for step in explanation.steps:
        task = task_of(step.task) or step.task
        together.setdefault(f"{task} in {step.wrap}", []).append(step.parts)
    for what, each in together.items():
        times = f", {len(each)} times" if len(each) > 1 else ""
        parts = (sum(getattr(parts, name) for parts in each) for name in _PARTS)
        yield [f"{what}{times}", *(f"{part_ms:.2f}" for part_ms in parts)]
