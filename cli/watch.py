"""`chiron watch`: keeps a deployed workflow at its SLO; switches plans without loss."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial, wraps
from pathlib import Path
from typing import Any, cast

import click

from chiron.adaptation.alone import watching
from chiron.adaptation.events import Event, Tell
from chiron.adaptation.latency import Latencies, Probes, Wait, find_latencies
from chiron.adaptation.replicas import Scaler
from chiron.adaptation.rules import Rules
from chiron.adaptation.version import serving
from chiron.adaptation.watch import Watcher
from chiron.cli import options
from chiron.cli.artefacts import read_platform
from chiron.cli.calibrate import kept_platforms
from chiron.cli.options import choices
from chiron.cli.output import progress
from chiron.cli.place import Place, place
from chiron.deployment.background_load import busy_share
from chiron.deployment.journal import Journal, WatchEvent
from chiron.deployment.launcher import Launcher
from chiron.deployment.local_launcher import LocalLauncher
from chiron.openfaas.objects import FunctionStatus
from chiron.pipeline.deploy import DeploymentRequest
from chiron.profiler.profile import profile
from chiron.scheduler.choices import Choices
from chiron.scheduler.planners import PLANNERS
from chiron.services import state_folder
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.load import Load
from chiron.workflow.profile import Profile

_RULES = Rules()


def _rules(command: options.Command) -> options.Command:
    """Add the options about when to act as one argument `rules`."""

    @click.option(
        "--every", type=options.DURATION, help="Profile anew at least so often, such as 1440m."
    )
    @click.option(
        "--window",
        type=options.DURATION,
        default=f"{_RULES.window_s:g}s",
        show_default=True,
        help="How long requests are counted for one mean latency.",
    )
    @click.option(
        "--windows",
        type=options.WholeNumber(min=1),
        default=_RULES.windows,
        show_default=True,
        help="How many windows in a row have to be out of the predicted range, or break the SLO.",
    )
    @click.option(
        "--tolerance",
        type=options.FiniteRange(min=0),
        default=_RULES.tolerance,
        show_default=True,
        help="How far the mean may be out of the predicted range, as a share of its ends.",
    )
    @click.option("--best-effort", is_flag=True, help="Deploy a plan that misses the SLO too.")
    @click.option(
        "--allow-outage",
        is_flag=True,
        help="Deploy the entry again to switch, even where nothing answers meanwhile (faasd).",
    )
    @wraps(command)
    def with_rules(*arguments: Any, every: float | None, window: float, **others: Any) -> Any:
        given = {f.name: others.pop(f.name) for f in fields(Rules) if f.name in others}
        rules = Rules(window_s=window / 1000, every_s=options.seconds(every), **given)
        return command(*arguments, rules=rules, **others)

    return cast(options.Command, with_rules)


@click.command("watch")
@options.workflow_folder
@options.slo
@options.rate
@choices
@_rules
@click.option(
    "--scale",
    is_flag=True,
    help="Raise and lower replicas, within the labels com.openfaas.scale.min and max.",
)
@click.option("--once", is_flag=True, help="End with the first verdict, as suits cron.")
@click.option(
    "--local-launcher", is_flag=True, help="Profile here, without the gateway; needs no strace."
)
@options.given_platform
@click.option("--metrics", metavar="URL", help="Where the gateway's metrics are, if not /metrics.")
@options.timeout
@options.check
@place(options.gateway_url_inside, options.store)
@options.output("out")
@options.as_json
def command(
    folder: Path,
    slo: float,
    rate: float | None,
    choices: Choices,
    rules: Rules,
    scale: bool,
    once: bool,
    local_launcher: bool,
    platform: Path | None,
    metrics: str | None,
    timeout: float | None,
    check: bool,
    place: Place,
    output: Path,
    as_json: bool,
) -> None:
    """Watch the deployed workflow in DIR, and deploy the workflow if it is not deployed.

    The workflow is profiled and planned anew when its mean latency leaves the predicted range, when
    more requests miss the SLO than the percentile allows, or when --every has passed. A better plan
    is deployed beside the one that serves, checked, and switched to; then the old one drains and is
    removed. If a step fails, or no plan meets the SLO (but for --best-effort), the old one goes on
    serving. With --scale the gateway runs as many replicas as the requests need, and as can send
    the outputs of their tasks. A plan for a rate is replaced by a plan for that rate, or for the
    measured rate if that is higher.
    With --json every event is a line of JSON on stdout.

    \b
    Example:
      chiron watch benchmarks/finra --slo 200ms --every 1440m
    """
    if PLANNERS[choices.planner].orchestrator == "client":
        raise click.UsageError(f"--planner {choices.planner} has no entry that could be switched")
    opened = WorkflowFolder.open(folder)
    request = DeploymentRequest(
        folder=opened,
        slo_ms=slo,
        choices=choices,
        platform=read_platform(platform) if platform else None,
        platforms=kept_platforms(),
        timeout_s=options.seconds(timeout),
        check=check,
        load=Load(per_s=rate) if rate else None,
    )
    with place.connect() as launcher, watching(launcher.gateway, opened.workflow.name):
        tell = _teller(launcher, request, _as_json if as_json else _as_line)
        wait = _scaler(launcher, request, tell).wait if scale else time.sleep
        latencies = _latencies(launcher, request, metrics, wait, rules, place)
        Watcher(
            request=request,
            launcher=launcher,
            latencies=latencies,
            profile=_profiled(launcher, opened, alone=local_launcher),
            rules=_rules_for(rules, once=once, probing=isinstance(latencies, Probes)),
            wait=wait,
            tell=tell,
            out=output,
            own_percentile=options.is_given("percentile"),
        ).run(once=once)


def _teller(launcher: Launcher, request: DeploymentRequest, show: Tell) -> Tell:
    """Return a function that shows events and records them for the dashboard."""
    workflow, planner = request.folder.workflow.name, request.choices.planner
    about = partial(WatchEvent, gateway=launcher.gateway.url, workflow=workflow, planner=planner)
    return partial(_tell, show, about)


def _latencies(
    launcher: Launcher,
    request: DeploymentRequest,
    metrics: str | None,
    wait: Wait,
    rules: Rules,
    place: Place,
) -> Latencies:
    folder, gateway = request.folder, launcher.gateway
    planner, payloads = request.choices.planner, folder.payloads()
    probes = Probes(gateway, folder.workflow.name, planner, payloads, wait, rules.fewest)
    return find_latencies(gateway, metrics, probes, verify_tls=not place.tls_no_verify)


def _profiled(launcher: Launcher, folder: WorkflowFolder, *, alone: bool) -> Callable[[], Profile]:
    """Return a function that profiles the workflow on the gateway, or `alone`."""
    here: Launcher | LocalLauncher = launcher
    if alone:
        here = LocalLauncher(progress, launcher.gateway, launcher.store)
    return partial(profile, folder, here, progress=progress, probe_alone=alone)


def _rules_for(rules: Rules, *, once: bool, probing: bool) -> Rules:
    """Return the rules for --once: with probes only, a verdict does not wait for other requests.

    Tells the user what the command waits for.
    """
    if probing:
        progress("the gateway tells no latencies: sending a few requests each window instead")
        if once:
            return replace(rules, window_s=0.0)
    if once and rules.window_s:
        seconds = rules.windows * rules.window_s
        windows = f"{rules.windows} window{'s' * (rules.windows > 1)}"
        progress(f"{windows} of {rules.window_s:g} s: a verdict in {seconds:g} s")
    return rules


def _scaler(launcher: Launcher, request: DeploymentRequest, tell: Tell) -> Scaler:
    wraps = partial(_wraps, launcher, request.folder.workflow.name, request.choices.planner)
    scaler = Scaler(launcher.gateway, wraps, tell)
    if launcher.gateway.info().embedded:
        scaler.busy = busy_share
    return scaler


def _wraps(launcher: Launcher, workflow: str, planner: str) -> tuple[FunctionStatus, ...]:
    current = serving(launcher.gateway, workflow, planner)
    return current.wraps if current else ()


def _tell(tell: Tell, about: Callable[..., WatchEvent], event: Event) -> None:
    """Show an event, and record it for the dashboard unless it is a step of a long job."""
    tell(event)
    if event.kind != "step":
        outside = event.figures.get("outside", 0)
        told = about(at=_now(), event=event.kind, message=event.message, outside=outside)
        with suppress(OSError):  # it is for looking at: without it the watcher does all it does
            Journal(state_folder()).append(told)


def _as_line(event: Event) -> None:
    at = datetime.now().astimezone().strftime("%H:%M:%S")
    progress(f"{at} {event.kind}: {event.message}")


def _as_json(event: Event) -> None:
    click.echo(event.as_json(_now()))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
