"""The page: headings, fields and empty places that the callbacks fill."""

from __future__ import annotations

from typing import Any

import dash_cytoscape
from dash import dcc, html
from dash.development.base_component import Component

from scheduler.planners import DEFAULT_PLANNER, PLANNERS
from services.dashboard.graph import STYLE, WRAPS

#: The browser's page around it, with the places where Dash puts its scripts.
INDEX = """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>
<link rel="icon" href="/docs/static/images/swagger.svg">{%css%}</head>
<body>{%app_entry%}{%config%}{%scripts%}{%renderer%}</body>
</html>"""
#: Most bytes of one file that is dropped: in base64 it has to fit into a request.
_LARGEST = 40 * 1024 * 1024
_POLL_MS = 2000


def page(example: str) -> Component:
    """All of it; `example` is a folder that may be named."""
    return html.Div(
        [
            html.Header(
                [
                    html.H1("Chiron"),
                    html.Nav(
                        [
                            html.A("Workflow", href="#workflow"),
                            html.A("Plan", href="#plan"),
                            html.A("Jobs", href="#jobs"),
                            html.A("API", href="/docs"),
                        ],
                        **_labelled("Sections"),
                    ),
                ]
            ),
            html.Main([_workflow(example), _plan(), _jobs()]),
            dcc.Store(id="known"),
            dcc.Store(id="planned"),
            dcc.Store(id="shown-jobs"),
        ]
    )


def _workflow(example: str) -> Component:
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
                **_labelled("The graph of the workflow, which the tables have as text"),
            ),
            html.Details([html.Summary("Tasks as a table"), html.Div(id="tasks")]),
        ],
        id="workflow",
    )


def _upload() -> Component:
    """A field for files: the label opens its dialog, and so does its key where it has the focus."""
    return html.Label(
        dcc.Upload(
            html.Span("Choose or drop an archive or files"),
            id="files",
            multiple=True,
            max_size=_LARGEST,
            disable_click=True,
            className="upload",
            className_active="upload active",
            className_reject="upload",
        )
    )


def _plan() -> Component:
    return html.Section(
        [
            html.H2("Plan"),
            html.Div(
                [
                    html.Label("SLO in ms", htmlFor="slo"),
                    dcc.Input(id="slo", type="range", min=1, max=1000, step=1, value=200),
                    html.Output("200 ms", id="slo-shown", htmlFor="slo"),
                ],
                className="row",
            ),
            html.Div(
                [
                    html.Label("Planner", htmlFor="planner"),
                    dcc.Input(
                        id="planner",
                        type="text",
                        value=DEFAULT_PLANNER,
                        list="planners",
                        debounce=True,
                    ),
                    html.Datalist([html.Option(value=name) for name in PLANNERS], id="planners"),
                ],
                className="row",
            ),
            html.Div(id="plan-faults", role="alert"),
            html.Div("Show a workflow with its profile and platform first.", id="summary"),
            html.Button("Export plan.json", id="export", disabled=True),
            dcc.Download(id="exported"),
        ],
        id="plan",
    )


def _jobs() -> Component:
    return html.Section(
        [
            html.H2("Jobs"),
            html.Div("No jobs.", id="job-list"),
            html.Div(id="job-faults", role="alert"),
            dcc.Interval(id="tick", interval=_POLL_MS),
        ],
        id="jobs",
    )


def _labelled(text: str) -> dict[str, Any]:
    """The attribute with what a screen reader says of an element."""
    return {"aria-label": text}


def faults(found: list[dict[str, Any]]) -> list[Component]:
    """Errors as the API has them: code, message and path, with the part of the document."""
    return [
        html.Div(
            [
                html.Strong(fault["code"]),
                html.Span(f" {fault['message']}"),
                *([html.P(["at ", html.Code(fault["path"])])] if fault.get("path") else []),
                *([html.Pre(fault["excerpt"], tabIndex=0)] if fault.get("excerpt") else []),
            ],
            className="fault",
        )
        for fault in found
    ]


def table(caption: str, heads: list[str], rows: list[list[Any]]) -> Component:
    """A table that can be scrolled sideways, also by keyboard."""
    return html.Div(
        html.Table(
            [
                html.Caption(caption),
                html.Thead(html.Tr([html.Th(head, scope="col") for head in heads])),
                html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in rows]),
            ]
        ),
        className="scroll",
        tabIndex=0,
        role="region",
        **_labelled(caption),
    )


def plan_summary(plan: dict[str, Any]) -> list[Component]:
    """Latency, range, cost and reasons of plan.json, and its wraps."""
    predicted, met = plan["predicted"], plan["meets_slo"]
    facts = [f"{plan['cpus']} CPU{'s' * (plan['cpus'] > 1)}"]
    if predicted:
        low, high = predicted["low_ms"], predicted["high_ms"]
        facts = [f"{predicted['latency_ms']:.1f} ms ({low:.1f} to {high:.1f})", *facts]
    verdict = "Meets the SLO" if met else "Does not meet the SLO"
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
        *[html.P(f"Warning: {line}") for line in (predicted or {}).get("warnings", ())],
        *([html.H3("Why"), html.Ul([html.Li(line) for line in plan["why"]])] * bool(plan["why"])),
        table("Wraps", ["Wrap", "CPUs", "Memory", "Mechanism", "Processes"], rows),
    ]


def job_rows(jobs: list[dict[str, Any]]) -> Component | str:
    """The jobs, with a button for each that can be cancelled."""
    if not jobs:
        return "No jobs."
    rows = []
    for job in jobs:
        lines, error = job["progress"], job["error"]
        told = error["message"] if error else lines[-1]["line"] if lines else ""
        cancel: Any = ""
        if job["status"] in ("queued", "running"):
            label = f"Cancel {job['kind']} {job['id']}"
            identity = {"type": "cancel", "job": job["id"]}
            cancel = html.Button("Cancel", id=identity, **_labelled(label))
        rows.append(
            [
                job["kind"],
                job["status"],
                told,
                job["created"],
                html.A(job["id"], href=job["location"]),
                cancel,
            ]
        )
    return table(
        "Jobs, the newest first", ["Kind", "Status", "Progress", "Created", "Id", "Cancel"], rows
    )
