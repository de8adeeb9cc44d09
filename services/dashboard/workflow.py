"""The section Workflow: what is dropped or named, as a graph and a table."""

from __future__ import annotations

import math
import os
from typing import Any

import dash_cytoscape
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.development.base_component import Component

from chiron.services.dashboard.graph import STYLE
from chiron.services.dashboard.parts import faults, labelled, table
from chiron.services.dashboard.reading import look_at_named, look_at_upload
from chiron.services.dashboard.uploads import LARGEST, SKIPPED, Upload
from chiron.services.host import host
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError

_TASKS = ["Task", "Function", "Stage", "Input from"]
#: Where a missing part comes from: the newest job of this kind.
_MEASURING = {"profile": "profile", "platform": "calibrate"}


def layout(example: str) -> Component:
    """The section; `example` is a folder that may be named."""
    return html.Section(
        [
            html.H2("Workflow"),
            _upload(),
            html.Div(
                [
                    html.Label("or a folder below the server's root", htmlFor="directory"),
                    dcc.Input(id="directory", type="text", placeholder=example, debounce=True),
                    html.Button("Show", id="show"),
                ],
                className="row",
            ),
            html.Div(id="workflow-faults", role="alert"),
            html.Div(id="seen", role="status"),
            html.Div(
                dash_cytoscape.Cytoscape(
                    id="graph",
                    elements=[],
                    stylesheet=STYLE,
                    layout={"name": "preset", "fit": True, "padding": 20},
                    style={"width": "100%", "height": "100%"},
                    minZoom=0.05,
                    maxZoom=3,
                    responsive=True,
                ),
                id="canvas",
                role="img",
                **labelled("The graph of the workflow, which the tables have as text"),
            ),
            html.Details([html.Summary("Tasks as a table"), html.Div(id="tasks")]),
            dcc.Store(id="known"),
            dcc.Store(id="source"),
        ],
        id="workflow",
    )


def _upload() -> Component:
    """Buttons that open the browser's dialogs; `assets/files.js` reads what is chosen."""
    return html.Div(
        [
            html.Button("Choose a folder", **_data(choose="folder")),
            html.Button("Choose files or an archive", **_data(choose="files")),
            html.Span("or drop them on this page"),
            dcc.Store(id="dropped"),
        ],
        id="files",
        className="upload row",
        title=f"Left out: {', '.join(SKIPPED)}",
        **_data(skipped=" ".join(SKIPPED), most=str(LARGEST)),
    )


def _data(**values: str) -> dict[str, Any]:
    return {f"data-{name}": value for name, value in values.items()}


def add_callbacks(dash: Dash) -> None:
    """Have the section answer."""

    @dash.callback(
        Output("known", "data"),
        Output("source", "data"),
        Output("workflow-faults", "children"),
        Output("seen", "children"),
        Output("tasks", "children"),
        Output("graph", "elements"),
        Output("slo", "max"),
        Output("deploy", "disabled"),
        Output("request", "value"),
        Input("dropped", "data"),
        Input("show", "n_clicks"),
        Input("directory", "n_submit"),
        State("directory", "value"),
        State("slo", "value"),
        prevent_initial_call=True,
    )
    def show(
        dropped: Any,
        _clicks: int | None,
        _submits: int | None,
        directory: str | None,
        slo: float | str | None,
    ) -> tuple[Any, ...]:
        try:
            owner, source = host(), {}
            if ctx.triggered_id == "dropped":
                places = validate(Upload, dropped, "the upload").saved(owner)
                seen = owner.compute(look_at_upload, *places)
            else:
                source = {"directory": directory or ""}
                arguments = directory or "", owner.config.root, dict(os.environ)
                seen = owner.compute(look_at_named, *arguments)
        except ChironError as error:
            seen = {"faults": [each.as_dict() for each in error.parts or (error,)]}
        if "faults" in seen:
            wrong = faults(seen["faults"])
            graph = seen.get("graph", [])
            return None, None, wrong, "", "", graph, no_update, True, no_update
        known, told = _with_measured(seen["known"], seen["name"])
        told = f"{seen['name']}: {len(seen['tasks'])} tasks. {told}"
        most = max(_longest_slo_ms(known), math.ceil(float(slo or 0)))  # which is the user's
        tasks = table("Tasks", _TASKS, seen["tasks"])
        shown = (told, tasks, seen["graph"], most, False)
        return known, source, [], *shown, seen["request"]


def _with_measured(known: dict[str, Any], workflow: str) -> tuple[dict[str, Any], str]:
    """`known` with what jobs have measured where it has none, and what to say of that."""
    store, told = host().store, []
    for part, kind in _MEASURING.items():
        if part in known:
            continue
        done = (job for job in store.newest(kind) if job.status == "done")
        results = ((job.id, store.get(job.id).result) for job in done)
        fitting = (
            (name, result)
            for name, result in results
            if part == "platform" or result["workflow"] == workflow
        )
        name, result = next(fitting, (None, None))
        if result is None:
            told.append(f"It has no {part}.json: add the file, or run the job {kind}.")
        else:
            known = known | {part: result}
            told.append(f"Its {part} is that of job {name}.")
    return known, " ".join(told)


def _longest_slo_ms(known: dict[str, Any]) -> int:
    """Twice the time of all functions, one after another; a second without a profile."""
    functions = known.get("profile", {}).get("functions", {}).values()
    total_ms = sum(function["latency_ms"] for function in functions)
    return max(20, math.ceil(2 * total_ms)) if total_ms else 1000
