"""The section Workflow: the dropped or named workflow, as a graph and a table."""

from __future__ import annotations

import math
import os
from typing import Any

import dash_cytoscape
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.development.base_component import Component

from chiron.services.dashboard import measuring
from chiron.services.dashboard.address import workflow_at
from chiron.services.dashboard.graph import STYLE
from chiron.services.dashboard.parts import STILL, empty, faults, labelled, picture, still, table
from chiron.services.dashboard.reading import find_named, look_at_named, look_at_upload
from chiron.services.dashboard.uploads import LARGEST, SKIPPED, Upload
from chiron.services.host import host
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError

_TASKS = ["Task", "Function", "Stage", "Input from"]
_NOTHING = empty(
    "No workflow is shown",
    "Choose its folder, or drop it on this page: its graph, plan and timeline appear here.",
)


def layout(example: str) -> Component:
    """Return the section; `example` is the name of an example folder."""
    return html.Section(
        [
            html.H2("Workflow"),
            html.Details(
                [html.Summary("Choose a workflow"), _upload(), _named(example)],
                id="choose",
                open=True,
            ),
            html.Div(id="workflow-faults", role="alert"),
            html.Div(id="seen", role="status"),
            measuring.layout(),
            html.Div(_NOTHING, id="no-graph"),
            html.Div(
                id="drawing",
                hidden=True,
                tabIndex=0,
                role="region",
                **labelled("The graph of the state machine"),
            ),
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
                hidden=True,
                role="img",
                **labelled("The graph of the workflow, which the tables have as text"),
            ),
            html.Details([html.Summary("Tasks as a table"), html.Div(id="tasks")]),
            dcc.Store(id="known"),
            dcc.Store(id="source"),
        ],
        id="workflow",
    )


def _named(example: str) -> Component:
    return html.Div(
        [
            html.Label("or a folder below the server's root", htmlFor="directory"),
            dcc.Input(id="directory", type="text", placeholder=example, debounce=True),
            html.Button("Show", id="show"),
        ],
        className="row",
    )


def _upload() -> Component:
    """Return buttons for the browser's dialogs; `assets/files.js` reads the chosen files."""
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
    @dash.callback(
        Output("known", "data"),
        Output("source", "data"),
        Output("choose", "open"),
        Output("workflow-faults", "children"),
        Output("seen", "children"),
        Output("tasks", STILL),
        Output("graph", "elements"),
        Output("canvas", "hidden"),
        Output("drawing", "children"),
        Output("drawing", "hidden"),
        Output("no-graph", "hidden"),
        Output("slo", "max"),
        Output("deploy", "disabled"),
        Output("request", "value"),
        Input("dropped", "data"),
        Input("show", "n_clicks"),
        Input("directory", "n_submit"),
        Input("measured-parts", "data"),
        Input("address", "pathname"),
        State("directory", "value"),
        State("source", "data"),
        State("known", "data"),
        State("slo", "value"),
        prevent_initial_call=True,
    )
    def show(
        dropped: Any,
        _clicks: int | None,
        _submits: int | None,
        _measured: list[str] | None,
        path: str | None,
        directory: str | None,
        source: dict[str, Any] | None,
        known: dict[str, Any] | None,
        slo: float | str | None,
    ) -> tuple[Any, ...]:
        # A page that was just opened may send its address in the same request.
        is_dropped = "dropped.data" in ctx.triggered_prop_ids
        page, asked = workflow_at(path), "dropped" if is_dropped else ctx.triggered_id
        if asked == "address":
            if page is None or (known and known["name"] == page):
                return (no_update,) * 14
            found = host().compute(find_named, page, host().config.root)
            if found is None:
                graph = _graph([], None)
                return None, None, True, [], "", still(), *graph, no_update, True, no_update
            source = {"directory": found}
        elif asked != "measured-parts":
            source = {} if asked == "dropped" else {"directory": directory or ""}
        seen = _look(source or {}, dropped, page)
        return _page_content(seen, source, page, slo)


def _page_content(
    seen: dict[str, Any], source: dict[str, Any] | None, page: str | None, slo: float | str | None
) -> tuple[Any, ...]:
    """Return the page's content for a folder that was `seen`, or its faults."""
    if "faults" in seen:
        wrong, graph = faults(seen["faults"]), _graph(seen.get("graph", []), None)
        return None, None, True, wrong, "", still(), *graph, no_update, True, no_update
    known, told = _with_measured(seen["known"], seen["name"])
    told = [f"{seen['name']}: {len(seen['tasks'])} tasks. ", *seen["found"], *told]
    most = max(_longest_slo_ms(known), math.ceil(float(slo or 0)))  # `slo` is the user's
    tasks = still(table("Tasks", _TASKS, seen["tasks"]))
    shown = told, tasks, *_graph(seen["graph"], seen["svg"])
    return known, source, page is None, [], *shown, most, False, seen["request"]


def _look(source: dict[str, Any], dropped: Any, page: str | None) -> dict[str, Any]:
    """Return the page's data of the folder, or ``faults``; `page` is the workflow of the page."""
    owner = host()
    seen: dict[str, Any]
    try:
        if "directory" in source:
            arguments = source["directory"], owner.config.root, dict(os.environ)
            seen = owner.compute(look_at_named, *arguments)
        else:
            places = validate(Upload, dropped, "the upload").saved(owner)
            seen = owner.compute(look_at_upload, *places)
        if page and "faults" not in seen and seen["name"] != page:
            raise ChironError(
                "another-workflow",
                f"the folder is of workflow {seen['name']}, and this page is about {page}: "
                "choose the folder on the page Deployed",
            )
    except ChironError as error:
        return {"faults": [each.as_dict() for each in error.parts or (error,)]}
    return seen


def _graph(elements: list[dict[str, Any]], drawn: str | None) -> tuple[Any, ...]:
    """Return the elements, their `hidden`, a picture, its `hidden`, and whether there is either."""
    if drawn is None:
        return elements, not elements, [], True, bool(elements)
    told = "The states and what follows them; the table has the tasks"
    return [], True, html.Img(src=picture(drawn), alt=told), False, True


def _with_measured(
    known: dict[str, Any], workflow: str
) -> tuple[dict[str, Any], list[Component | str]]:
    """Add the results of measuring jobs that `known` lacks; return it with lines for the page."""
    store, told = host().store, list[Component | str]()
    for part, kind in measuring.KINDS.items():
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
            line = f"It has no {part}.json: add the file, or measure it here."
            told.append(html.Div([line, measuring.button(part)], className="row"))
        else:
            known = known | {part: result}
            told.append(f"Its {part} is that of job {name}. ")
    return known, told


def _longest_slo_ms(known: dict[str, Any]) -> int:
    """Return twice the total time of all functions; one second without a profile."""
    functions = known.get("profile", {}).get("functions", {}).values()
    total_ms = sum(function["latency_ms"] for function in functions)
    return max(20, math.ceil(2 * total_ms)) if total_ms else 1000
