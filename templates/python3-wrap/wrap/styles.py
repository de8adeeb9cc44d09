"""Calls a handler as its OpenFaaS template would, and reads its answer as a text.

Only what a handler needs is made: a Flask request context costs as much as the rest of a call,
so it is there for functions that import flask and for no other.
"""

from __future__ import annotations

import os
import socket
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from flask import Flask, Response
from werkzeug.datastructures import Headers, MultiDict

from wrap.answers import http_answer
from wrap.errors import TaskError
from wrap.loader import Function
from wrap.redaction import redacted

_FLASK = Flask("function")
_HOSTNAME = os.environ.get("HOSTNAME") or socket.gethostname()
_SHOWN = 200


@dataclass
class Event:
    """What ``handle(event, context)`` gets of a request within a workflow."""

    body: bytes
    headers: Headers = field(default_factory=Headers)
    method: str = "POST"
    query: MultiDict[str, str] = field(default_factory=MultiDict)
    path: str = "/"


@dataclass
class Context:
    """Where ``handle(event, context)`` runs."""

    hostname: str = _HOSTNAME


def arguments(function: Function, text: str) -> tuple[Any, ...]:
    """What the handler is called with for the input `text`."""
    if function.style == "http":
        return Event(text.encode()), Context()
    raw = os.environ.get("RAW_BODY", "").lower() in ("1", "true")
    return (text.encode() if raw else text,)


def surroundings(function: Function, text: str) -> AbstractContextManager[Any]:
    """The Flask request that the handler may look at, if it can."""
    if function.namespace.uses_flask:
        return _FLASK.test_request_context(method="POST", data=text.encode())
    return nullcontext()


def output(function: Function, value: Any) -> str:
    """The body that the handler answered, as text.

    Raises
    ------
    TaskError
        ``bad-output``: not something that its template could send; ``not-text``: not UTF-8;
        ``status``: the handler answered 400 or above.
    """
    try:
        status, body = _response(function, value)
    except TypeError as error:
        raise TaskError("bad-output", str(error)) from error
    try:
        text = body.decode() if isinstance(body, bytes) else body
        if not text.isascii():
            text.encode()  # a lone surrogate is no text either
    except UnicodeError as error:
        message = f"the output is not UTF-8 text ({error}): encode it, in base64 for example"
        raise TaskError("not-text", message) from error
    if status >= 400:
        raise TaskError("status", f"the handler answered {status}: {redacted(text)[:_SHOWN]}")
    return text


def _response(function: Function, value: Any) -> tuple[int, str | bytes]:
    if function.style == "http":
        value = http_answer(value)
        if value[1] == 200:
            value = value[0]
    if isinstance(value, str):
        return 200, value
    if isinstance(value, bytes | bytearray):
        return 200, bytes(value)
    if isinstance(value, dict | list):
        value = _FLASK.json.response(value)
    if isinstance(value, Response):
        return value.status_code, value.get_data()
    if value is None:
        raise TypeError("the handler returned None: return a string")
    with _FLASK.test_request_context(method="POST"):  # Flask looks at the request for the rest
        response = _FLASK.make_response(value)
        return response.status_code, response.get_data()
