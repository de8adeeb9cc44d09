"""The part of the section Workflow that measures a missing profile or platform."""

from __future__ import annotations

import os
from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.development.base_component import Component

from chiron.profiler.tracer import require_tracing
from chiron.services.dashboard import progress
from chiron.services.dashboard.address import workflow_at
from chiron.services.dashboard.parts import STILL, faults_of, still
from chiron.services.dashboard.uploads import folder_of
from chiron.services.host import host
from chiron.workflow.errors import ChironError

#: The job that measures each part that may be missing, and the text of its button.
KINDS = {"profile": "profile", "platform": "calibrate"}
_BUTTONS = {"profile": "Measure the profile", "platform": "Measure this platform"}


def layout() -> Component:
    return html.Div(
        [
            html.Div(id="measuring-faults", role="alert"),
            html.Div(id="measuring"),
            dcc.Store(id="measuring-jobs", storage_type="session", data=[]),
            dcc.Store(id="measured-parts"),
        ]
    )


def button(part: str) -> Component:
    return html.Button(_BUTTONS[part], id={"type": "lacking", "part": part}, className="primary")


def add_callbacks(dash: Dash) -> None:
    _add_queueing(dash)
    _add_following(dash)


def _add_queueing(dash: Dash) -> None:
    @dash.callback(
        Output("measuring-jobs", "data"),
        Output("measuring-faults", "children"),
        Input({"type": "lacking", "part": ALL}, "n_clicks"),
        State("source", "data"),
        State("dropped", "data"),
        State("known", "data"),
        State("measuring-jobs", "data"),
        prevent_initial_call=True,
    )
    def measure(
        clicks: list[int | None],
        source: dict[str, Any] | None,
        dropped: Any,
        known: dict[str, Any],
        before: list[tuple[str, str | None]],
    ) -> tuple[Any, ...]:
        if not any(clicks):
            return no_update, no_update
        part = ctx.triggered_id["part"]
        kinds = {job.kind for job in host().store.newest() if job.id in dict(before)}
        if KINDS[part] in kinds:  # the job is queued or running
            return no_update, no_update
        try:
            params = {}
            if part == "profile":
                require_tracing(os.environ)
                params = {"folder": str(folder_of(source, dropped).path)}
            job = host().queue(KINDS[part], params)
        except ChironError as error:
            return no_update, faults_of(error)
        return [*before, [job.id, known["name"] if part == "profile" else None]], []


def _add_following(dash: Dash) -> None:
    @dash.callback(
        Output("measuring", STILL),
        Output("measuring-jobs", "data", allow_duplicate=True),
        Output("measured-parts", "data"),
        Input("tick", "n_intervals"),
        Input("measuring-jobs", "data"),
        Input("address", "pathname"),
        prevent_initial_call=True,
    )
    def follow(
        _: int | None, followed: list[tuple[str, str | None]], path: str | None
    ) -> tuple[Any, ...]:
        page = workflow_at(path)
        if not followed and ctx.triggered_id != "address":  # errors stay on the page
            return no_update, no_update, no_update
        shown, left, done = list[Component](), list[Any](), list[str]()
        for each in followed:
            name, workflow = each
            if page and workflow not in (None, page):
                left.append(each)
                continue
            try:
                job = host().store.get(name)
            except ChironError:  # the job was deleted
                continue
            shown.append(progress.panel(job, host()))
            if job.status == "done":
                done.append(name)
            elif job.status in ("queued", "running"):
                left.append(each)
        changed = left if left != followed else no_update
        return still(*shown), changed, done or no_update
