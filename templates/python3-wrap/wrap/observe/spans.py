"""Sends what executions did as OpenTelemetry spans: OTLP over HTTP, in JSON.

One thread sends them in batches; nobody waits for it, and what is too much for it is dropped. They
are what `wrap.observe.timeline` tells, with the request as their root.

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
from wrap.config.wrap_spec import Wrap
from wrap.core.errors import SERVER_FAULT, TaskError
from wrap.net.messages import Ident, Result
from wrap.observe.metrics import Counter
from wrap.observe.timeline import timeline
from wrap.observe.trace_context import TraceContext

#: Spans of one message; so many are sent at once, else what has come within a second.
_BATCH, _DELAY_S = 512, 1.0
#: Spans that wait for that: about 1 KiB each.
_MOST = 4096
_TIMEOUT_MS = "10000"
#: How long to wait before each try to send; what a collector answers then is worth another one.
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
#: The code of what had begun when the execution failed.
_CANCELLED = "cancelled"
#: The variables of traces alone come before those of all signals.
_OF_TRACES, _OF_ALL = "OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"
_SERVICE = "service.name"


class Ended(NamedTuple):
    """An execution, or a wrap's part of one, that has ended."""

    trace: TraceContext
    #: The execution's.
    number: int
    mark: str
    #: What the times of `spans` go from, in the time of day: when its request came.
    arrived_ns: int
    #: Those of a timeline.
    spans: Sequence[Mapping[str, Any]]
    #: Of the request's own span: when it was answered, the HTTP status, and what failed. There is
    #: no such span where there is no status.
    latency_ms: float = 0.0
    status: int | None = None
    failure: Mapping[str, Any] | None = None


class Collector:
    """Where spans are sent: one connection for each message, no redirects.

    Args:
        url: of the service.
        environment: has the other variables of OpenTelemetry.

    Raises ValueError: a variable has a value that cannot be used; the message names it.
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
        """The status and the body of the answer, which is cut off where it is long.

        All of it takes no longer than the timeout. Raises OSError, or HTTPException, where that is
        over or there is no answer.
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
            # The connection's own timeout is for each byte, and some send one at a time.
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
    """What wraps tell of executions whose coordinator they are.

    Args:
        collector: where spans go.
        environment: has the other variables of OpenTelemetry.
    """

    def __init__(self, wrap: Wrap, collector: Collector, environment: Mapping[str, str]) -> None:
        #: How many spans were not taken, for whatever reason.
        self.dropped = Counter(
            "chiron_spans_dropped_total", "Spans that OpenTelemetry's collector has not got."
        )
        self._wrap = wrap
        self._collector = collector
        self._attributes = dict(_pairs(environment.get("OTEL_RESOURCE_ATTRIBUTES", "")))
        if name := environment.get("OTEL_SERVICE_NAME"):
            self._attributes[_SERVICE] = name
        self._changed = threading.Condition()
        self._ended = deque[Ended]()
        #: Of these, and of what is being sent.
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
        status: int,
        error: TaskError | None,
    ) -> None:
        """A request has been answered, with that HTTP status; moments are of the monotonic clock.

        The `results` are all that is known, also of one that has failed.
        """
        failure = None if error is None else error.as_dict(redacted)
        self._take(ident, results, arrived, answered, status, failure)

    def part(self, ident: Ident, results: Sequence[Result]) -> None:
        """A part of an execution has ended of which the answer to the request does not know."""
        now = time.monotonic()
        self._take(ident, results, now, now, None, None)

    def close(self, within_s: float) -> None:
        """Send what there is, as far as that is possible within a time."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(within_s)

    def _take(
        self,
        ident: Ident,
        results: Sequence[Result],
        arrived: float,
        answered: float,
        status: int | None,
        failure: dict[str, Any] | None,
    ) -> None:
        if ident.trace is None or not ident.trace.is_exported:
            return
        try:
            told = timeline(self._wrap, results, arrived, answered, ident.trace)
        except Exception:  # whatever is wrong with what is told, the execution goes on to its end
            traceback.print_exc()
            self.dropped.add(by=len(results))
            return
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

    def _send_all(self) -> None:
        while ended := self._next():
            try:
                spans = [span for each in ended for span in spans_of(each, self._wrap)]
                for first in range(0, len(spans), _BATCH):
                    self._send(spans[first : first + _BATCH])
            except Exception:  # these are lost; later ones are sent
                traceback.print_exc()
                self.dropped.add(by=sum(map(_count, ended)))
            with self._changed:
                self._spans -= sum(map(_count, ended))

    def _next(self) -> list[Ended]:
        """What has ended within a moment; nothing in the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._closing)
            self._changed.wait_for(lambda: self._spans >= _BATCH or self._closing, _DELAY_S)
            ended = list(self._ended)
            self._ended.clear()
            return ended

    def _send(self, spans: Sequence[tuple[str, dict[str, Any]]]) -> None:
        body = json.dumps(message_of(spans, self._wrap.name, self._attributes)).encode()
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
    """What sends spans to `url`; None, which the log says, where that speaks another protocol.

    Raises ValueError, which names the variable, where one cannot be used.
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
    """The spans of an execution in OTLP's JSON, each with its wrap."""
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
            if code != _CANCELLED:  # what failed is another one
                span["status"] = {"code": _ERROR, "message": message}
        yield each["wrap"], span


def message_of(
    spans: Iterable[tuple[str, dict[str, Any]]], own: str, attributes: Mapping[str, str]
) -> dict[str, Any]:
    """An ExportTraceServiceRequest.

    Each wrap is a service, called like it unless `attributes` say otherwise, which are those of the
    wrap called `own`.
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
    if failure and (ended.status or 0) >= SERVER_FAULT:  # else it is the client's
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
    """The variable that says `name` for traces, and what it has; empty where none says it."""
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
    # A thread waits for at most 292 years.
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
    """What ``a=1,b=2`` says, with what is percent-encoded in it."""
    pairs = (each.partition("=") for each in text.split(",") if each.strip())
    return [(name.strip(), unquote(value.strip())) for name, _, value in pairs]


def _rejected(answer: bytes) -> int:
    """How many spans were refused of a message that was taken."""
    try:
        return int(json.loads(answer or "{}")["partialSuccess"]["rejectedSpans"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return 0
