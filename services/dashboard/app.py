"""Dash with its pages: the overview and a workflow's page consist of the same sections."""

from __future__ import annotations

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, dcc, html
from dash.development.base_component import Component
from flask import Flask, g, request

from chiron.services.dashboard import (
    deploying,
    figures,
    front,
    jobs,
    live,
    measuring,
    plan,
    timeline,
    workflow,
)
from chiron.services.dashboard.mount import REQUEST_ID
from chiron.services.dashboard.parts import labelled
from chiron.services.folders import example_folder
from chiron.services.host import Host, remove_workspace
from chiron.services.problems import answer_errors
from chiron.services.strict_request import FORM_LIMIT

#: The HTML around it, with placeholders for Dash's scripts.
INDEX = """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>
<link rel="icon" href="/docs/static/images/swagger.svg">{%css%}</head>
<body><div id="refused" role="alert"></div>{%app_entry%}{%config%}{%scripts%}{%renderer%}</body>
</html>"""


def create_dash(owner: Host) -> Dash:
    """Return the dashboard of the services with the host `owner`."""
    server = Flask(__name__, static_folder=None)
    server.config.update(MAX_CONTENT_LENGTH=FORM_LIMIT)
    server.extensions["chiron"] = owner
    server.before_request(_take_request_id)
    server.teardown_request(remove_workspace)
    dash = Dash(
        __name__,
        server=server,  # type: ignore[arg-type]  # its annotation forgets Flask
        title="Chiron",
        update_title="",
        index_string=INDEX,
        add_log_handler=False,
        enable_mcp=False,
    )
    answer_errors(server)
    dash.layout = lambda: _page(example_folder(owner.config.root))
    for section in (workflow, measuring, plan, front, deploying, timeline, live, jobs):
        section.add_callbacks(dash)
    dash.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("address", "show"),
        Output("sections", "className"),
        Input("address", "pathname"),
    )
    return dash


def _take_request_id() -> None:
    g.request_id = request.environ[REQUEST_ID]


def _page(example: str) -> Component:
    """Return the whole page; `example` is the name of an example folder."""
    deployed_plan, happening = figures.layout()
    common = {"Graph": "workflow", "Plan": "plan", "Timeline": "timeline"}
    of_one = {"Executions": "executions", "Watch": "watch"}
    return html.Div(
        [
            dcc.Location(id="address", refresh=False),
            html.Header(
                [
                    html.H1(dcc.Link("Chiron", href="/")),
                    html.Nav(
                        [
                            dcc.Link("Deployed", href="/"),
                            *_links(common),
                            *_links(of_one, className="one-only"),
                            *_links({"Jobs": "jobs"}),
                            html.A("API", href="/docs"),
                        ],
                        **labelled("Sections"),
                    ),
                ]
            ),
            html.Main(
                [
                    live.layout(),
                    workflow.layout(example),
                    deployed_plan,
                    plan.layout(),
                    timeline.layout(),
                    *happening,
                    jobs.layout(),
                ],
                id="sections",
                className="all",
            ),
        ]
    )


def _links(named: dict[str, str], **more: Any) -> list[Component]:
    return [html.A(name, href=f"#{section}", **more) for name, section in named.items()]
