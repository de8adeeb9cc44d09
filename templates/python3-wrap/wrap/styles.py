"""Calls a handler as its OpenFaaS template would, and reads its answer.

Only what a handler needs is made: a Flask request context costs as much as the rest of a call,
so it is there for functions that import flask and for no other.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flask import Flask
from werkzeug.datastructures import Headers, MultiDict
from werkzeug.wrappers import Response as BaseResponse

from wrap.answers import flask_value
from wrap.errors import TaskError
from wrap.loader import Function
from wrap.objects import Object
from wrap.redaction import redacted

if TYPE_CHECKING:
    from wrap.task_io import TaskIO

_FLASK = Flask("function")
_HOSTNAME = os.environ.get("HOSTNAME") or socket.gethostname()
_SHOWN = 200
#: No server sends the body of an answer with such a status.
_WITHOUT_BODY = (204, 304)
#: What Flask says where a handler does not.
_UNSAID = "text/html; charset=utf-8"


@dataclass
class Event:
    """What ``handle(event, context)`` gets of a request within a workflow."""

    body: bytes
    headers: Headers
    method: str = "POST"
    query: MultiDict[str, str] = field(default_factory=MultiDict)
    path: str = "/"


@dataclass
class Context:
    """Where ``handle(event, context)`` runs."""

    hostname: str = _HOSTNAME


def arguments(
    function: Function, given: Object, task_io: TaskIO | None, trace: Mapping[str, str]
) -> tuple[Any, ...]:
    """What the handler is called with for the input `given`; a command with its streams too.

    `trace` are the headers of the trace that it is part of.
    """
    if function.style == "command":
        return given, task_io, trace
    if function.style != "flask":
        return Event(given.data(), Headers(_headers(given, trace))), Context()
    raw = os.environ.get("RAW_BODY", "").lower() in ("1", "true")
    return (given.data() if raw else given.text(),)


def surroundings(
    function: Function, given: Object, trace: Mapping[str, str]
) -> AbstractContextManager[Any]:
    """The Flask request that the handler may look at, if it can."""
    if function.namespace.uses_flask:
        headers = _headers(given, trace)
        return _FLASK.test_request_context(method="POST", data=given.data(), headers=headers)
    return nullcontext()


def _headers(given: Object, trace: Mapping[str, str]) -> list[tuple[str, str]]:
    kind = [("Content-Type", given.content_type)] if given.content_type else []
    return [*kind, *trace.items()]


def output(style: str, value: Any) -> Object:
    """The body that a handler of that style answered, with the content type if it has said that.

    Raises
    ------
    TaskError
        ``bad-output``: not something that its template could send; ``status``: the handler
        answered 400 or above.
    """
    try:
        status, found = _answer(style, value)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise TaskError("bad-output", f"the handler's answer cannot be sent: {message}") from error
    if status >= 400:
        said = f"the handler answered {status}: "
        text = found.text()
        shown = said + redacted(text)[:_SHOWN]
        raise TaskError("status", shown, caught=("status", said + text))
    return found


def complete(value: Any) -> Any:
    """`value`, with what of it the handler computes only while it is sent."""
    if isinstance(value, tuple) and value:
        return (complete(value[0]), *value[1:])
    if isinstance(value, BaseResponse):
        value.direct_passthrough = False
        with closing(value):
            value.make_sequence()
    elif isinstance(value, Iterator):
        return b"".join(each.encode() if isinstance(each, str) else each for each in value)
    return value


def _answer(style: str, value: Any) -> tuple[int, Object]:
    kind = ""
    value = flask_value(style, value)
    match value:
        case tuple((str(body), 200, headers)):
            value, kind = body, Headers(headers).get("Content-Type", "")
    if isinstance(value, str):
        if not value.isascii():
            value.encode()  # a lone surrogate is no text
        return 200, Object(value if type(value) is str else str.__str__(value), kind)
    if isinstance(value, bytes | bytearray):
        return 200, Object(bytes(value), kind)
    with _FLASK.test_request_context(method="POST"):  # Flask looks at the request for some
        value = complete(_FLASK.make_response(value))
    if value.status_code in _WITHOUT_BODY:
        return value.status_code, Object("")
    said = value.content_type if value.content_type != _UNSAID else ""
    return value.status_code, Object(value.get_data(), said or "")
