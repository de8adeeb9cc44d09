"""What happens to every request before and after its endpoint: an id, who may, a line of log."""

from __future__ import annotations

import logging
import re
import secrets
import time

from flask import Flask, Response, g, request

from gateway.cross_site import JSON, refuse_cross_site
from gateway.errors import GatewayError
from services.access import Secret
from services.strict_request import FORM
from workflow.errors import ChironError

REQUEST_ID = "X-Request-Id"
#: Ids that a client may give its requests.
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
#: What bodies are; a form is sent by pages of other sites too, but not without their Origin.
_TYPES = (JSON, FORM)
_log = logging.getLogger("services")


def guard(app: Flask, secret: Secret | None) -> None:
    """Have `app` refuse who may not use it, and log every request without what it carried."""

    def begin() -> None:
        given = request.headers.get(REQUEST_ID, "")
        g.request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
        g.began = time.perf_counter()

    def refuse_web_pages() -> None:
        header = request.headers.get
        try:
            refuse_cross_site(request.method, header, types=_TYPES, secret=secret is not None)
        except GatewayError as error:
            raise ChironError(error.code, error.message, status=error.status) from None

    def refuse_strangers() -> None:
        if secret is not None and not secret.admits(request.headers.get("Authorization")):
            raise secret.refusal()

    def end(response: Response) -> Response:
        if response.status_code == 401 and secret is not None:
            response.headers["WWW-Authenticate"] = secret.challenge
        return _finish(response)

    app.before_request(begin)
    app.before_request(refuse_web_pages)
    app.before_request(refuse_strangers)
    app.after_request(end)


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
