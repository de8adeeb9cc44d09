"""Errors as answers: one JSON form for whatever goes wrong, prose and tracebacks for nobody."""

from __future__ import annotations

import logging
from http import HTTPStatus

from flask import Flask, Response, jsonify, request
from pydantic import ValidationError
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect

from workflow.documents import Document, dotted
from workflow.errors import ChironError

_log = logging.getLogger("services")

#: Code and message of the errors that the web framework finds.
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
    """An error: a word for programs, a line for people, where it is, and whom it concerns."""

    code: str
    message: str
    path: str | None = None
    functions: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: ChironError) -> Problem:
        """The form of `error` that is sent and stored."""
        return cls(
            code=error.code, message=error.message, path=error.path, functions=error.functions
        )

    @classmethod
    def internal(cls) -> Problem:
        """What a client may know of a fault of ours."""
        return cls(code="internal", message="the service failed: its log has the reason")


def answer_errors(app: Flask) -> None:
    """Answer every error of `app` as a `Problem`."""
    app.register_error_handler(ChironError, _chiron)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, _unexpected)


def refuse_body(error: ValidationError) -> Response:
    """Turn what is wrong with a request's body or address into an error that names the field."""
    fault = error.errors(include_url=False, include_input=False)[0]
    message = fault["msg"].removeprefix("Value error, ")
    raise ChironError("bad-request", f"request: {message}", path=dotted(fault["loc"]) or None)


def _chiron(error: ChironError) -> tuple[Response, int]:
    return _answer(Problem.of(error), error.status)


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
    _log.error("%s %s failed", request.method, request.path, exc_info=error)
    return _answer(Problem.internal(), HTTPStatus.INTERNAL_SERVER_ERROR)


def _answer(problem: Problem, status: int) -> tuple[Response, int]:
    return jsonify(problem.model_dump(mode="json")), status
