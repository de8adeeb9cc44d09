"""`chiron deploy`: the whole path, from a workflow and an SLO to a measured deployment."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from cli import options
from cli.artefacts import read_platform, read_profile
from cli.options import choices
from cli.output import emit, next_step, progress, table, warn
from cli.place import Place, place
from deployment.measure import Measurement
from pipeline.deploy import DeploymentReport, DeploymentRequest, deploy
from scheduler.choices import Choices
from workflow.folder import WorkflowFolder


@click.command("deploy")
@options.workflow_folder
@options.slo
@choices
@options.timeout
@options.check
@click.option(
    "--profile", type=click.Path(path_type=Path), help="Use this profile instead of measuring."
)
@options.given_platform
@place(options.gateway_url_inside, options.store, options.local)
@options.output("out")
@options.as_json
def command(
    folder: Path,
    slo: float,
    choices: Choices,
    timeout: float | None,
    check: bool,
    profile: Path | None,
    platform: Path | None,
    place: Place,
    output: Path,
    as_json: bool,
) -> None:
    """Profile, calibrate, schedule, generate and deploy the workflow in DIR, then measure it.

    The artefacts of every step are left in the output folder.

    \b
    Example:
      chiron deploy benchmarks/finra --slo 200ms --local
    """
    request = DeploymentRequest(
        folder=WorkflowFolder.open(folder),
        slo_ms=slo,
        choices=choices,
        profile=read_profile(profile) if profile else None,
        platform=read_platform(platform) if platform else None,
        timeout_s=options.seconds(timeout),
        check=check,
    )
    with place.connect() as launcher:
        report = deploy(request, launcher, output, progress)
    if as_json:
        emit(report, None, as_json)
    _show(report)
    if place.local:
        progress("the embedded gateway has ended with the command; chiron serve keeps one running")
        flag = f" --backend {place.local}" if place.local != "process" else ""
        file = shlex.quote(str(output / "build" / "stack.yaml"))
        next_step(f"chiron serve{flag}, then faas-cli deploy -f {file}")
    else:
        invoke = shlex.join(["chiron", "invoke", report.plan.workflow, *place.flags])
        payload = request.folder.payloads()[0].name
        next_step(f"{invoke} < {shlex.quote(str(folder / payload))}")


def _measured(measured: Measurement) -> list[str]:
    return [f"{ms:.1f}" for ms in (measured.mean_ms, measured.p50_ms, measured.p95_ms)]


def _show(report: DeploymentReport) -> None:
    plan, measured = report.plan, report.measured
    predicted = plan.predicted
    row = [
        plan.planner,
        str(len(plan.wraps)),
        str(plan.cpus),
        predicted.shown if predicted else "-",
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
    warn(predicted.warnings if predicted else ())
    if measured.busy:
        progress(measured.busy)
    verdict = "met" if report.slo_met else "NOT met"
    progress(f"SLO of {plan.slo_ms:g} ms: {verdict} (p95 of {measured.samples} requests)")
