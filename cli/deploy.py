"""`chiron deploy`: profiles, plans, deploys and measures a workflow for an SLO."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from chiron.adaptation.alone import deploying
from chiron.adaptation.proving import TRIES, deploy_proven
from chiron.cli import options
from chiron.cli.artefacts import (
    own_profile,
    profile_files,
    read_platform,
)
from chiron.cli.calibrate import kept_platforms
from chiron.cli.main import EXIT_MISSED
from chiron.cli.options import choices
from chiron.cli.output import emit, next_step, progress, table, warn
from chiron.cli.place import Place, place
from chiron.deployment.measure import Measurement
from chiron.generator.annotations import DeployedPrediction
from chiron.pipeline.deploy import DeploymentReport, DeploymentRequest
from chiron.scheduler.choices import Choices
from chiron.workflow.documents import held
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.load import Load
from chiron.workflow.plan import Plan
from chiron.workflow.profile import LONGEST_MS


@click.command("deploy")
@options.workflow_folder
@options.slo
@options.rate
@choices
@options.timeout
@options.check
@click.option(
    "--profile", type=click.Path(path_type=Path), help="Use this profile instead of measuring."
)
@options.given_platform
@click.option(
    "--tries",
    type=options.WholeNumber(min=1),
    default=TRIES,
    show_default=True,
    help="How many plans are deployed and measured at most until one keeps the SLO.",
)
@click.option(
    "--prove/--no-prove",
    default=True,
    help="Measure, and try other plans, until one is sure to keep the SLO (default: yes); else "
    "deploy the plan that is predicted to keep it, or the fastest, and exit with 0.",
)
@place(options.gateway_url_inside, options.store, options.local)
@options.output("out")
@options.as_json
def command(
    folder: Path,
    slo: float,
    rate: float | None,
    choices: Choices,
    timeout: float | None,
    check: bool,
    profile: Path | None,
    platform: Path | None,
    tries: int,
    prove: bool,
    place: Place,
    output: Path,
    as_json: bool,
) -> int:
    """Deploy the cheapest plan of the workflow in DIR that is measured to keep the SLO.

    The workflow is profiled and planned, and a plan is deployed and measured until the verdict is
    sure. A profile of the same code, payloads and place is used again, and the platform of this
    place while a probe agrees. If a plan breaks the SLO, or a cheaper plan may keep it, other plans
    are deployed beside it and measured; the switch loses no request. If no plan is measured to keep
    the SLO, the exit status is 3, and the former version stays, or else the best plan. With --rate
    the plan has replicas for that rate, and requests arrive at it. The output folder has the
    artefacts of each step.

    \b
    Example:
      chiron deploy benchmarks/finra --slo 200ms --local
      chiron deploy benchmarks/finra --slo 200ms --percentile 99 --rate 20/s --local
    """
    if not prove and options.is_given("tries"):
        raise click.UsageError("--tries and --no-prove: choose one, as nothing else is tried then")
    opened = WorkflowFolder.open(folder)
    request = DeploymentRequest(
        folder=opened,
        slo_ms=slo,
        choices=choices,
        profile=own_profile(profile, opened) if profile else None,
        platform=read_platform(platform) if platform else None,
        profile_files=profile_files(opened, output),
        platforms=kept_platforms(),
        timeout_s=options.seconds(timeout),
        check=check,
        load=Load(per_s=rate) if rate else None,
    )
    with (
        held(output),
        place.connect() as launcher,
        deploying(launcher.gateway, opened.workflow.name),
    ):
        report = deploy_proven(request, launcher, output, progress, tries if prove else None)
    if as_json:
        emit(report, None, as_json)
    _show(report)
    if report.functions:
        _show_next(report, place, folder / request.folder.payloads()[0].name)
    return 0 if report.slo_met or not prove else EXIT_MISSED


def _show_next(report: DeploymentReport, place: Place, payload: Path) -> None:
    """Print how to use the deployment."""
    if place.local:
        progress("the embedded gateway has ended with the command; chiron serve keeps one running")
        flag = f" --backend {place.local}" if place.local != "process" else ""
        next_step(f"chiron serve{flag}, then this command without --local{flag}")
    else:
        invoke = shlex.join(["chiron", "invoke", report.plan.workflow, *place.flags])
        next_step(f"{invoke} < {shlex.quote(str(payload))}")


def _measured(measured: Measurement) -> list[str]:
    return [f"{ms:.1f}" for ms in (measured.mean_ms, measured.p50_ms, measured.p95_ms)]


def _show(report: DeploymentReport) -> None:
    plan, measured = report.plan, report.measured
    predicted = plan.predicted
    row = [
        plan.planner,
        str(len(plan.wraps)),
        str(plan.allocated_cpus),
        _predicted(plan),
        f"{measured.p50_ms:.1f}",
        f"{measured.p95_ms:.1f}",
    ]
    columns = ["planner", "wraps", "CPUs", "predicted ms", "measured p50 ms", "p95 ms"]
    table(f"{plan.workflow}, {plan.mechanisms}", columns, [row])
    if measured.payloads and predicted and predicted.payloads_ms:
        rows = [
            [name, str(each.samples), f"{predicted.payloads_ms[name]:.1f}", *_measured(each)]
            for name, each in measured.payloads.items()
        ]
        rows.append(["all", str(measured.samples), predicted.shown, *_measured(measured)])
        columns = ["payload", "requests", "predicted ms", "mean ms", "p50 ms", "p95 ms"]
        table("by payload, as often as they weigh", columns, rows)
    _show_tries(report)
    warn(predicted.warnings if predicted else ())
    if measured.busy:
        progress(measured.busy)
    progress(report.outcome)
    progress(report.sentence)


def _predicted(plan: Plan) -> str:
    prediction = DeployedPrediction.of(plan)
    return prediction.shown if prediction else "-"


def _ms(latency_ms: float | None) -> str:
    """Format a latency; empty if it is unknown or infinite."""
    return "-" if latency_ms is None or latency_ms >= LONGEST_MS else f"{latency_ms:.1f}"


def _show_tries(report: DeploymentReport) -> None:
    """Print the measured plans, and why each was not chosen."""
    percent = f"p{report.percentile:g}"
    rows = [
        [
            str(number),
            str(each.cpus),
            str(each.wraps),
            str(each.memory_mib),
            each.mechanism,
            _ms(each.predicted_ms),
            _ms(each.expected_ms),
            _ms(each.measured_ms),
            f"{each.over} of {each.requests}",
            each.verdict,
        ]
        for number, each in enumerate(report.tries, start=1)
    ]
    if rows:
        columns = ["try", "CPUs", "wraps", "MiB", "mechanism", f"predicted {percent} ms"]
        columns += ["expected ms", "measured ms", "over the SLO", "verdict"]
        table("plans that were tried", columns, rows, words=(4, len(columns) - 1))
