"""The progress of a long job: its steps, its duration so far and expected, and its error."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from statistics import median
from typing import Any

from dash import html
from dash.development.base_component import Component

from chiron.services.dashboard.parts import faults, labelled
from chiron.services.host import Host
from chiron.services.jobs import Job, JobSummary

#: The newest earlier jobs from which the duration is estimated.
_LIKE = 5
_STEPS = 5
#: The largest share of the bar that is filled before a job is done.
_FULL = 0.97


def usual_s(earlier: Iterable[JobSummary]) -> float | None:
    """Return the median duration of earlier jobs that are done, in seconds; None without any."""
    took = [
        (_at(job.finished) - _at(job.started)).total_seconds()
        for job in earlier
        if job.status == "done" and job.started and job.finished
    ]
    return median(took[:_LIKE]) if took else None


def expected(elapsed_s: float, like_s: float | None) -> str:
    """Return the line for a job that has run for `elapsed_s` if earlier jobs took `like_s`.

    >>> expected(12.0, 60.0)
    '12 s so far, about 48 s to go: earlier jobs took 60 s'
    >>> expected(75.0, 60.0)
    '75 s so far, longer than earlier jobs, which took 60 s'
    """
    so_far = f"{elapsed_s:.0f} s so far"
    if like_s is None:
        return f"{so_far}; no earlier job says how long it takes"
    if elapsed_s >= like_s:
        return f"{so_far}, longer than earlier jobs, which took {like_s:.0f} s"
    return f"{so_far}, about {like_s - elapsed_s:.0f} s to go: earlier jobs took {like_s:.0f} s"


def panel(job: Job, owner: Host) -> Component:
    """Return the job with its steps, a bar, and a cancel button; its error if it failed."""
    title = html.P([html.Strong(job.kind.capitalize()), " ", html.A(job.id, href=job.location)])
    badge = html.Strong(job.status, className=f"badge {job.status}")
    button = cancel(job)
    head = html.Div([badge, title, *([button] if button else [])], className="row")
    told: list[Component] = []
    if job.error and job.status == "failed":
        told = faults([job.error.model_dump()])
    elif job.error:
        told = [html.P(job.error.message, className="quiet")]
    elif job.status == "queued":
        told = [html.P("It waits until the jobs before it are done.", className="quiet")]
    elif job.status == "running":
        told = _running(job, usual_s(owner.store.newest(job.kind)))
    return html.Div([head, *told], className="job", id=f"job-{job.id}")


def _running(job: Job, like_s: float | None) -> list[Component]:
    elapsed_s = (datetime.now(UTC) - _at(job.started or job.created)).total_seconds()
    filled: dict[str, Any] = {}
    if like_s:
        filled = {"value": f"{min(elapsed_s / like_s, _FULL):.3f}", "max": "1"}
    steps = [line.line for line in job.progress]
    first = max(0, len(steps) - _STEPS)
    listed = [
        html.Li(step, className="now" if number == len(steps) - 1 else "")
        for number, step in enumerate(steps)
    ]
    return [
        html.Progress(**filled, **labelled(f"Progress of the {job.kind}")),
        html.P(expected(elapsed_s, like_s), className="quiet"),
        html.Ol(listed[first:], start=str(first + 1), className="steps"),
    ]


def cancel(job: JobSummary) -> Component | None:
    """Return the button that cancels the job by ``assets/cancel.js``; None if it has ended."""
    if job.status not in ("queued", "running"):
        return None
    named = {"data-cancel": job.location, **labelled(f"Cancel {job.kind} {job.id}")}
    return html.Button("Cancel", **named)


def _at(time: str) -> datetime:
    return datetime.fromisoformat(time)
