"""`chiron deploy`: the whole path, from a workflow and an SLO to a measured deployment."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options
from cli.artefacts import read_platform, read_profile
from cli.choices import choices
from cli.output import emit, next_step, progress, table
from cli.place import connect
from gateway.names import BackendName as Backend
from scheduler.choices import Choices
from services.deployment import DeploymentReport, DeploymentRequest, deploy
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
@click.option(
    "--platform", type=click.Path(path_type=Path), help="Use this platform instead of measuring."
)
@options.gateway
@options.tls_no_verify
@options.local
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
    gateway: str | None,
    tls_no_verify: bool,
    local: Backend | None,
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
    with connect(gateway, local=local, tls_no_verify=tls_no_verify) as launcher:
        report = deploy(request, launcher, output, progress)
    if as_json:
        emit(report, None, as_json)
    _show(report)
    if local:
        progress("the embedded gateway has ended with the command; chiron serve keeps one running")
        flag = f" --backend {local}" if local != "process" else ""
        next_step(f"chiron serve{flag}, then faas-cli deploy -f {output / 'build' / 'stack.yaml'}")
    else:
        named = f" -g {gateway}" if gateway else ""
        next_step(f"chiron invoke {report.plan.workflow}{named} < {folder / 'payload.json'}")


def _show(report: DeploymentReport) -> None:
    plan, measured = report.plan, report.measured
    predicted = plan.predicted
    row = [
        plan.model,
        str(len(plan.wraps)),
        str(plan.cpus),
        predicted.shown if predicted else "-",
        f"{measured.p50_ms:.1f}",
        f"{measured.p95_ms:.1f}",
    ]
    columns = ["model", "wraps", "CPUs", "predicted ms", "measured p50 ms", "p95 ms"]
    table(f"{plan.workflow}, {plan.mechanism}", columns, [row])
    verdict = "met" if report.slo_met else "NOT met"
    progress(f"SLO of {plan.slo_ms:g} ms: {verdict} (p95 of {measured.samples} requests)")
