"""Calls a handler as its OpenFaaS template would, and reads its answer.

Only what a handler needs is made: a Flask request context costs as much as the rest of a call,
so it is there for functions that import flask and for no other.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flask import Flask, Response
from werkzeug.datastructures import Headers, MultiDict

from wrap.answers import http_answer
from wrap.errors import TaskError
from wrap.loader import Function
from wrap.objects import Object
from wrap.redaction import redacted

if TYPE_CHECKING:
    from wrap.task_io import TaskIO

_FLASK = Flask("function")
_HOSTNAME = os.environ.get("HOSTNAME") or socket.gethostname()
_SHOWN = 200
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
    if function.style == "http":
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
    except (TypeError, UnicodeError) as error:  # a lone surrogate is no text either
        raise TaskError("bad-output", str(error)) from error
    if status >= 400:
        said = redacted(found.text())[:_SHOWN]
        raise TaskError("status", f"the handler answered {status}: {said}")
    return found


def _answer(style: str, value: Any) -> tuple[int, Object]:
    kind = ""
    if style == "http":
        value, status, headers = http_answer(value)
        kind = Headers(headers).get("Content-Type", "")
        if status != 200:
            value = value, status
    if isinstance(value, str):
        if not value.isascii():
            value.encode()
        return 200, Object(value, kind)
    if isinstance(value, bytes | bytearray):
        return 200, Object(bytes(value), kind)
    if isinstance(value, dict | list):
        value = _FLASK.json.response(value)
    if value is None:
        raise TypeError("the handler returned None: return a string")
    if not isinstance(value, Response):
        with _FLASK.test_request_context(method="POST"):  # Flask looks at the request for the rest
            value = _FLASK.make_response(value)
    said = value.content_type if value.content_type != _UNSAID else ""
    return value.status_code, Object(value.get_data(), kind or said or "")
