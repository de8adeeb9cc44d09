"""The part of the section Plan that deploys what is shown, and says what came out."""

from __future__ import annotations

from functools import partial
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update
from dash.development.base_component import Component

from chiron.pipeline.deploy import DeploymentReport
from chiron.services.dashboard import options
from chiron.services.dashboard.parts import faults, faults_of, table
from chiron.services.dashboard.uploads import Upload
from chiron.services.endpoints import DeploymentBody, deployment_params
from chiron.services.host import host
from chiron.services.jobs import Job
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder


def layout() -> Component:
    """The place of what comes of the button Deploy."""
    return html.Div(
        [
            html.Div(id="deploy-faults", role="alert"),
            html.Div(id="deployed", role="status"),
            dcc.Store(id="deployment", storage_type="session"),
            dcc.Store(id="followed"),
        ]
    )


def add_callbacks(dash: Dash) -> None:
    """Have it answer."""

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
            if body.directory is None:
                open_folder = partial(_open_upload, validate(Upload, dropped, "the upload"))
            else:
                open_folder = partial(host().open_folder, body.directory)
            job = host().queue("deployment", deployment_params(body, open_folder))
        except ChironError as error:
            return no_update, faults_of(error)
        return job.id, []

    @dash.callback(
        Output("deployed", "children"),
        Output("followed", "data"),
        Input("tick", "n_intervals"),
        Input("deployment", "data"),
        State("followed", "data"),
    )
    def follow(_: int | None, deployment: str | None, before: Any) -> tuple[Any, ...]:
        if not deployment:
            return no_update, no_update
        try:
            job = host().store.get(deployment, "deployment")
        except ChironError:  # it has been forgotten
            return [], None
        now = [job.id, job.status, len(job.progress)]
        return (no_update, no_update) if now == before else (_told(job), now)


def _open_upload(upload: Upload) -> WorkflowFolder:
    return host().open_upload(upload.saved(host()))


def _told(job: Job) -> list[Component]:
    """How far the deployment is, or what was measured of it."""
    head = html.P(["Deployment ", html.A(job.id, href=job.location), f": {job.status}"])
    if job.error:
        return [head, *faults([job.error.model_dump()])]
    if job.status != "done":
        return [head, *[html.P(line.line) for line in job.progress[-1:]]]
    report = validate(DeploymentReport, job.result, "the report")
    plan, measured = report.plan, report.measured
    row = [
        plan.planner,
        ", ".join(report.functions),
        plan.cpus,
        plan.predicted.shown if plan.predicted else "-",
        f"{measured.p50_ms:.1f}",
        f"{measured.p95_ms:.1f}",
    ]
    columns = ["Planner", "Wraps", "CPUs", "Predicted ms", "Measured p50 ms", "p95 ms"]
    warnings = [*(plan.predicted.warnings if plan.predicted else ()), measured.busy]
    return [
        head,
        html.P(verdict(report), className="met" if report.slo_met else "missed"),
        table("Deployed" if report.functions else "Not deployed", columns, [row]),
        *_tries(report),
        *[html.P(f"Warning: {line}") for line in warnings if line],
    ]


def _tries(report: DeploymentReport) -> list[Component]:
    """The plans that were tried, and what came of each; nothing where none had to prove itself."""
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
    """Whether the deployment meets its SLO, and what was measured."""
    outcome = report.outcome
    return f"{outcome[0].upper()}{outcome[1:]}; {report.sentence}"
