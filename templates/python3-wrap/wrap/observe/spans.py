"""Exports executions as OpenTelemetry spans: OTLP over HTTP, in JSON.

One thread sends them in batches. Nobody waits for it, and excess spans are dropped. The spans are
those of `wrap.observe.timeline`, with the request as their root.

References
----------
https://opentelemetry.io/docs/specs/otlp/, and .../docs/specs/otel/protocol/exporter/ for the
variables.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import re
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from wrap.config.redaction import redacted
from wrap.core.errors import SERVER_FAULT, TaskError
from wrap.core.wrap_spec import Wrap
from wrap.net.messages import Ident, Result
from wrap.observe.metrics import Counter
from wrap.observe.timeline import timeline
from wrap.observe.trace_context import TraceContext

#: Spans of one message; fewer are sent after a second.
_BATCH, _DELAY_S = 512, 1.0
#: The most spans that wait for it: about 1 KiB each.
_MOST = 4096
_TIMEOUT_MS = "10000"
#: Seconds to wait before each try to send; the statuses after which to try again.
_TRIES_S = (0.0, 0.0, 1.0, 2.0)
_BUSY = (429, 502, 503, 504)
#: The most bytes of an answer.
_MOST_ANSWERED = 1 << 16
#: RFC 9110, 5.1 and 5.5.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_PROTOCOLS = ("", "grpc", "http/protobuf", "http/json")
_COMPRESSIONS = ("", "none", "gzip")
_INTERNAL, _SERVER = 1, 2
_ERROR = 2
#: The error code of a task that was running when the execution failed.
_CANCELLED = "cancelled"
#: The variables of traces alone take precedence over those of all signals.
_OF_TRACES, _OF_ALL = "OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"
_SERVICE = "service.name"
#: The variable that takes precedence over functions' names for the service; empty: wraps' names.
_OWN_SERVICE = "WRAP_SERVICE_NAME"


class Ended(NamedTuple):
    """An execution, or a wrap's part of one, that has ended."""

    trace: TraceContext
    number: int
    mark: str
    #: When its request came, as time of day; the times of `spans` are relative to it.
    arrived_ns: int
    spans: Sequence[Mapping[str, Any]]
    #: For the request's own span: time to the answer, HTTP status, and error. Without a status
    #: there is no such span.
    latency_ms: float = 0.0
    status: int | None = None
    failure: Mapping[str, Any] | None = None


class Collector:
    """The service that receives spans: one connection for each message, no redirects.

    Args:
        environment: has the other variables of OpenTelemetry.

    Raises ValueError if the value of a variable is invalid; the message names the variable.
    """

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        self.url = url
        self._parts = _address(url, environment)
        self._timeout_s = _timeout_s(environment)
        self._headers = _headers(environment) | {"Content-Type": "application/json"}
        self._compresses = _chosen(environment, "COMPRESSION", _COMPRESSIONS) == "gzip"
        if self._compresses:
            self._headers["Content-Encoding"] = "gzip"

    def send(self, body: bytes) -> tuple[int, bytes]:
        """Return the status and the body of the answer; a long body is truncated.

        All of it takes no longer than the timeout. Raises OSError, or HTTPException, after the
        timeout or if there is no answer.
        """
        if self._compresses:
            body = gzip.compress(body)
        parts = self._parts
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(parts.hostname or "", parts.port, timeout=self._timeout_s)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with contextlib.closing(connection):
            connection.connect()
            # The connection's own timeout holds for each byte, and some servers send single bytes.
            timer = threading.Timer(self._timeout_s, _cut, [connection.sock])
            timer.start()
            try:
                connection.request("POST", target, body, self._headers)
                answer = connection.getresponse()
                return answer.status, answer.read(_MOST_ANSWERED)
            finally:
                timer.cancel()


def _cut(channel: socket.socket) -> None:
    with contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)


class Exporter:
    """Exports the executions that this wrap coordinates.

    Args:
        environment: has the other variables of OpenTelemetry.
    """

    def __init__(self, wrap: Wrap, collector: Collector, environment: Mapping[str, str]) -> None:
        #: The number of spans that were not delivered, for any reason.
        self.dropped = Counter(
            "chiron_spans_dropped_total", "Spans that OpenTelemetry's collector has not got."
        )
        self._wrap = wrap
        self._collector = collector
        self._attributes = dict(_pairs(environment.get("OTEL_RESOURCE_ATTRIBUTES", "")))
        name = environment.get(_OWN_SERVICE, environment.get("OTEL_SERVICE_NAME"))
        if name:
            self._attributes[_SERVICE] = name
        elif _OWN_SERVICE in environment:
            self._attributes.pop(_SERVICE, None)
        self._changed = threading.Condition()
        self._ended = deque[Ended]()
        #: The number of spans in `_ended` and in the batch that is being sent.
        self._spans = 0
        self._closing = self._failing = False
        self._thread = threading.Thread(target=self._send_all, name="spans", daemon=True)
        self._thread.start()

    def request(
        self,
        ident: Ident,
        results: Sequence[Result],
        arrived: float,
        answered: float,
        status: int | None,
        error: TaskError | None,
    ) -> None:
        """Export an answered request, with that HTTP status; times are of the monotonic clock.

        The `results` are all known results, even if the request failed; without a status, a part.
        """
        if ident.trace is None or not ident.trace.is_exported:
            return
        try:
            told = timeline(self._wrap, results, arrived, answered, ident.trace)
        except Exception:  # an error in the export must not stop the execution
            traceback.print_exc()
            self.dropped.add(by=len(results))
            return
        failure = None if error is None else error.as_dict(redacted)
        arrived_ns = time.time_ns() - round((time.monotonic() - arrived) * 1e9)
        ended = Ended(
            *(ident.trace, ident.number, ident.mark, arrived_ns, told["spans"]),
            *(told["latency_ms"], status, failure),
        )
        count = _count(ended)
        with self._changed:
            if self._spans and self._spans + count > _MOST:
                self.dropped.add(by=count)
                return
            self._ended.append(ended)
            self._spans += count
            if len(self._ended) == 1 or self._spans >= _BATCH:
                self._changed.notify()

    def part(self, ident: Ident, results: Sequence[Result]) -> None:
        """Export a part of an execution that is not in the answer to the request."""
        now = time.monotonic()
        self.request(ident, results, now, now, None, None)

    def close(self, within_s: float) -> None:
        """Send the waiting spans, as far as that is possible in time."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(within_s)

    def _send_all(self) -> None:
        while ended := self._next():
            try:
                spans = [span for each in ended for span in spans_of(each, self._wrap)]
                for first in range(0, len(spans), _BATCH):
                    self._send(spans[first : first + _BATCH])
            except Exception:  # these spans are lost; later spans are sent
                traceback.print_exc()
                self.dropped.add(by=sum(map(_count, ended)))
            with self._changed:
                self._spans -= sum(map(_count, ended))

    def _next(self) -> list[Ended]:
        """Wait for ended executions and return those of a moment; empty after `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._closing)
            self._changed.wait_for(lambda: self._spans >= _BATCH or self._closing, _DELAY_S)
            ended = list(self._ended)
            self._ended.clear()
            return ended

    def _send(self, spans: Sequence[tuple[str, dict[str, Any]]]) -> None:
        body = json.dumps(message_of(spans, self._attributes)).encode()
        for pause_s in _TRIES_S:
            time.sleep(pause_s)
            try:
                status, answer = self._collector.send(body)
            except (http.client.HTTPException, OSError) as error:
                why = f"{self._collector.url} cannot be reached: {error or type(error).__name__}"
                continue
            why = f"{self._collector.url} answered {status}"
            if status not in _BUSY:
                break
        else:
            self._drop(len(spans), why)
            return
        if not 200 <= status < 300:
            self._drop(len(spans), why)
        elif rejected := _rejected(answer):
            self._drop(rejected, f"{self._collector.url} refuses {rejected} of {len(spans)}")
        else:
            self._failing = False

    def _drop(self, spans: int, why: str) -> None:
        self.dropped.add(by=spans)
        if not self._failing:
            print(f"spans are dropped: {why}")
        self._failing = True


def exporter_of(wrap: Wrap, url: str, environment: Mapping[str, str]) -> Exporter | None:
    """Return the exporter to `url`; None, with a line in the log, if the protocol is grpc.

    Raises ValueError, which names the variable, if the value of one is invalid.
    """
    collector = Collector(url, environment)
    protocol = _chosen(environment, "PROTOCOL", _PROTOCOLS)
    if protocol == "grpc":
        print(f"no spans are sent to {url}: {_OF_ALL}PROTOCOL is grpc, set it to http/json")
        return None
    if protocol not in ("", "http/json"):
        print(f"spans are sent to {url} as http/json, not as {protocol}")
    return Exporter(wrap, collector, environment)


def spans_of(ended: Ended, wrap: Wrap) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the spans of an execution in OTLP's JSON, each with its wrap."""
    trace, root = ended.trace, ended.trace.span_id(ended.number, "request")
    if ended.status is not None:
        yield wrap.name, _request_span(ended, root, wrap)
    tasks = {each["task"]: each["span_id"] for each in ended.spans if each["kind"] == "task"}
    for each in ended.spans:
        kind, task = each["kind"], each.get("task", "")
        is_task = kind == "task"
        span = {
            "traceId": trace.trace_id,
            "spanId": each["span_id"] if is_task else os.urandom(8).hex(),
            "parentSpanId": tasks.get(task, root) if kind == "emit" else root,
            "name": (task.rpartition("#")[0] or task) if is_task else kind,
            "kind": _INTERNAL,
            **_times(ended, each["start_ms"], each["end_ms"]),
            "attributes": _attributes(
                {
                    "chiron.task": task or None,
                    "chiron.function": each.get("function"),
                    "chiron.process": each.get("process"),
                    "chiron.output": each.get("output"),
                }
            ),
        }
        if error := each.get("error"):
            code, _, message = error.partition(": ")
            span["attributes"] += _attributes({"error.type": code})
            if code != _CANCELLED:  # another task failed
                span["status"] = {"code": _ERROR, "message": message}
        yield each["wrap"], span


def message_of(
    spans: Iterable[tuple[str, dict[str, Any]]], attributes: Mapping[str, str]
) -> dict[str, Any]:
    """Return an ExportTraceServiceRequest.

    Each wrap is a service with the wrap's name, unless `attributes` set another.
    """
    by_wrap: dict[str, list[dict[str, Any]]] = {}
    for wrap, span in spans:
        by_wrap.setdefault(wrap, []).append(span)
    return {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": _attributes({_SERVICE: wrap, **attributes, "faas.name": wrap})
                },
                "scopeSpans": [{"scope": {"name": "chiron.wrap"}, "spans": its}],
            }
            for wrap, its in by_wrap.items()
        ]
    }


def _request_span(ended: Ended, span_id: str, wrap: Wrap) -> dict[str, Any]:
    span: dict[str, Any] = {
        "traceId": ended.trace.trace_id,
        "spanId": span_id,
        "name": wrap.workflow,
        "kind": _SERVER,
        **_times(ended, 0.0, ended.latency_ms),
    }
    if ended.trace.parent_id:
        span |= {"parentSpanId": ended.trace.parent_id, "traceState": ended.trace.state}
    failure = ended.failure or {}
    span["attributes"] = _attributes(
        {
            "faas.trigger": "http",
            "http.request.method": "POST",
            "http.response.status_code": ended.status,
            "error.type": failure.get("code"),
            "chiron.workflow": wrap.workflow,
            "chiron.execution": ended.mark or None,
        }
    )
    if failure and (ended.status or 0) >= SERVER_FAULT:  # else the client caused it
        message = f"{failure['code']}: {failure['message']}"
        span["status"] = {"code": _ERROR, "message": message}
    return span


def _times(ended: Ended, start_ms: float, end_ms: float) -> dict[str, str]:
    return {
        "startTimeUnixNano": str(ended.arrived_ns + round(start_ms * 1e6)),
        "endTimeUnixNano": str(ended.arrived_ns + round(end_ms * 1e6)),
    }


def _attributes(values: Mapping[str, str | int | None]) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
        }
        for key, value in values.items()
        if value is not None
    ]


def _count(ended: Ended) -> int:
    return len(ended.spans) + (ended.status is not None)


def _named(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return the variable that sets `name` for traces, and its value; empty if none is set."""
    variable = f"{_OF_TRACES}{name}"
    if not environment.get(variable):
        variable = f"{_OF_ALL}{name}"
    return variable, environment.get(variable, "")


def _chosen(environment: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    variable, value = _named(environment, name)
    if value not in choices:
        raise ValueError(f"{variable} is {value!r}: set it to one of {', '.join(choices[1:])}")
    return value


def _address(url: str, environment: Mapping[str, str]) -> SplitResult:
    variable, value = _named(environment, "ENDPOINT")
    refused = f"{variable} is {value!r}: set it to a URL, such as http://collector:4318"
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(refused)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(refused) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError(refused)
    if parts.username is not None:
        raise ValueError(f"{variable} names a user: send credentials by {_OF_ALL}HEADERS")
    return parts


def _timeout_s(environment: Mapping[str, str]) -> float:
    variable, value = _named(environment, "TIMEOUT")
    milliseconds = value or _TIMEOUT_MS
    # A thread can wait for at most 292 years.
    if not re.fullmatch("[0-9]{1,9}", milliseconds) or not int(milliseconds):
        raise ValueError(f"{variable} is {value!r}: set it to milliseconds, such as {_TIMEOUT_MS}")
    return int(milliseconds) / 1000


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    variable, value = _named(environment, "HEADERS")
    pairs = _pairs(value)
    for name, text in pairs:
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(text):
            # A value may be a credential.
            raise ValueError(f"{variable} has no header in {name!r}: write name=value,name=value")
    return dict(pairs)


def _pairs(text: str) -> list[tuple[str, str]]:
    """Parse ``a=1,b=2``, and decode percent-encoding in its values."""
    pairs = (each.partition("=") for each in text.split(",") if each.strip())
    return [(name.strip(), unquote(value.strip())) for name, _, value in pairs]


def _rejected(answer: bytes) -> int:
    """Return how many spans of an accepted message were rejected."""
    try:
        return int(json.loads(answer or "{}")["partialSuccess"]["rejectedSpans"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return 0
