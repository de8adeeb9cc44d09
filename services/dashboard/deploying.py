"""The part of the section Plan that deploys the shown plan, and reports the result."""

from __future__ import annotations

from functools import partial
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update
from dash.development.base_component import Component

from chiron.generator.annotations import DeployedPrediction
from chiron.pipeline.deploy import DeploymentReport
from chiron.services.dashboard import options, progress
from chiron.services.dashboard.address import workflow_at
from chiron.services.dashboard.parts import STILL, faults_of, still, table
from chiron.services.dashboard.uploads import folder_of
from chiron.services.endpoints import DeploymentBody, deployment_params
from chiron.services.host import host
from chiron.services.jobs import Job
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError


def layout() -> Component:
    return html.Div(
        [
            html.Div(id="deploy-faults", role="alert"),
            html.Div(id="deploying"),
            html.Div(id="deployed", role="status"),
            dcc.Store(id="deployment", storage_type="session"),
            dcc.Store(id="followed"),
        ]
    )


def add_callbacks(dash: Dash) -> None:
    _add_queueing(dash)
    _add_following(dash)


def _add_queueing(dash: Dash) -> None:
    @dash.callback(
        Output("deployment", "data"),
        Output("deploy-faults", "children"),
        Input("deploy", "n_clicks"),
        State("source", "data"),
        State("dropped", "data"),
        State("known", "data"),
        State("slo", "value"),
        State(options.identity(), "value"),
        State(options.identity(), "id"),
        running=[(Output("deploy", "disabled"), True, False)],
        prevent_initial_call=True,
    )
    def deploy(
        _: int | None,
        source: dict[str, Any] | None,
        dropped: Any,
        known: dict[str, Any] | None,
        slo: float | None,
        values: list[Any],
        ids: list[dict[str, Any]],
    ) -> tuple[Any, ...]:
        parts = (known or {}).items()
        measured = {part: value for part, value in parts if part in ("profile", "platform")}
        asked = (
            measured | {"slo": options.slo_of(slo)} | options.chosen(values, ids) | (source or {})
        )
        try:
            body = validate(DeploymentBody, asked, "the deployment")
            params = deployment_params(body, partial(folder_of, source, dropped))
            job = host().queue("deployment", params)
        except ChironError as error:
            return no_update, faults_of(error)
        return [job.id, (known or {}).get("name")], []


def _add_following(dash: Dash) -> None:
    @dash.callback(
        Output("deploying", STILL),
        Output("deployed", STILL),
        Output("followed", "data"),
        Input("tick", "n_intervals"),
        Input("deployment", "data"),
        Input("address", "pathname"),
        State("followed", "data"),
    )
    def follow(
        _: int | None, deployment: list[str] | None, path: str | None, before: Any
    ) -> tuple[Any, ...]:
        if not deployment:
            return (no_update,) * 3
        name, workflow = deployment
        if workflow_at(path) not in (None, workflow):
            return still(), still(), None
        try:
            job = host().store.get(name, "deployment")
        except ChironError:  # the job was deleted
            return still(), still(), None
        now = [job.id, job.status]
        if now == before and job.status not in ("queued", "running"):
            return (no_update,) * 3
        return still(progress.panel(job, host())), still(*_measurements(job)), now


def _measurements(job: Job) -> list[Component]:
    if job.status != "done":
        return []
    report = validate(DeploymentReport, job.result, "the report")
    plan, measured = report.plan, report.measured
    predicted = DeployedPrediction.of(plan)
    row = [
        plan.planner,
        ", ".join(report.functions),
        plan.allocated_cpus,
        predicted.shown if predicted else "-",
        f"{measured.p50_ms:.1f}",
        f"{measured.p95_ms:.1f}",
    ]
    columns = ["Planner", "Wraps", "CPUs", "Predicted ms", "Measured p50 ms", "p95 ms"]
    warnings = [*(predicted.warnings if predicted else ()), measured.busy]
    return [
        html.P(verdict(report), className="met" if report.slo_met else "missed"),
        table("Deployed" if report.functions else "Not deployed", columns, [row]),
        *_tries(report),
        *[html.P(f"Warning: {line}") for line in warnings if line],
    ]


def _tries(report: DeploymentReport) -> list[Component]:
    """Return the plans that were tried, with their results; empty if none had to prove itself."""
    percent = f"p{report.percentile:g}"
    rows = [
        [
            each.cpus,
            each.wraps,
            each.mechanism,
            f"{each.predicted_ms:.1f}",
            f"{each.expected_ms:.1f}",
            "-" if each.measured_ms is None else f"{each.measured_ms:.1f}",
            each.said,
        ]
        for each in report.tries
    ]
    columns = ["CPUs", "Wraps", "Mechanism", f"Predicted {percent} ms"]
    columns += ["Expected ms", "Measured ms", "Result"]
    return [table("Plans that were tried", columns, rows)] if rows else []


def verdict(report: DeploymentReport) -> str:
    """Return whether the deployment meets its SLO, and its measurements."""
    outcome = report.outcome
    return f"{outcome[0].upper()}{outcome[1:]}; {report.sentence}"
