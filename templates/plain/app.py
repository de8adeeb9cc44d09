"""The Flask application around one handler, with the routes and rules of OpenFaaS's templates."""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from flask import Flask, request
from flask.typing import ResponseReturnValue
from wrap.functions.answers import ENDPOINTS, METHODS, flask_value
from wrap.http.server.program import OneProcess


class Event:
    """The request, as ``handle(event, context)`` sees it."""

    def __init__(self) -> None:
        self.body = request.get_data()
        self.headers = request.headers
        self.method = request.method
        self.query = request.args
        self.path = request.path


class Context:
    """Where ``handle(event, context)`` runs."""

    def __init__(self) -> None:
        self.hostname = os.environ.get("HOSTNAME") or socket.gethostname()


def create_app(style: str) -> Flask:
    """The application around ``function/handler.py``.

    Raises ValueError if `style` is none of `METHODS`, ImportError if there is no handler with a
    ``handle``.
    """
    if style not in METHODS:
        raise ValueError(f"handler_style is {style!r}: set it to {', '.join(METHODS)}")
    handler = importlib.import_module("function.handler")
    if not callable(getattr(handler, "handle", None)):
        raise ImportError("function/handler.py defines no handle()")
    app = Flask("function", root_path=str(Path(__file__).resolve().parent))
    call = _flask_call(handler) if style == "flask" else _http_call(handler, style)

    @app.get("/_/health")
    def health() -> str:
        return "OK"

    @app.route("/", endpoint=ENDPOINTS[style], defaults={"path": ""}, methods=METHODS[style])
    @app.route("/<path:path>", endpoint=ENDPOINTS[style], methods=METHODS[style])
    def run(path: str) -> ResponseReturnValue:
        return call()

    return app


def _flask_call(handler: ModuleType) -> Callable[[], ResponseReturnValue]:
    def call() -> ResponseReturnValue:
        raw = os.environ.get("RAW_BODY", "").lower() in ("1", "true")
        body = request.get_data() if raw else request.get_data(as_text=True)
        with OneProcess():
            answer: ResponseReturnValue = handler.handle(body)
        return answer

    return call


def _http_call(handler: ModuleType, style: str) -> Callable[[], ResponseReturnValue]:
    def call() -> ResponseReturnValue:
        with OneProcess():
            answer = handler.handle(Event(), Context())
        value: ResponseReturnValue = flask_value(style, answer)
        return value

    return call
