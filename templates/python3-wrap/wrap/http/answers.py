"""Makes answers: for results, for errors, and from another entry's answers."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Sequence
from typing import Any

from wrap.cluster.participant import error_fields
from wrap.config.redaction import redacted
from wrap.core.errors import SERVER_FAULT, TaskError
from wrap.dispatch.runtime import Runtime
from wrap.functions.remote import headers_of
from wrap.functions.styles import LENGTH, OF_SERVER
from wrap.http.request_fields import Environ, asked_mark, trace_of
from wrap.http.response import Response
from wrap.net.gateway_client import ANSWERED_HEADER, CALL_HEADER, TIMEOUT_HEADER
from wrap.net.messages import Ident, Result
from wrap.net.transport import Answered, Forwarded
from wrap.observe import log
from wrap.observe.timeline import timeline
from wrap.values.value import JSON, Object

#: Seconds after which to retry a request for which there was no memory.
_RETRY_S = "1"
#: The headers to remove from a request that another wrap answers in this one's place.
_NOT_PASSED_ON = (
    *("Connection", "Content-Length", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding"),
    *("Upgrade", "Expect", CALL_HEADER, TIMEOUT_HEADER),
)


def not_begun(runtime: Runtime, environ: Environ, error: TaskError, arrived: float) -> Response:
    mark = asked_mark(environ)
    response = failed(runtime, error, arrived, mark)
    if runtime.wrap.entry is not None and not runtime.route.target:  # else the target exports it
        ident = Ident(mark=mark, trace=trace_of(environ, runtime.spans is not None))
        export(runtime, ident, [], arrived, time.monotonic(), response, error)
    return response


def failed(
    runtime: Runtime, error: TaskError, arrived: float, mark: str, seen: Sequence[Result] = ()
) -> Response:
    """Return the answer to an error; an entry logs it unless the client caused it.

    The answer has the timeline of the results `seen`, if there are any.
    """
    runtime.metrics.failures.add(error.code)
    said = error_fields(runtime, error, arrived)
    if seen:
        said["timeline"] = timeline(runtime.wrap, seen, arrived, time.monotonic())
    if runtime.wrap.entry is not None and error.status >= SERVER_FAULT:
        fields = error.as_dict(redacted)
        log.failed(fields["function"] or fields["wrap"], mark, fields["code"], fields["message"])
    later = [("Retry-After", _RETRY_S)] if error.code == "full" else []
    return Response(json.dumps(said), error.status, later, JSON)


def lack(error: Exception) -> TaskError:
    traceback.print_exception(error)
    return TaskError("wrap-failed", f"{type(error).__name__}: {error}")


def export(
    runtime: Runtime,
    ident: Ident,
    results: list[Result],
    arrived: float,
    answered: float,
    response: Response,
    failure: TaskError | None,
) -> None:
    if runtime.spans is not None:
        status = response.status_code
        runtime.spans.request(ident, results, arrived, answered, status, failure)


def traced(runtime: Runtime, output: Object, results: list[Result], arrived: float) -> Response:
    told = {
        "output": output.in_json(),
        "content_type": output.content_type,
        "timeline": timeline(runtime.wrap, results, arrived, time.monotonic()),
    }
    return Response(json.dumps(told), content_type=JSON)


def asked_by(environ: dict[str, Any], body: bytes | bytearray) -> Forwarded:
    """Return the request of a WSGI environment, with that body, for another entry to answer."""
    headers = {name: v for name, v in headers_of(environ).items() if name not in _NOT_PASSED_ON}
    if kind := environ.get("CONTENT_TYPE"):
        headers["Content-Type"] = kind
    place = environ["REQUEST_URI"].removeprefix("/")
    return Forwarded(environ["REQUEST_METHOD"], f"/{place}" if place else "", headers, body)


def passed_back(answered: Answered) -> Response:
    status, pairs, body = answered
    left_out = (OF_SERVER - {LENGTH}) | {ANSWERED_HEADER.lower()}
    sent = [each for each in pairs if each[0].lower() not in left_out]
    return Response(body, status, sent, content_type="")
