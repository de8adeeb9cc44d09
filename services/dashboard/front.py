"""The part of the section Plan that shows the cost of other plans; a click chooses a plan."""

from __future__ import annotations

import math
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.development.base_component import Component

from chiron.scheduler.planners import DEFAULT_PLANNER
from chiron.services.dashboard import options
from chiron.services.dashboard.parts import labelled, table
from chiron.services.dashboard.reading import front_of
from chiron.services.host import host
from chiron.services.planning import ScheduleRequest
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError

_COLUMNS = ["Planner", "CPUs", "Latency ms of the percentile", "Memory", "Wraps", "Choose"]
#: The axes of the graph: the side at which values start, and their unit.
_AXES = {"latency_ms": ("left", " ms"), "cpus": ("bottom", " CPUs")}
_ROUND = [digit * 10.0**power for power in range(-3, 9) for digit in (1, 2, 5)]
_TICKS = 6
#: The choices by which a plan is found; the front does not depend on them.
_FOUND_BY = ("planner", "strategy")


def layout() -> Component:
    """Return the graph, for the mouse alone, and the table, which has the same for everyone."""
    graph = [html.Div(id=name) for name in ("front-points", "front-slo", "front-plan")]
    hidden: dict[str, Any] = {"aria-hidden": "true"}
    return html.Div(
        [
            html.H3("Other plans"),
            html.P(
                f"Of {DEFAULT_PLANNER} (filled in the graph) the best for each SLO: none that it "
                "finds has less latency without more CPUs, or less CPUs without more latency."
            ),
            html.Div(graph, className="graph", **hidden),
            html.Div(id="front-table"),
            dcc.Store(id="points"),
            dcc.Store(id="points-of"),
        ],
        id="front",
        hidden=True,
    )


def add_callbacks(dash: Dash) -> None:
    _add_showing(dash)
    _add_choosing(dash)


def _add_showing(dash: Dash) -> None:
    @dash.callback(
        Output("front", "hidden"),
        Output("front-points", "children"),
        Output("front-table", "children"),
        Output("points", "data"),
        Output("points-of", "data"),
        Input("planned-first", "data"),  # the first plan of another workflow
        Input(options.identity(), "value"),
        State("known", "data"),
        State(options.identity(), "id"),
        State("points-of", "data"),
        prevent_initial_call=True,
    )
    def show(
        _: float | None,
        values: list[Any],
        known: dict[str, Any] | None,
        ids: list[dict[str, Any]],
        before: Any,
    ) -> tuple[Any, ...]:
        chosen = options.chosen(values, ids)
        given = {name: value for name, value in chosen.items() if name not in _FOUND_BY}
        if ctx.triggered_id != "planned-first" and given == before:
            return (no_update,) * 5
        if not known or not {"profile", "platform"} <= known.keys():
            return True, [], [], None, given
        try:
            asked = known | given | {"slo": "1s"}  # the front is the same for any SLO
            points = host().compute(front_of, validate(ScheduleRequest, asked, "the plan"))
        except ChironError:  # the section Plan shows the error
            return True, [], [], None, given
        bounds = {axis: _bounds([point[axis] for point in points]) for axis in _AXES}
        drawn = [*_ticks(bounds), *_points(points, bounds)]
        return False, drawn, _table(points), {"points": points, "bounds": bounds}, given


def _add_choosing(dash: Dash) -> None:
    @dash.callback(
        Output("slo", "value", allow_duplicate=True),
        Output("slo", "max", allow_duplicate=True),
        Output(options.identity("planner"), "value"),
        Output(options.identity("strategy"), "value"),
        Input({"type": "point", "place": ALL, "index": ALL}, "n_clicks"),
        State("points", "data"),
        State("slo", "max"),
        prevent_initial_call=True,
    )
    def choose(_: list[Any], front: dict[str, Any] | None, most: float) -> tuple[Any, ...]:
        if not front or not ctx.triggered[0]["value"]:
            return (no_update,) * 4
        point = front["points"][ctx.triggered_id["index"]]
        slo = math.ceil(10 * point["latency_ms"]) / 10
        return slo, max(most, math.ceil(slo)), point["planner"], "cost"

    dash.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("front", "mark"),
        Output("front-slo", "style"),
        Output("front-plan", "style"),
        Input("points", "data"),
        Input("slo", "value"),
        Input("planned", "data"),
    )


def _table(points: list[dict[str, Any]]) -> Component:
    rows = [
        [
            point["planner"],
            point["cpus"],
            f"{point['latency_ms']:.1f}",
            f"{point['memory_mib']} MiB",
            point["wraps"],
            html.Button(
                "Choose", id=_identity("table", index), **labelled(f"Choose {_shown(point)}")
            ),
        ]
        for index, point in enumerate(points)
    ]
    return table("Plans by CPUs and latency", _COLUMNS, rows)


def _points(points: list[dict[str, Any]], bounds: dict[str, Any]) -> list[Component]:
    return [
        html.Button(
            id=_identity("graph", index),
            title=_shown(point),
            tabIndex=-1,
            className="point found" if point["planner"] == DEFAULT_PLANNER else "point",
            style={
                "left": _place(point["latency_ms"], bounds["latency_ms"]),
                "bottom": _place(point["cpus"], bounds["cpus"]),
            },
        )
        for index, point in enumerate(points)
    ]


def _ticks(bounds: dict[str, list[float]]) -> list[Component]:
    """Return the values at the axes, with the unit at the end of each."""
    return [
        html.Span(
            f"{value:g}{unit * (value == bounds[axis][1])}",
            className=f"tick {side}",
            style={side: _place(value, bounds[axis])},
        )
        for axis, (side, unit) in _AXES.items()
        for value in _between(*bounds[axis])
    ]


def _bounds(values: list[float]) -> list[float]:
    """Return the values at the ends of a logarithmic axis: two different round numbers."""
    low = max(value for value in _ROUND if value <= min(values))
    return [low, min(value for value in _ROUND if value >= max(values) and value > low)]


def _between(low: float, high: float) -> list[float]:
    """Return round numbers between the bounds, at most `_TICKS`."""
    found = [value for value in _ROUND if low <= value <= high]
    return found[:: -(-len(found) // _TICKS)] if len(found) > _TICKS else found


def _place(value: float, bounds: list[float]) -> str:
    low, high = bounds
    return f"{100 * math.log(value / low) / math.log(high / low):.2f}%"


def _shown(point: dict[str, Any]) -> str:
    cpus = f"{point['cpus']} CPU{'s' * (point['cpus'] > 1)}"
    return f"{point['planner']}, {cpus}, p{point['percentile']:g} {point['latency_ms']:.1f} ms"


def _identity(place: str, index: int) -> dict[str, Any]:
    return {"type": "point", "place": place, "index": index}
