"""The section Timeline: the predicted and the measured course of a request."""

from __future__ import annotations

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.development.base_component import Component

from chiron.services.dashboard.address import workflow_at
from chiron.services.dashboard.gantt import LABELS, REQUESTS, drawn, measured
from chiron.services.dashboard.parts import STILL, empty, faults_of, labelled, still, table
from chiron.services.host import host
from chiron.services.planning import PredictRequest
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError

#: The largest width of the timeline, in widths of the page.
_MOST_ZOOM = 40
_NOTHING: dict[str, Any] = {
    STILL: still(
        empty(
            "No timeline yet",
            "Show a workflow with its profile and platform, or press Measure for one that is "
            "deployed.",
        )
    )
}


def layout() -> Component:
    return html.Section(
        [
            html.H2("Timeline"),
            html.Label("Request to measure the deployed workflow with", htmlFor="request"),
            dcc.Textarea(id="request", value="{}", rows=2, spellCheck=False),
            html.Div(
                [
                    html.Button("Measure", id="measure", disabled=True, className="primary"),
                    html.Label("Zoom", htmlFor="zoom"),
                    dcc.Input(id="zoom", type="range", min=1, max=_MOST_ZOOM, step=1, value=1),
                ],
                className="row",
            ),
            html.Div(id="timeline-faults", role="alert"),
            html.Div(id="timeline-told", role="status", **_NOTHING),
            html.Ul(id="timeline-kinds", className="kinds"),
            html.Div(id="gantt", tabIndex=0, role="region", **labelled("Timeline"), hidden=True),
            html.Details([html.Summary("Timeline as a table"), html.Div(id="timeline-table")]),
            dcc.Store(id="measured", storage_type="session"),
            dcc.Store(id="drawn"),
        ],
        id="timeline",
    )


def add_callbacks(dash: Dash) -> None:
    _add_measuring(dash)
    _add_drawing(dash)


def _add_measuring(dash: Dash) -> None:
    @dash.callback(
        Output("measured", "data"),
        Output("timeline-faults", "children"),
        Output("measure", "disabled"),
        Input("measure", "n_clicks"),
        Input("known", "data"),
        Input("address", "pathname"),
        State("planned", "data"),
        State("request", "value"),
        running=[(Output("measure", "children"), "Measuring", "Measure")],
        prevent_initial_call=True,
    )
    def measure(
        _: int | None,
        known: dict[str, Any] | None,
        path: str | None,
        planned: dict[str, Any] | None,
        request: str | None,
    ) -> tuple[Any, ...]:
        name = _about(path, known)
        if ctx.triggered_id != "measure" or not name:
            return no_update, [], not name
        planner = planned["planner"] if planned and not workflow_at(path) else None
        try:
            found = host().compute(measured, host().config.connect, name, planner, request or "")
        except ChironError as error:
            return no_update, faults_of(error), False
        return found | {"workflow": name}, [], False


def _add_drawing(dash: Dash) -> None:
    @dash.callback(
        Output("timeline-told", STILL),
        Output("timeline-kinds", STILL),
        Output("timeline-table", STILL),
        Output("drawn", "data"),
        Input("planned", "data"),
        Input("measured", "data"),
        State("known", "data"),
        State("address", "pathname"),
        prevent_initial_call=True,
    )
    def draw(
        planned: dict[str, Any] | None,
        seen: dict[str, Any] | None,
        known: dict[str, Any] | None,
        path: str | None,
    ) -> tuple[Any, ...]:
        if seen and seen["workflow"] != _about(path, known):
            seen = None
        if not planned and not seen:
            return _NOTHING[STILL], still(), still(), None
        try:
            body = None
            if planned and known:
                parts = {n: known[n] for n in PredictRequest.model_fields.keys() & known.keys()}
                body = validate(PredictRequest, parts | {"plan": planned}, "the prediction")
            found = host().compute(drawn, body, seen and seen["timeline"])
        except ChironError as error:
            return still(*faults_of(error)), still(), still(), None
        told = [html.P(line) for line in _sentences(found, seen)]
        kinds = [
            html.Li([html.Span(className=f"bar {kind}"), LABELS[kind]]) for kind in found["kinds"]
        ]
        return still(*told), still(*kinds), still(_table(found["tasks"])), found

    # Dash's components are too slow for the elements of a thousand tasks.
    dash.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("timeline", "draw"),
        Output("gantt", "hidden"),
        Input("drawn", "data"),
        prevent_initial_call=True,
    )


def _about(path: str | None, known: dict[str, Any] | None) -> str | None:
    """Return the workflow of the page at `path`, or else the workflow that is shown."""
    return workflow_at(path) or (known["name"] if known else None)


def _sentences(found: dict[str, Any], seen: dict[str, Any] | None) -> list[str]:
    """Return the latency of the request, and the task that differs most from the prediction."""
    lasted_ms = found["latencies_ms"]
    told = []
    if "predicted" in lasted_ms:
        told.append(f"Predicted, above in each row: {lasted_ms['predicted']:.1f} ms.")
    if seen:
        low_ms, high_ms = seen["latencies_ms"][0], seen["latencies_ms"][-1]
        told.append(
            f"Measured, below in each row: {lasted_ms['measured']:.1f} ms, the median of "
            f"{REQUESTS} requests ({low_ms:.1f} to {high_ms:.1f} ms)."
        )
    if found["differs"]:
        told.append("What is deployed has its tasks elsewhere than the plan that is shown.")
    most = found["tasks"][0] if found["tasks"] else {}
    if off_ms := most.get("off_ms"):
        than = "longer" if off_ms > 0 else "shorter"
        told.append(f"Off most: {most['task']} ran {abs(off_ms):.2f} ms {than} than predicted.")
    return told


def _table(tasks: list[dict[str, Any]]) -> Component:
    def times(line: dict[str, Any], source: str) -> str:
        return "{:.2f} to {:.2f}".format(*line[source]) if source in line else "-"

    rows = [
        [
            *(line["task"], line["place"]),
            *(times(line, "predicted"), times(line, "measured")),
            f"{line['off_ms']:+.2f}" if "off_ms" in line else "-",
        ]
        for line in tasks
    ]
    heads = ["Task", "Where", "Predicted ms", "Measured ms", "Longer by ms"]
    return table("Tasks, those that are off most first", heads, rows)
