"""Calls a handler as its OpenFaaS template would, and reads its answer.

Only what a handler needs is made: a Flask request context costs as much as the rest of a call,
so it is there for functions that import flask and for no other.
"""

from __future__ import annotations

import io
import os
import re
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from flask import Flask, has_request_context
from flask.ctx import RequestContext
from flask.globals import request_ctx
from waitress.task import hop_by_hop
from werkzeug.datastructures import Headers
from werkzeug.wrappers import Request
from werkzeug.wrappers import Response as BaseResponse

from wrap.config.redaction import redacted
from wrap.config.wrap_spec import Seen
from wrap.core.errors import TaskError
from wrap.core.statemachine.errors import cause_of
from wrap.functions.answers import flask_value
from wrap.functions.public import PACKAGE, directory
from wrap.values.value import Head, Object, shown


def _unmatched() -> None:
    """Look for no route."""


class Application(Flask):
    """The application that a function finds, which may configure it.

    Has as its folder that of the function which asks for it, as ``send_file`` does.

    It has no routes. A request would keep the error of that, whose traceback has the frames, and so
    the inputs, of those that called: until garbage is collected, as both are a cycle.
    """

    def request_context(self, environ: dict[str, Any]) -> RequestContext:
        context = super().request_context(environ)
        context.match_request = _unmatched  # type: ignore[method-assign]
        return context

    @property
    def root_path(self) -> str:
        return directory() or self._root_path

    @root_path.setter
    def root_path(self, path: str) -> None:
        self._root_path = path


def application(folder: str) -> Application:
    """One for a function whose working directory is `folder`."""
    whole = os.path.abspath(folder)  # noqa: PTH100 (links stay)
    return Application(PACKAGE, root_path=whole, instance_path=f"{whole}/instance")


#: Makes the answers of functions that do not import Flask.
_FLASK = application(".")
_HOSTNAME = os.environ.get("HOSTNAME") or socket.gethostname()
_SHOWN = 200
#: Lower ones are no answers yet.
_OK = 200
_MOST = 999
#: What a header may be called (RFC 9110, 5.6.2).
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: No server sends the body of an answer with such a status.
_WITHOUT_BODY = (204, 304)
#: What Flask says where a handler does not.
UNSAID = "text/html; charset=utf-8"
#: The environment of a task that gets no request, but what other tasks have given.
_INNER = {
    "REQUEST_METHOD": "POST",
    "SCRIPT_NAME": "",
    "PATH_INFO": "/",
    "QUERY_STRING": "",
    "REMOTE_ADDR": "127.0.0.1",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "80",
    "SERVER_SOFTWARE": "waitress",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "HTTP_HOST": "localhost",
    "wsgi.url_scheme": "http",
}
#: The input of what Flask makes of an answer where the handler has no request.
_NONE = Object("")
#: The headers of an answer that its server sets, in lower case.
OF_SERVER = hop_by_hop | {"content-length"}


class _Given:
    """Has a task's input and the headers of its trace, and keeps them out of ``vars()``."""

    __slots__ = ("__dict__", "_given", "_trace")

    def __init__(self, given: Object, trace: Mapping[str, str]) -> None:
        self._given, self._trace = given, trace


class Event(_Given):
    """What ``handle(event, context)`` gets of a request.

    Most handlers look at `body` alone. The other fields, which take longer, are made when the
    first of them, or all, are asked for.
    """

    __slots__ = ()

    def __init__(self, given: Object, trace: Mapping[str, str]) -> None:
        super().__init__(given, trace)
        self.body = given.data()

    def __getattr__(self, name: str) -> Any:
        """A field that is not there yet."""
        return self._fields()[name] if name in _FIELDS else object.__getattribute__(self, name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All fields, as ``vars(event)`` shows them."""
        return self._fields()

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = _dict_of(self)
        if "method" not in fields:
            environ = _environ(self._given, self._trace)
            request = Request(environ, populate_request=False)  # which would be a cycle
            for name, value in zip(
                _FIELDS, map(partial(getattr, request), _OF_REQUEST), strict=True
            ):
                fields.setdefault(name, value)  # a handler may have set it
        return fields


_dict_of = _Given.__dict__["__dict__"].__get__
#: The fields of an event beside its body, and what they are of a request.
_FIELDS = ("headers", "method", "query", "path")
_OF_REQUEST = ("headers", "method", "args", "path")


@dataclass
class Context:
    """Where ``handle(event, context)`` runs."""

    hostname: str = _HOSTNAME


def is_raw() -> bool:
    """Whether handlers of the style ``flask`` get bytes, by the environment."""
    return "RAW_BODY" in os.environ and os.environ["RAW_BODY"].lower() in ("1", "true")


def arguments(
    style: str, given: Object, trace: Mapping[str, str], *, raw: bool = False
) -> tuple[Any, ...]:
    """What a handler of that style is called with for the input `given`.

    `trace` are the headers of the trace that the task is part of; `raw` is what `is_raw` says.
    """
    if style != "flask":
        return Event(given, trace), Context()
    return (given.data() if raw else given.text(),)


def flask_request(
    application: Flask, given: Object, trace: Mapping[str, str]
) -> AbstractContextManager[Any]:
    """The Flask request that a handler may look at."""
    context = application.request_context(_with_body(_environ(given, trace), given))
    context.request.get_data()  # the template reads the body first, so its stream is at its end
    context.request.view_args = {"path": context.request.path.lstrip("/")}
    return context


def _environ(given: Object, trace: Mapping[str, str]) -> dict[str, Any]:
    """The WSGI environment of a task: the request's where its input is the request."""
    environ: dict[str, Any]
    if isinstance(given.head, dict):
        environ = {**shown(given.head)}
    else:
        environ = dict(_INNER, CONTENT_LENGTH=str(len(given.view())))
        if given.content_type:
            environ["CONTENT_TYPE"] = given.content_type
    for name, value in trace.items():
        environ["HTTP_" + name.upper()] = value
    return environ


def _with_body(environ: dict[str, Any], given: Object) -> dict[str, Any]:
    """`environ` with what a WSGI application finds in one beside texts."""
    environ["wsgi.version"] = (1, 0)
    environ["wsgi.input"] = io.BytesIO(given.data())
    environ["wsgi.input_terminated"] = True
    environ["wsgi.errors"] = sys.stderr
    environ["wsgi.multithread"], environ["wsgi.multiprocess"] = True, False
    environ["wsgi.run_once"] = False
    return environ


def output(style: str, value: Any, seen: Seen = Seen.BY_NOBODY) -> Object:
    """The body that a handler of that style answered, with the content type if it has said that.

    Where the client may see them, status and headers are its head.

    Raises
    ------
    TaskError
        ``bad-output``: not something that its template could send; ``status``: the handler
        answered 400 or above, and this is not what the client gets.
    """
    try:
        status, found = _answer(style, value, seen)
        if status > _MOST:
            raise ValueError(f"{status} is no status: use one of three digits")
    except Exception as error:
        raise _unsendable(error) from error
    return unless_failed(status, found, seen)


def unless_failed(status: int, found: Object, seen: Seen) -> Object:
    """The answer `found` of that status; TaskError, ``status``, if that is an error to its task."""
    if status >= 400 and seen is not Seen.BY_CLIENT:
        said = f"the handler answered {status}: "
        text = redacted(found.text())
        caught = ("status", cause_of("status", said + text))
        raise TaskError("status", said + text[:_SHOWN], caught=caught)
    return found


def _unsendable(error: Exception) -> TaskError:
    message = f"the handler's answer cannot be sent: {type(error).__name__}: {error}"
    return TaskError("bad-output", message)


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


def _answer(style: str, value: Any, seen: Seen) -> tuple[int, Object]:
    kind = UNSAID if seen is Seen.BY_CLIENT else ""
    head: Head = None
    value = flask_value(style, value)
    # Flask makes the answer where the handler has left it something to do with that.
    if not (has_request_context() and request_ctx._after_request_functions):
        match value:
            case tuple((str(body), int(status), pairs)) if status == _OK:
                headers = Headers(pairs or ())
                _refuse_hop_by_hop(headers)
                value, kind = body, headers.pop("Content-Type", "") or kind
                if headers and seen is not Seen.BY_NOBODY:
                    head = ("200 OK", sent(headers))
        if isinstance(value, str):
            if not value.isascii():
                value.encode()  # a lone surrogate is no text
            text = value if type(value) is str else str.__str__(value)
            return 200, Object(text, kind, head=head)
        if isinstance(value, bytes | bytearray):
            return 200, Object(bytes(value), kind, head=head)
    response = _made(value)
    return response.status_code, whole(response, seen)


def _made(value: Any) -> BaseResponse:
    """What Flask makes of a value, which looks at the request for some."""
    if has_request_context():
        response = request_ctx.app.finalize_request(value)
    else:
        with _FLASK.request_context(_with_body(_environ(_NONE, {}), _NONE)):
            response = _FLASK.finalize_request(value)
    _refuse_hop_by_hop(response.headers)
    return response


def _refuse_hop_by_hop(headers: Headers) -> None:
    """Raise ValueError for a header that waitress, the server of the templates, refuses."""
    for name in headers.keys():  # noqa: SIM118 (Headers iterates over pairs)
        if name.lower() in hop_by_hop:
            raise ValueError(f"{name} is a header of the connection: only the server sets it")


def whole(response: BaseResponse, seen: Seen) -> Object:
    """An answer as an object."""
    complete(response)
    status, kind, headers = begin_of(response)
    return found(status, kind, headers, response.get_data(), seen)


def found(
    status: str, kind: str, headers: list[tuple[str, str]], body: bytes | bytearray, seen: Seen
) -> Object:
    """The answer of that status line, content type (empty if it has none), headers and body."""
    code = int(status[:3])
    if code in _WITHOUT_BODY:
        body = b""
    plain = code == _OK and not headers and kind
    if seen is not Seen.BY_CLIENT and kind == UNSAID:
        kind = ""
    head = None if plain or seen is Seen.BY_NOBODY else (status, headers)
    return Object(body, kind, head=head)


def may_be_streamed(style: str, value: Any) -> bool:
    """Whether Flask may make an answer of a value whose body comes piece by piece."""
    body = value[0] if isinstance(value, tuple) and value else value
    if style == "http-debian" and type(value) is dict:
        body = value.get("body")
    return isinstance(body, Iterator | BaseResponse) or callable(body)


def response_of(style: str, value: Any) -> BaseResponse:
    """What a handler of that style answers. Raises TaskError, ``bad-output``."""
    try:
        return _made(flask_value(style, value))
    except Exception as error:
        raise _unsendable(error) from error


def is_streamed(response: BaseResponse) -> bool:
    """Whether an answer is to be sent piece by piece: its length is not known."""
    has_body = response.status_code >= _OK and response.status_code not in _WITHOUT_BODY
    return has_body and response.is_streamed and "Content-Length" not in response.headers


def begin_of(response: BaseResponse) -> tuple[str, str, list[tuple[str, str]]]:
    """Status, content type and the other headers of an answer."""
    return response.status, response.headers.get("Content-Type", ""), sent(response.headers)


def sent(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers of an answer that its server does not set, but for the content type.

    Raises ValueError if a name is no token, which no server could send.
    """
    left_out = OF_SERVER | {"content-type"}
    headers = list(headers)
    for name, _ in headers:
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header: use letters, digits and -")
    return [(name, value) for name, value in headers if name.lower() not in left_out]
