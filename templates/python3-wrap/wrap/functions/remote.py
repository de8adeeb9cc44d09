"""A function deployed on its own, in any language: each run is an HTTP call through the gateway.

A status of 400 or above is an error, as for a handler.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from wrap.core.errors import TaskError
from wrap.functions import styles
from wrap.functions.function_runner import FunctionRunner, Place
from wrap.net.gateway_client import CONNECT_S, bounded, retries
from wrap.net.transport import GRACE_S, Answered
from wrap.values.value import FIELDS, Object, shown

if TYPE_CHECKING:
    from wrap.core.wrap_spec import Seen
    from wrap.functions.task_io import TaskIO

#: Headers of a request that concern only client and gateway. Without Accept-Encoding, answers come
#: unencoded and can be joined with others.
_UNSENT = styles.OF_SERVER | {"accept-encoding", "expect", "host"}
_HEADER = "HTTP_"
#: Headers of ours whose names WSGI would read as such.
_OURS = re.compile("X[_-]Chiron[_-]")
#: From the name of a header, in lower case, and two values to one.
Join = Callable[[str, str, str], str]


class Remote(FunctionRunner):
    """A function of the gateway at `Place.gateway_url`."""

    def __init__(self, name: str, style: str, place: Place) -> None:
        super().__init__(name, style, place)
        self._url = f"{place.gateway_url.rstrip('/')}/function/{name}"
        #: The timeout of a call, in seconds.
        self._limit_s = place.wrap.timeouts_s.get(name, place.wrap.timeout_s)
        self._longest = place.longest
        from wrap.net.interruptible import pool_manager

        self._connections = pool_manager(retries())

    def arguments(
        self, given: Object, task_io: TaskIO | None, trace: Mapping[str, str]
    ) -> tuple[Any, ...]:
        """Return method, target, headers and body; the request's own if it is the task's input."""
        method, target, headers = asked(given, trace)
        sent = {name: value for name, value in headers.items() if name.lower() not in _UNSENT}
        return method, target, sent, given.view()

    def call(
        self, method: str, target: str, headers: Mapping[str, str], body: memoryview
    ) -> Answered:
        """Call the function and return its answer of any status.

        Raises TaskError: ``timeout``; ``remote`` if the gateway is unreachable or the answer is
        too long.
        """
        import urllib3

        limit_s = self._limit_s
        try:
            answer = self._connections.request(
                method,
                self._url + target,
                body=cast(bytes, body),
                headers=headers,
                timeout=urllib3.Timeout(connect=min(CONNECT_S, limit_s), read=limit_s + GRACE_S),
                preload_content=False,
                decode_content=False,
                redirect=False,
            )
            content = bounded(f"function {self.name}", answer, self._longest)
        except urllib3.exceptions.ReadTimeoutError as error:
            message = f"function {self.name} did not answer in {limit_s:g} s"
            raise TaskError("timeout", message, status=504) from error
        except urllib3.exceptions.HTTPError as error:
            reason = getattr(error, "reason", error)  # urllib3 repeats host, port and URL
            why = getattr(reason.__cause__, "strerror", None) or reason
            message = f"function {self.name} cannot be reached at {self._url}: {why}"
            raise TaskError("remote", message) from error
        return Answered(answer.status, list(answer.headers.items()), content)

    def answer(self, value: Any, seen: Seen) -> Object:
        status, pairs, body = value
        kind = next((each for name, each in pairs if name.lower() == "content-type"), "")
        line = styles.status_line(status)
        headers = styles.sent(pairs) + styles.length_of(pairs, status, body)
        found = styles.found(line, kind, headers, body, seen)
        return styles.unless_failed(status, found, seen)

    def close(self) -> None:
        self._connections.clear()


def with_comma(name: str, first: str, second: str) -> str:
    """Join two values of one header."""
    return f"{first}, {second}"


def asked(
    given: Object, trace: Mapping[str, str], join: Join = with_comma
) -> tuple[str, str, dict[str, str]]:
    """Return method, target and headers for the input `given`; the client's own for a request.

    `join` takes the name of a repeated header, in lower case, and two values.
    """
    method, target, headers = "POST", "", dict(trace)
    if isinstance(given.head, dict):
        environ = shown(given.head)
        method, target = environ["REQUEST_METHOD"], environ["REQUEST_URI"]
        headers = headers_of(environ, join) | headers
    if given.content_type:
        headers["Content-Type"] = given.content_type
    if coding := styles.coding_of(given):
        headers["Content-Encoding"] = coding
    return method, target, headers


def headers_of(environ: Mapping[str, str], join: Join = with_comma) -> dict[str, str]:
    """Return the headers of a request but its type and length, with names that WSGI leaves out."""
    found = {
        name.removeprefix(_HEADER).replace("_", "-").title(): value
        for name, value in environ.items()
        if name.startswith(_HEADER)
    }
    exact = dict[str, str]()
    for field in filter(None, environ.get(FIELDS, "").split("\r\n")):
        name, _, value = field.partition(":")
        key, value = name.title(), value.strip(" \t")
        if "_" in name or key in found:
            exact[key] = join(name.lower(), exact[key], value) if key in exact else value
    return found | {key: value for key, value in exact.items() if not _OURS.match(key)}
