"""A collector of spans, as wraps send them."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.serving import Answering, served


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as a collector has it; times in nanoseconds since the epoch, ids in hexadecimal."""

    service: str
    resource: Mapping[str, Any]
    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    state: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    error: str | None


@dataclass
class Collector:
    """An OTLP receiver at `url`, which parses messages with OpenTelemetry's own package.

    Answers with `status` and `answer`, as soon as `open` is set.
    """

    url: str = ""
    status: int = 200
    answer: bytes = b"{}"
    paths: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    spans: list[ReceivedSpan] = field(default_factory=list)
    open: threading.Event = field(default_factory=threading.Event)

    def wait_for(
        self, roots: int = 1, of: str = "", names: Iterable[str] = ()
    ) -> list[ReceivedSpan]:
        """The spans of a trace, or of all, once so many of its requests and those names are there.

        Each wrap sends its own: a request's span may come before those of its tasks.
        """
        until = time.monotonic() + 30
        while True:
            spans = [span for span in self.spans if span.trace_id == of or not of]
            there = {span.name for span in spans}
            if sum(span.kind == 2 for span in spans) >= roots and there.issuperset(names):
                return spans
            assert time.monotonic() < until, self.spans
            time.sleep(0.02)

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """Take a message in."""
        document = json.loads(body)
        for resource in document["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    # The one way in which OTLP's JSON is not protobuf's.
                    for name in ("traceId", "spanId", "parentSpanId"):
                        if name in span:
                            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
        message = Parse(json.dumps(document), ExportTraceServiceRequest())
        self.paths.append(path)
        self.headers.append(headers)
        for found in message.resource_spans:
            attributes = _attributes(found.resource.attributes)
            for scope in found.scope_spans:
                self.spans += [
                    ReceivedSpan(
                        attributes["service.name"],
                        attributes,
                        span.name,
                        span.kind,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.trace_state,
                        span.start_time_unix_nano,
                        span.end_time_unix_nano,
                        _attributes(span.attributes),
                        span.status.message if span.status.code == 2 else None,
                    )
                    for span in scope.spans
                ]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in pairs}


@contextmanager
def collecting() -> Iterator[Collector]:
    """What wraps send their spans to."""
    found = Collector()
    found.open.set()

    class Handler(Answering):
        def do_POST(self) -> None:
            body = self.body()
            found.open.wait()
            if found.status == 200:
                found.take(self.path, dict(self.headers), body)
            self.answer(found.status, found.answer)

    with served(Handler) as url:
        found.url = url
        yield found
        found.open.set()
