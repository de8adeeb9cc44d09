"""What happens to every request before and after its endpoint: an id, who may, a line of log."""

from __future__ import annotations

import logging
import re
import secrets
import time

from flask import Flask, Response, g, request

from services.access import Secret
from workflow.errors import ChironError

REQUEST_ID = "X-Request-Id"
#: Ids that a client may give its requests.
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_log = logging.getLogger("services")


def guard(app: Flask, secret: Secret | None) -> None:
    """Have `app` refuse who may not use it, and log every request without what it carried."""

    def begin() -> None:
        given = request.headers.get(REQUEST_ID, "")
        g.request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
        g.began = time.perf_counter()

    def refuse_strangers() -> None:
        if secret is not None and not secret.admits(request.headers.get("Authorization")):
            raise secret.refusal()

    def end(response: Response) -> Response:
        if response.status_code == 401 and secret is not None:
            response.headers["WWW-Authenticate"] = secret.challenge
        return _finish(response)

    app.before_request(begin)
    app.before_request(_refuse_other_origins)
    app.before_request(refuse_strangers)
    app.after_request(end)


def _refuse_other_origins() -> None:
    """Keep web pages of other sites from using the services through the user's browser."""
    origin = request.headers.get("Origin")
    if origin not in (None, f"http://{request.host}", f"https://{request.host}"):
        raise ChironError(
            "cross-origin", "web pages of other sites may not use the services", status=403
        )


def _finish(response: Response) -> Response:
    response.headers[REQUEST_ID] = g.request_id
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["Cache-Control"] = "no-store"
    fields = {
        "request_id": g.request_id,
        "method": request.method if request.url_rule else "-",
        "route": request.url_rule.rule if request.url_rule else "-",
        "status": response.status_code,
        "ms": round((time.perf_counter() - g.began) * 1000, 1),
    }
    _log.info("request", extra=fields)
    return response
