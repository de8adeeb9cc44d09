"""The section Jobs: how far they are, with a button that cancels."""

from __future__ import annotations

from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.development.base_component import Component

from chiron.pipeline.deploy import DeploymentReport
from chiron.services.dashboard.deploying import verdict
from chiron.services.dashboard.parts import empty, faults_of, labelled, table, time
from chiron.services.host import host
from chiron.services.jobs import Job
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError

#: Jobs that are shown.
_JOBS = 10
_POLL_MS = 2000


def layout() -> Component:
    return html.Section(
        [
            html.H2("Jobs"),
            html.Div(id="job-list"),
            html.Div(id="job-faults", role="alert"),
            dcc.Store(id="shown-jobs"),
            dcc.Interval(id="tick", interval=_POLL_MS),
        ],
        id="jobs",
    )


def add_callbacks(dash: Dash) -> None:
    @dash.callback(
        Output("job-list", "children"),
        Output("shown-jobs", "data"),
        Output("job-faults", "children"),
        Input("tick", "n_intervals"),
        Input({"type": "cancel", "place": ALL, "job": ALL}, "n_clicks"),
        State("shown-jobs", "data"),
    )
    def jobs(_: int | None, clicks: list[int | None], before: Any) -> tuple[Any, ...]:
        told: Any = no_update
        if isinstance(ctx.triggered_id, dict) and any(clicks):
            try:
                host().cancel(ctx.triggered_id["job"])
                told = []
            except ChironError as error:
                told = faults_of(error)
        store = host().store
        listed = [store.get(job.id) for job in store.newest()[:_JOBS]]
        found = [_shown(job) for job in listed]
        if found == before:  # what has the focus keeps it
            return no_update, no_update, told
        return _rows(found), found, told


def _shown(job: Job) -> dict[str, Any]:
    """The job with what there is to say of it, but not its result."""
    told = job.progress[-1].line if job.progress else ""
    if job.error:
        told = job.error.message
    elif job.kind == "deployment" and job.status == "done":
        told = verdict(validate(DeploymentReport, job.result, "the report"))
    return job.model_dump(mode="json", exclude={"result", "progress"}) | {"told": told}


def _rows(jobs: list[dict[str, Any]]) -> Component:
    """The jobs, with a button for each that can be cancelled."""
    if not jobs:
        return empty("No jobs", ["What takes long, such as a deployment, is listed here."])
    rows = []
    for job in jobs:
        cancel: Any = ""
        if job["status"] in ("queued", "running"):
            label = f"Cancel {job['kind']} {job['id']}"
            identity = {"type": "cancel", "place": "list", "job": job["id"]}
            cancel = html.Button("Cancel", id=identity, **labelled(label))
        rows.append(
            [
                job["kind"],
                html.Span(job["status"], className=f"badge {job['status']}"),
                job["told"],
                time(job["created"]),
                html.A(job["id"], href=job["location"]),
                cancel,
            ]
        )
    return table(
        "Jobs, the newest first",
        ["Kind", "Status", "Progress", "Created (UTC)", "Id", "Cancel"],
        rows,
    )
