"""Errors as answers: every error in one JSON form, or as its sentence in a browser."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus

from flask import Flask, Response, g, request
from pydantic import ValidationError
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect

from chiron.workflow.documents import Document, refusal
from chiron.workflow.errors import ChironError

#: The value of Retry-After in seconds.
RETRY_AFTER_S = 5
_log = logging.getLogger("services")

#: Code and message of the web framework's errors.
_FOUND_BY_FLASK = {
    HTTPStatus.NOT_FOUND: ("not-found", "there is no such endpoint: /docs lists them"),
    HTTPStatus.METHOD_NOT_ALLOWED: (
        "method-not-allowed",
        "the endpoint has no such method: /docs lists them",
    ),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (
        "too-large",
        "the body is too large: JSON may have 1 MiB, a form with an archive 64 MiB",
    ),
}


class Problem(Document):
    """An error: a word for programs, a line for people, its place, and the functions concerned."""

    code: str
    message: str
    path: str | None = None
    functions: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: ChironError) -> Problem:
        """Return the form of `error` that is sent and stored."""
        return cls(
            code=error.code, message=error.message, path=error.path, functions=error.functions
        )


def render_problem(problem: Problem, accept: str | None) -> tuple[str, str]:
    """Return a problem's text and media type: JSON, or its sentence for a browser."""
    if "text/html" in (accept or ""):
        return f"{problem.message}\n", "text/plain"
    return json.dumps(problem.model_dump(mode="json")), "application/json"


def internal() -> ChironError:
    """Return the error that clients see of an internal fault."""
    return ChironError("internal", "the service failed: its log has the reason", status=500)


def answer_errors(app: Flask) -> None:
    app.register_error_handler(ChironError, _chiron)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, _unexpected)


def refuse_body(error: ValidationError) -> Response:
    """Turn an invalid body or address into an error that names the field."""
    raise refusal(error, "bad-request", "request")


def _chiron(error: ChironError) -> tuple[Response, int]:
    response, status = _answer(Problem.of(error), error.status)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response, status


def _http(error: HTTPException) -> Response | tuple[Response, int]:
    if isinstance(error, RequestRedirect):
        return Response(status=error.code, headers={"Location": error.new_url})
    status = HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR)
    phrase = status.phrase.lower().replace(" ", "-")
    code, message = _FOUND_BY_FLASK.get(status, (phrase, error.description or status.phrase))
    response, _ = _answer(Problem(code=code, message=message), status)
    for name, value in error.get_headers():
        if name == "Allow":
            response.headers[name] = value
    return response, status


def _unexpected(error: Exception) -> tuple[Response, int]:
    _log.error("request failed", exc_info=error, extra={"request_id": g.get("request_id")})
    return _answer(Problem.of(internal()), HTTPStatus.INTERNAL_SERVER_ERROR)


def _answer(problem: Problem, status: int) -> tuple[Response, int]:
    content, kind = render_problem(problem, request.headers.get("Accept"))
    return Response(content, mimetype=kind), status
