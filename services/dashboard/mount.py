"""The routes of the dashboard in the services' application, behind the same checks.

Dash has its own Flask application, created on the first request for a page. Until then Dash is not
imported, and it never handles requests of the API.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING

from flask import Blueprint, g, request
from werkzeug.wrappers import Response as Answer

from chiron.installation.packages import extra_line
from chiron.services.host import Host, host
from chiron.workflow.errors import ChironError

if TYPE_CHECKING:
    from dash import Dash

#: The pages, and the paths of Dash's scripts, styles and callbacks.
_ROUTES = ("/", "/workflow/<_>", "/assets/<path:_>", "/_dash-<path:_>")
_LIBRARIES = ("dash", "dash_cytoscape")
#: The key of the request's id, given by the services, in the environment of Dash's application.
REQUEST_ID = "chiron.request_id"
_lock = threading.Lock()


def dashboard() -> Blueprint:
    """Return the routes of the dashboard, for an application in which ``host()`` works."""
    pages = Blueprint("dashboard", __name__)
    for rule in _ROUTES:
        pages.add_url_rule(rule, "answer", _answer, methods=["GET", "POST"])
    return pages


def _answer(_: str = "") -> Answer:
    with _lock:  # two first requests would both import Dash
        dash = _dash_of(host())
    request.environ[REQUEST_ID] = g.request_id
    response = Answer.from_app(dash.server.wsgi_app, request.environ, buffered=True)
    response.headers["Content-Security-Policy"] = _policy(dash)
    return response


@cache
def _dash_of(owner: Host) -> Dash:
    try:
        from chiron.services.dashboard.app import create_dash  # takes half a second
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in _LIBRARIES:
            raise
        message = f"the dashboard is not installed: {extra_line('dashboard')}"
        raise ChironError("no-dashboard", message, status=501) from error
    return create_dash(owner)


@cache
def _policy(dash: Dash) -> str:
    """Return the page's policy: its own scripts, and inline styles, which Dash needs."""
    scripts = " ".join(("'self'", *dash.csp_hashes()))
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
