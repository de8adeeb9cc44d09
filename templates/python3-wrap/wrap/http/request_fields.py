"""Reads the fields of a request: caller, timeout, body."""

from __future__ import annotations

import hmac
import math
import re
from typing import Any

from wrap.core.errors import TaskError
from wrap.http.server.body import LargeBody
from wrap.net import framing
from wrap.net.gateway_client import (
    BUILD_HEADER,
    CALL_HEADER,
    HANDED_HEADER,
    TIMEOUT_HEADER,
    TRACE_HEADER,
)
from wrap.net.messages import UNWATCHED, Request, Watch
from wrap.observe import trace_context
from wrap.observe.trace_context import TraceContext

#: What the trace header may request after the key: a probe beside each handler, whose ticks are in
#: the timeline; the CPU-speed probe before and after each handler; state changes; memory.
_PROBE, _CPU_SPEED, _STATE_CHANGES, _MEMORY = "probe", "cpu-speed", "state", "memory"
_ID_HEADER = "X-Call-Id"
#: The headers of W3C Trace Context.
_PARENT_HEADER, _STATE_HEADER = "Traceparent", "Tracestate"
#: The keys of the headers in a WSGI environment; a look-up takes a fifth of Flask's time.
CALL, TIMEOUT, TRACE, BUILD, HANDED, CALL_ID, _PARENT, _STATE = (
    "HTTP_" + name.upper().replace("-", "_")
    for name in (
        *(CALL_HEADER, TIMEOUT_HEADER, TRACE_HEADER, BUILD_HEADER, HANDED_HEADER),
        *(_ID_HEADER, _PARENT_HEADER, _STATE_HEADER),
    )
)
#: The header of events that are handled by themselves, and answered afterwards.
ALONE = "HTTP_X_CHIRON_ALONE"
#: Characters of an id in log lines: enough to distinguish the random ids of one log.
_SHOWN_OF_ID = 8
_MARK = re.compile(r"[\w-]*[A-Za-z0-9][\w-]*", re.ASCII)


#: The WSGI environment of a request. Flask's `request` has the same and more, but takes half of the
#: time that a request takes here.
Environ = dict[str, Any]


def watch_of(environ: Environ, trace_key: str) -> Watch:
    """Return what to report to the caller; nothing to a caller without the key."""
    key, _, more = environ.get(TRACE, "").partition(" ")
    if not key or not hmac.compare_digest(key.encode(), trace_key.encode()):
        return UNWATCHED
    return Watch(True, *(more == each for each in (_PROBE, _CPU_SPEED, _STATE_CHANGES, _MEMORY)))


def trace_of(environ: Environ, is_exported: bool) -> TraceContext | None:
    """Return the trace of the request, or a new trace if it is exported."""
    parent = environ.get(_PARENT)
    given = trace_context.given(parent, environ.get(_STATE, "")) if parent else None
    return trace_context.exported(given) if is_exported else given


def asked_mark(environ: Environ) -> str:
    return mark_of(environ.get(CALL_ID, ""))


def mark_of(ident: str) -> str:
    """Return the first characters of a call's id, for the log; empty if they could forge lines."""
    shown = ident[:_SHOWN_OF_ID]
    return shown if _MARK.fullmatch(shown) else ""


def body_of(environ: Environ) -> bytes | bytearray:
    """Return the request's body; a large body is not copied."""
    stream = environ["wsgi.input"]
    if isinstance(stream, LargeBody):
        return stream.whole()
    body: bytes = stream.read()
    return body


def request_of(body: bytes | bytearray) -> Request:
    try:
        asked = Request.read(iter(framing.split(body)))
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        message = f"not the frames of a wrap's request: {error}"
        raise TaskError("bad-frames", message, status=400) from error
    if asked is None:
        message = "the frames of a wrap's request are missing"
        raise TaskError("bad-frames", message, status=400)
    return asked


def seconds_of(text: str | None) -> float:
    try:
        seconds = float(text) if text else math.inf
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        message = f"{TIMEOUT_HEADER} is {text!r}: send seconds, above 0"
        raise TaskError("bad-timeout", message, status=400)
    return seconds
