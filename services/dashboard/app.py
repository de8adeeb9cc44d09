"""Dash with its page: the sections, one below the other."""

from __future__ import annotations

from dash import Dash, html
from dash.development.base_component import Component
from flask import Flask, g, request

from chiron.services.dashboard import deploying, front, jobs, live, plan, timeline, workflow
from chiron.services.dashboard.mount import REQUEST_ID
from chiron.services.dashboard.parts import labelled
from chiron.services.folders import example_folder
from chiron.services.host import Host, remove_workspace
from chiron.services.problems import answer_errors
from chiron.services.strict_request import FORM_LIMIT

#: The browser's page around it, with the places where Dash puts its scripts.
INDEX = """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>
<link rel="icon" href="/docs/static/images/swagger.svg">{%css%}</head>
<body><div id="refused" role="alert"></div>{%app_entry%}{%config%}{%scripts%}{%renderer%}</body>
</html>"""


def create_dash(owner: Host) -> Dash:
    """The dashboard of the services that have `owner`."""
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
    for section in (workflow, plan, front, deploying, timeline, live, jobs):
        section.add_callbacks(dash)
    return dash


def _take_request_id() -> None:
    g.request_id = request.environ[REQUEST_ID]


def _page(example: str) -> Component:
    """All of it; `example` is a folder that may be named."""
    return html.Div(
        [
            html.Header(
                [
                    html.H1("Chiron"),
                    html.Nav(
                        [
                            html.A("Deployed", href="#live"),
                            html.A("Workflow", href="#workflow"),
                            html.A("Plan", href="#plan"),
                            html.A("Timeline", href="#timeline"),
                            html.A("Jobs", href="#jobs"),
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
                    plan.layout(),
                    timeline.layout(),
                    jobs.layout(),
                ]
            ),
        ]
    )
