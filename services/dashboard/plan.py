"""The section Plan: an SLO and a planner, and the plan that results."""

from __future__ import annotations

import json
import math
import time
from typing import Any

from dash import Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.development.base_component import Component

from chiron.services.dashboard import deploying, front, options
from chiron.services.dashboard.graph import WRAPS
from chiron.services.dashboard.parts import STILL, empty, faults_of, still, table, warned
from chiron.services.dashboard.reading import plan_of
from chiron.services.host import host
from chiron.services.planning import ScheduleRequest
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan, Prediction

_NO_PLAN: dict[str, Any] = {
    STILL: still(
        empty(
            "No plan yet",
            "Show a workflow above: a plan needs its profile and the platform, which buttons "
            "measure.",
        )
    )
}


def layout() -> Component:
    return html.Section(
        [
            html.H2("Plan"),
            html.Div(
                [
                    html.Label("SLO in ms", htmlFor="slo"),
                    dcc.Input(id="slo", type="range", min=1, max=1000, step="any", value=200),
                    html.Label("exactly", htmlFor="slo-typed"),
                    dcc.Input(
                        id="slo-typed", type="number", min=0.1, step="any", value=200, debounce=True
                    ),
                ],
                className="row",
            ),
            options.field("planner"),
            html.Details(
                [html.Summary("Options"), html.Div(options.fields(besides=["planner"]))],
                id="options",
            ),
            html.Div(id="plan-faults", role="alert"),
            html.Div(id="summary", **_NO_PLAN),
            html.Div(
                [
                    html.Button("Export plan.json", id="export", disabled=True),
                    html.Button("Deploy", id="deploy", disabled=True, className="primary"),
                    html.Button("Compare others with this plan", id="keep", disabled=True),
                    html.Button("Compare no more", id="forget", hidden=True),
                ],
                className="row",
            ),
            dcc.Download(id="exported"),
            dcc.Store(id="planned"),
            dcc.Store(id="planned-first"),
            html.Div(id="differences", role="status"),
            dcc.Store(id="kept"),
            dcc.Store(id="deployed-slo"),
            deploying.layout(),
            front.layout(),
        ],
        id="plan",
    )


def add_callbacks(dash: Dash) -> None:
    _add_planning(dash)
    _add_slo(dash)
    _add_keeping(dash)


def _add_planning(dash: Dash) -> None:
    @dash.callback(
        Output("planned", "data"),
        Output("plan-faults", "children"),
        Output("summary", STILL),
        Output("graph", "elements", allow_duplicate=True),
        Output("export", "disabled"),
        Output("keep", "disabled"),
        Output("differences", STILL),
        Output("forget", "hidden"),
        Output("planned-first", "data"),
        Input("known", "data"),
        Input("slo", "value"),
        Input(options.identity(), "value"),
        Input("kept", "data"),
        State(options.identity(), "id"),
        prevent_initial_call=True,
    )
    def plan(
        known: dict[str, Any] | None,
        slo: float | None,
        values: list[Any],
        kept: dict[str, Any] | None,
        ids: list[dict[str, Any]],
    ) -> tuple[Any, ...]:
        given = options.slo_of(slo)
        first = time.time() if "known.data" in ctx.triggered_prop_ids else no_update
        if not known or not {"profile", "platform"} <= known.keys():
            return None, [], _NO_PLAN[STILL], no_update, True, True, still(), True, first
        try:
            asked = known | {"slo": given} | options.chosen(values, ids)
            body = validate(ScheduleRequest, asked, "the plan")
            other = validate(Plan, kept, "the kept plan") if kept else None
            found = host().compute(plan_of, body, other)
        except ChironError as error:
            return None, faults_of(error), still(), no_update, True, True, still(), True, first
        summary, differences = _summary(found["plan"]), _differences(found) if kept else []
        shown = (still(*summary), found["graph"], False, False, still(*differences))
        told = (*shown, not kept, first)
        return found["plan"], [], *told


def _add_slo(dash: Dash) -> None:
    @dash.callback(
        Output("slo", "value"),
        Output("slo", "max", allow_duplicate=True),
        Output("slo-typed", "value"),
        Input("slo", "value"),
        Input("slo-typed", "value"),
        Input("deployed-slo", "data"),
        State("slo", "max"),
        prevent_initial_call=True,
    )
    def same(
        slid: float | str | None, typed: float | None, deployed: list[Any] | None, most: float
    ) -> tuple[Any, ...]:
        """Keep the slider and the number equal, and undo a value that cannot be an SLO.

        A page of a deployed workflow starts with the SLO of its deployment.
        """
        if ctx.triggered_id == "deployed-slo":
            if not deployed:
                return (no_update,) * 3
            return deployed[1], max(most, math.ceil(deployed[1])), deployed[1]
        if ctx.triggered_id == "slo-typed" and typed:
            return typed, max(most, math.ceil(typed)), no_update
        return no_update, no_update, round(float(slid or 0), 1)


def _add_keeping(dash: Dash) -> None:
    @dash.callback(
        Output("kept", "data"),
        Input("keep", "n_clicks"),
        Input("forget", "n_clicks"),
        State("planned", "data"),
        prevent_initial_call=True,
    )
    def keep(_: int | None, __: int | None, planned: dict[str, Any] | None) -> Any:
        return planned if ctx.triggered_id == "keep" else None

    @dash.callback(
        Output("exported", "data"),
        Input("export", "n_clicks"),
        State("planned", "data"),
        prevent_initial_call=True,
    )
    def export(_: int | None, planned: dict[str, Any] | None) -> Any:
        if not planned:
            return no_update
        text = json.dumps(planned, indent=1, ensure_ascii=False) + "\n"
        return {"content": text, "filename": "plan.json", "type": "application/json"}


def _summary(plan: dict[str, Any]) -> list[Component]:
    """Return latency, range, cost and reasons of plan.json, and its wraps."""
    predicted, met = plan["predicted"], plan["meets_slo"]
    facts = [f"{plan['cpus']} CPU{'s' * (plan['cpus'] > 1)}"]
    if predicted:
        facts = [f"{validate(Prediction, predicted, 'the plan').shown} ms", *facts]
    verdict = f"{'Meets' if met else 'Does not meet'} the SLO of {plan['slo_ms']:g} ms"
    rows = [
        [
            html.Span(wrap["name"], className="swatch", style={"backgroundColor": colour}),
            wrap["cpus"],
            f"{wrap['memory_mib']} MiB",
            wrap["mechanism"],
            html.Ol([html.Li(", ".join(tasks) or "starts others") for tasks in wrap["processes"]]),
        ]
        for index, wrap in enumerate(plan["wraps"])
        for colour in (WRAPS[index % len(WRAPS)],)
    ]
    return [
        html.P(
            f"{verdict}: {', '.join(facts)}",
            className="met" if met else "missed",
            id="verdict",
            role="status",
        ),
        *warned((predicted or {}).get("warnings", ())),
        *([html.H3("Why"), html.Ul([html.Li(line) for line in plan["why"]])] * bool(plan["why"])),
        table("Wraps", ["Wrap", "CPUs", "Memory", "Mechanism", "Processes"], rows),
    ]


def _differences(found: dict[str, Any]) -> list[Component]:
    if not found["figures"] and not found["moves"]:
        return [html.P("This is the plan to compare with: choose another one.")]
    figures = table("Differences", ["Figure", "Kept", "Shown"], found["figures"])
    return [figures, html.Ul([html.Li(line) for line in found["moves"]])]
