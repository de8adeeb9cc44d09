"""The section Jobs: their progress, with a button to cancel each."""

from __future__ import annotations

from typing import Any

from dash import Dash, Input, Output, dcc, html
from dash.development.base_component import Component

from chiron.pipeline.deploy import DeploymentReport
from chiron.services.dashboard.deploying import verdict
from chiron.services.dashboard.parts import STILL, empty, still, table, time
from chiron.services.dashboard.progress import cancel
from chiron.services.host import host
from chiron.services.jobs import Job
from chiron.workflow.documents import validate

_JOBS = 10
_POLL_MS = 2000


def layout() -> Component:
    return html.Section(
        [html.H2("Jobs"), html.Div(id="job-list"), dcc.Interval(id="tick", interval=_POLL_MS)],
        id="jobs",
    )


def add_callbacks(dash: Dash) -> None:
    @dash.callback(Output("job-list", STILL), Input("tick", "n_intervals"))
    def jobs(_: int | None) -> str:
        store = host().store
        return still(_listed([store.get(job.id) for job in store.newest()[:_JOBS]]))


def _listed(jobs: list[Job]) -> Component:
    """Return the jobs, with a button for each that can be cancelled."""
    if not jobs:
        return empty("No jobs", "What takes long, such as a deployment, is listed here.")
    heads = ["Kind", "Status", "Progress", "Created (UTC)", "Id", "Cancel"]
    ids = [f"row-{job.id}" for job in jobs]
    return table("Jobs, the newest first", heads, [_row(job) for job in jobs], ids=ids)


def _row(job: Job) -> list[Any]:
    return [
        job.kind,
        html.Span(job.status, className=f"badge {job.status}"),
        html.Div(_summary(job), className="words"),
        time(job.created),
        html.A(job.id, href=job.location),
        cancel(job) or "",
    ]


def _summary(job: Job) -> str:
    """Return the job's error, verdict or last step."""
    if job.error:
        return job.error.message
    if job.kind == "deployment" and job.status == "done":
        return verdict(validate(DeploymentReport, job.result, "the report"))
    return job.progress[-1].line if job.progress else ""
