"""Builds a handler's arguments as its OpenFaaS template does, and reads its answer.

A Flask request context costs as much as the rest of a call, so only functions that import flask get
one. `wrap.functions.by_flask` has the code that needs Flask and is imported on demand.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from wrap.config.redaction import redacted
from wrap.core.errors import TaskError
from wrap.core.statemachine.errors import cause_of
from wrap.core.wrap_spec import Seen
from wrap.functions.answers import flask_value
from wrap.values.value import FIELDS, JSON, Object, shown

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

_HOSTNAME = os.environ.get("HOSTNAME") or socket.gethostname()
_SHOWN = 200
#: The lowest status of a final answer.
_OK = 200
_MOST = 999
#: Names of headers (RFC 9110, 5.6.2).
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Characters that the value of a header cannot contain.
_BREAK = re.compile(r"[\r\n]")
#: Characters that no head of an answer can have, as it is in Latin-1.
_BEYOND = re.compile(r"[^\x00-\xff]")
#: Headers with addresses, and addresses that need no quoting.
_ADDRESSES = ("location", "content-location")
_QUOTED = re.compile(r"[\w./:?#@!$&'()*+,;=%~-]*", re.ASCII)
_PHRASES = {each.value: each.phrase.upper() for each in HTTPStatus}
#: Statuses whose answers have no body.
_WITHOUT_BODY = (204, 304)
#: Flask's default content type.
UNSAID = "text/html; charset=utf-8"
#: The WSGI environment of a task whose input comes from other tasks.
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
#: The header of an answer, besides its content type, that the next task gets, in lower case.
_CODING = "content-encoding"
#: Headers of one connection, in lower case (RFC 2616, 13.5.1).
_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization"}
    | {"te", "trailers", "transfer-encoding", "upgrade"}
)
#: The header with the length of an answer, in lower case.
LENGTH = "content-length"
#: Headers of an answer that the server sets, in lower case.
OF_SERVER = _HOP_BY_HOP | {LENGTH}


class _Given:
    """Stores a task's input and its trace headers outside ``vars()``."""

    __slots__ = ("__dict__", "_given", "_trace")

    def __init__(self, given: Object, trace: Mapping[str, str]) -> None:
        self._given, self._trace = given, trace


class Event(_Given):
    """The event of ``handle(event, context)``.

    Most handlers read `body` only. The first access to any other field, or to ``vars()``, creates
    them all, which takes longer.
    """

    __slots__ = ()

    def __init__(self, given: Object, trace: Mapping[str, str]) -> None:
        super().__init__(given, trace)
        self.body = given.data()

    def __getattr__(self, name: str) -> Any:
        """Create the fields at the first access to one."""
        return self._fields()[name] if name in _FIELDS else object.__getattribute__(self, name)

    def __copy__(self) -> Event:
        made = Event(self._given, self._trace)
        _dict_of(made).update(_dict_of(self))
        return made

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All fields, as ``vars(event)`` shows them."""
        return self._fields()

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = _dict_of(self)
        if "method" not in fields:
            from werkzeug.wrappers import Request

            environ = environ_of(self._given, self._trace)
            request = Request(environ, populate_request=False)  # populating makes a reference cycle
            for name, value in zip(
                _FIELDS, map(partial(getattr, request), _OF_REQUEST), strict=True
            ):
                fields.setdefault(name, value)  # keep a value that the handler set
        return fields


_dict_of = _Given.__dict__["__dict__"].__get__
#: The fields of an event beside its body, and the attributes of a request they copy.
_FIELDS = ("headers", "method", "query", "path")
_OF_REQUEST = ("headers", "method", "args", "path")


@dataclass
class Context:
    """The context of ``handle(event, context)``."""

    hostname: str = _HOSTNAME


def is_raw() -> bool:
    """Whether RAW_BODY makes handlers of the style ``flask`` receive bytes."""
    return "RAW_BODY" in os.environ and os.environ["RAW_BODY"].lower() in ("1", "true")


def arguments(
    style: str, given: Object, trace: Mapping[str, str], *, raw: bool = False
) -> tuple[Any, ...]:
    """Return the arguments of a handler of `style` for the input `given`."""
    if style != "flask":
        return Event(given, trace), Context()
    return (given.data() if raw else given.text(),)


def environ_of(given: Object, trace: Mapping[str, str]) -> dict[str, Any]:
    """Return the WSGI environment of a task: the request's own if its input is the request."""
    environ: dict[str, Any]
    if isinstance(given.head, dict):
        environ = {**shown(given.head)}
        environ.pop(FIELDS, None)
    else:
        environ = dict(_INNER, CONTENT_LENGTH=str(len(given.view())))
        if given.content_type:
            environ["CONTENT_TYPE"] = given.content_type
        if coding := coding_of(given):
            environ["HTTP_CONTENT_ENCODING"] = coding
    for name, value in trace.items():
        environ["HTTP_" + name.upper()] = value
    return environ


def coding_of(given: Object) -> str:
    """Return the ``Content-Encoding`` of another task's answer, or "" if it has none."""
    pairs = given.head[1] if isinstance(given.head, tuple) else []
    return next((value for name, value in pairs if name.lower() == _CODING), "")


def output(style: str, value: Any, seen: Seen = Seen.BY_NOBODY) -> Object:
    """Return the body and content type of a handler's answer.

    If the client may see them, status and headers are the object's head.

    Raises TaskError: ``bad-output``: the template could not send the answer; ``status``: the
    handler answered 400 or above and the client does not receive this answer.
    """
    try:
        status, found = _answer(style, value, seen)
        if status > _MOST:
            raise ValueError(f"{status} is no status: use one of three digits")
    except Exception as error:
        raise _unsendable(error) from error
    return unless_failed(status, found, seen)


def unless_failed(status: int, found: Object, seen: Seen) -> Object:
    """Return the answer `found`. Raises TaskError, ``status``, if `status` fails the task."""
    if status >= 400 and seen is not Seen.BY_CLIENT:
        said = f"the handler answered {status}: "
        text = redacted(found.text())
        caught = ("status", cause_of("status", said + text))
        raise TaskError("status", said + text[:_SHOWN], caught=caught)
    return found


def _unsendable(error: Exception) -> TaskError:
    message = f"the handler's answer cannot be sent: {type(error).__name__}: {error}"
    return TaskError("bad-output", message)


def loaded(module: str, name: str) -> Any:
    """Return a class for ``isinstance`` and ``except``; an empty tuple if it is not imported."""
    return getattr(sys.modules.get(module), name, ())


def complete(value: Any) -> Any:
    """Return `value` with all lazily computed pieces of its body."""
    if isinstance(value, tuple) and value:
        return (complete(value[0]), *value[1:])
    if isinstance(value, loaded("werkzeug.wrappers", "Response")):
        value.direct_passthrough = False
        with closing(value):
            value.make_sequence()
            value.response = list(pieces_of(value.response))
    elif isinstance(value, Iterator):
        return b"".join(pieces_of(value))
    return value


def pieces_of(body: Iterable[Any]) -> Iterator[Any]:
    """Yield the encoded pieces of a body without empty ones, such as None, after the first.

    So does waitress, the templates' server.
    """
    encoded = (each.encode() if isinstance(each, str) else each for each in body)
    return chain(islice(encoded, 1), filter(None, encoded))


def _answer(style: str, value: Any, seen: Seen) -> tuple[int, Object]:
    value = flask_value(style, value)
    context = loaded("flask.globals", "request_ctx")
    # Flask builds the answer if it has to call functions after the request, or to save a session.
    after = context and (context._after_request_functions or context.session.accessed)
    if not after:
        body, status, pairs = _parts(value)
        kind = UNSAID
        if not (context or pairs) and type(body) in (dict, list):
            with suppress(TypeError):  # Flask knows more types than `json`
                body = json.dumps(body, sort_keys=True, separators=(",", ":")) + "\n"
                kind = JSON
        if isinstance(body, str | bytes | bytearray) and pairs is not None:
            return status, _plain(status, kind, pairs, body, seen)
    response = _made(value)
    return response.status_code, whole(response, seen)


def _parts(value: Any) -> tuple[Any, int, list[tuple[str, str]] | None]:
    """Return body, status and headers of an answer; headers are None if only Flask reads them."""
    match value:
        case tuple((body, int(status), pairs)):
            pass
        case tuple((body, int(status))):
            pairs = ()
        case _:
            return value, _OK, []
    if type(pairs) is dict:
        pairs = list(pairs.items())
    if pairs and type(pairs) not in (list, tuple):
        return body, int(status), None
    given = list(pairs or ())
    plain = all(type(each) is str and not _BREAK.search(each) for pair in given for each in pair)
    return body, int(status), given if plain else None


def _plain(
    status: int, kind: str, pairs: list[tuple[str, str]], body: str | bytes | bytearray, seen: Seen
) -> Object:
    """Return the answer of these parts; `kind` is the content type if no header has it."""
    refuse_hop_by_hop(name for name, _ in pairs)
    kind = next((value for name, value in pairs if name.lower() == "content-type"), kind)
    if not isinstance(body, str):
        body = bytes(body)
    elif not body.isascii():
        body.encode()  # raises for a lone surrogate
    if isinstance(body, str) and type(body) is not str:
        body = str.__str__(body)
    return found(status_line(status), kind, sent(pairs), body, seen)


def _made(value: Any) -> Response:
    from wrap.functions.by_flask import made

    return made(value)


def refuse_hop_by_hop(names: Iterable[str]) -> None:
    """Raise ValueError for a header that waitress, the templates' server, refuses."""
    for name in names:
        if name.lower() in _HOP_BY_HOP:
            raise ValueError(f"{name} is a header of the connection: only the server sets it")


def status_line(status: int) -> str:
    """Return a status line such as ``404 NOT FOUND``."""
    return f"{status} {_PHRASES.get(status, 'UNKNOWN')}"


def whole(response: Response, seen: Seen) -> Object:
    complete(response)
    status, kind, headers = begin_of(response)
    body = response.get_data()
    headers += length_of(response.headers, response.status_code, body)
    return found(status, kind, headers, body, seen)


def length_of(
    headers: Iterable[tuple[str, str]], status: int, body: bytes
) -> list[tuple[str, str]]:
    """Return the header with the length that an empty answer gives: HEAD gets it."""
    if len(body) or not may_have_body(status):
        return []
    given = (each for each in headers if each[0].lower() == LENGTH)
    return [each for each in given if each[1].isdecimal() and int(each[1])][:1]


def found(
    status: str,
    kind: str,
    headers: list[tuple[str, str]],
    body: str | bytes | bytearray,
    seen: Seen,
) -> Object:
    """Return the object of an answer; `status` is a status line, `kind` the content type or ""."""
    code = int(status[:3])
    if code in _WITHOUT_BODY:
        body = b""
    if seen is not Seen.BY_CLIENT and kind == UNSAID:
        kind = ""
    if seen is Seen.BY_NOBODY:
        headers = [each for each in headers if each[0].lower() == _CODING]
    plain = (code == _OK and kind) or seen is Seen.BY_NOBODY
    return Object(body, kind, head=(status, headers) if headers or not plain else None)


def may_be_streamed(style: str, value: Any) -> bool:
    """Whether the answer may have a body that is computed piece by piece."""
    body = value[0] if isinstance(value, tuple) and value else value
    if style == "http-debian" and type(value) is dict:
        body = value.get("body")
    return isinstance(body, Iterator) or callable(body)


def response_of(style: str, value: Any) -> Response:
    """Return Flask's response for a handler's value. Raises TaskError, ``bad-output``."""
    try:
        response = _made(flask_value(style, value))
        begin_of(response)  # which refuses what no server sends
    except Exception as error:
        raise _unsendable(error) from error
    return response


def is_streamed(response: Response) -> bool:
    """Whether to send a response piece by piece, as its length is unknown."""
    has_body = may_have_body(response.status_code)
    return has_body and not response.is_sequence and "Content-Length" not in response.headers


def may_have_body(status: int) -> bool:
    return status >= _OK and status not in _WITHOUT_BODY


def begin_of(response: Response) -> tuple[str, str, list[tuple[str, str]]]:
    """Return the status line, the content type and the other headers of a response."""
    _check_latin("the status", response.status)
    if response.status.startswith("0 "):  # as werkzeug writes a text without a number
        raise ValueError(f"the status {response.status[2:]!r} has no number: answer 404, say")
    return response.status, response.headers.get("Content-Type", ""), sent(response.headers)


def sent(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the headers that the server does not set, without the first content type.

    Raises ValueError if a name is no token, or a value has a line break or characters beyond
    Latin-1: no server sends these.
    """
    headers = list(headers)
    kind = next((each for each in headers if each[0].lower() == "content-type"), ("", ""))
    if kind[1]:  # an empty content type is sent as it is
        headers.remove(kind)
    for name, value in headers:
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header: use letters, digits and -")
        if _BREAK.search(value):
            raise ValueError(f"the header {name} has a line break: remove it")
    found = [
        (name, _value(*each)) for each in headers if (name := each[0]).lower() not in OF_SERVER
    ]
    for name, value in (kind, *found):
        _check_latin(f"the header {name}", value)
    return found


def _check_latin(what: str, text: str) -> None:
    if _BEYOND.search(text):
        raise ValueError(f"{what} has characters beyond Latin-1: encode them")


def _value(name: str, value: str) -> str:
    """Quote an address as Flask does; other values stay."""
    if name.lower() not in _ADDRESSES or _QUOTED.fullmatch(value):
        return value
    from werkzeug.urls import iri_to_uri

    return iri_to_uri(value)
