"""Spans as a wrap sends them: what is in them, and that nobody waits for who takes them."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from wrap.config.settings import traces_url
from wrap.core.wrap_spec import Wrap
from wrap.net.messages import Ident, Result
from wrap.observe.spans import exporter_of
from wrap.observe.trace_context import exported, given

from tests.rows import each_row

ECHO = "def handle(req):\n    return req\n"
ONE: dict[str, Any] = {"output": 0}
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{PARENT}-01"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@each_row(
    ("variables", "url"),
    [
        ({}, ""),
        ({ENDPOINT: ""}, ""),
        ({ENDPOINT: "http://a:4318"}, "http://a:4318/v1/traces"),
        ({ENDPOINT: "http://a:4318/x/"}, "http://a:4318/x/v1/traces"),
        ({ENDPOINT: "http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/x"}, "http://b/x"),
    ],
)
def test_spans_go_where_opentelemetrys_variables_say(variables: dict[str, str], url: str) -> None:
    assert traces_url(variables) == url


def test_headers_and_attributes_are_those_that_were_set(start, wrap_image, collector):
    server = start(
        wrap_image({"one": ECHO}, entry=ONE),
        **{ENDPOINT: "http://127.0.0.1:9"},
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/mine",
        OTEL_EXPORTER_OTLP_HEADERS="api-key=a%2Cb, x-other = c=d",
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=a%20b,service.name=over",
        OTEL_SERVICE_NAME="shop",
    )
    server.request(X_Call_Id="0123-4567-89ab")
    request, task = collector.wait_for()
    assert collector.paths == ["/mine"]
    assert collector.headers[0]["api-key"] == "a,b"
    assert collector.headers[0]["x-other"] == "c=d"
    assert request.resource == task.resource
    assert request.resource == {
        "service.name": "shop",
        "deployment.environment.name": "a b",
        "faas.name": "test-wrap1",
    }
    assert request.attributes["chiron.execution"] == "0123-456"
    assert task.attributes == {"chiron.task": "one", "chiron.function": "one", "chiron.process": 0}
    assert "as http/json, not as http/protobuf" in server.log.read_text()


def test_the_name_of_one_function_renames_no_wrap(start, wrap_image, collector):
    server = start(
        wrap_image({"one": ECHO}, entry=ONE),
        **{ENDPOINT: collector.url},
        OTEL_RESOURCE_ATTRIBUTES="team=a,service.name=over",
        OTEL_SERVICE_NAME="shop",
        WRAP_SERVICE_NAME="",
    )
    server.request()
    request, _ = collector.wait_for()
    assert (request.resource["service.name"], request.resource["team"]) == ("test-wrap1", "a")


def exporter(url: str, **variables: str) -> Any:
    """What exports the executions of a wrap to a URL, with the other variables."""
    wrap = Wrap("test", "w", "pool", {"f": "flask"}, {0: "f"}, [[0]], {}, [], 1.0, instances=1)
    return exporter_of(wrap, url, variables)


def test_grpc_is_refused_in_the_log(capsys: Any) -> None:
    assert exporter("http://a:4317/v1/traces", OTEL_EXPORTER_OTLP_PROTOCOL="grpc") is None
    assert "no spans are sent to http://a:4317/v1/traces" in capsys.readouterr().out


def test_what_fails_is_an_error_unless_it_is_the_clients(start, wrap_image, collector):
    handler = """
        import time
        def handle(req):
            while req == "sleep":
                time.sleep(0.01)
            return req
    """
    settings = {"WRAP_MEMORY_MIB": "112", "WRAP_REQUEST_BYTES": "1000", ENDPOINT: collector.url}
    server = start(wrap_image({"one": handler}, entry=ONE), **settings)
    failing = ONE | {"fail": ("Odd", "as it is")}
    fails = start(wrap_image({"one": ECHO}, entry=failing, name="test-fails"), **settings)
    for wrap, asked, status, told, error, tasks in (
        (server, {"body": "x" * 8_653_179}, 413, "too-large", None, []),
        (server, {"X_Chiron_Timeout": "soon"}, 400, "bad-timeout", None, []),
        (fails, {"body": "x"}, 500, "workflow-failed", "workflow-failed: Odd: as it is", [False]),
        (server, {"body": "sleep", "X_Chiron_Timeout": "0.3"}, 504, "timeout", "timeout: one", [1]),
    ):
        collector.spans.clear()
        answer = wrap.request(**asked)
        assert (answer.status, answer.json["code"]) == (status, told)
        request, *ran = collector.wait_for()
        assert request.attributes["http.response.status_code"] == status
        assert request.attributes["error.type"] == told
        assert (request.error or "").startswith(error or "")
        assert (request.error is None) == (error is None)
        assert [bool(task.error) for task in ran] == tasks
        assert told != "workflow-failed" or answer.json["message"] == "Odd: as it is"


def test_attempts_of_a_workflow_that_decides_are_spans_each_and_a_wrap_that_is_not_there_is_none(
    start, wrap_image, gateway, collector, tmp_path
):
    retried = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 0, "MaxAttempts": 2}]
    caught = [{"ErrorEquals": ["States.ALL"], "Next": "Here"}]
    handler = f"""
        from pathlib import Path
        def handle(event, context):
            runs = Path({str(tmp_path / "runs")!r})
            runs.open("a").write("x")
            if len(runs.read_text()) < 3:
                raise ValueError("not yet")
            return {{"body": event.headers["traceparent"]}}
    """
    states = {
        "There": {"Type": "Task", "Resource": "there", "End": True, "Catch": caught},
        "Here": {"Type": "Task", "Resource": "here", "End": True, "Retry": retried},
    }
    entry = {
        "output": None,
        "machine": {"StartAt": "There", "States": states},
        "states": {"There": 0, "Here": 1},
        "remotes": {"test-wrap2": {0: "there"}},
    }
    fields = {"inputs": {}, "buckets": [], "instances": 2, "entry": entry}
    image = wrap_image({"here": handler}, tasks={1: "here"}, styles={"here": "http"}, **fields)
    server = start(image, **{ENDPOINT: collector.url}, gateway_url=gateway.url)
    answer = server.request(body="1", traceparent=GIVEN)
    request, *tasks = collector.wait_for()
    assert answer.status == 200, answer.text
    assert [task.name for task in (request, *tasks)] == ["test", *["here"] * 3]
    assert [task.attributes["chiron.task"] for task in tasks] == ["here#1", "here#2", "here#3"]
    assert [task.error for task in tasks[:2]] == ["ValueError: not yet (handler.py:7)"] * 2
    assert (request.error, tasks[2].error) == (None, None)
    assert tasks[2].span_id in answer.text
    assert len({task.span_id for task in tasks}) == 3


def test_what_buckets_fire_is_part_of_a_request_that_waits_for_it(start, wrap_image, collector):
    from chiron.workflow.buckets import parse_buckets

    buckets = {"events": {"trigger": "immediate", "function": "first"}}
    workflow = parse_buckets({"entry": "events", "buckets": buckets}, "test")
    entry = {"output": None, "states": {"first": 0}, "buckets": workflow.buckets}
    handler = """
        def handle(req):
            if req == "2":
                raise ValueError("two")
            return req
    """
    image = wrap_image({"first": handler}, [[], [0]], entry=entry)
    server = start(image, **{ENDPOINT: collector.url})
    assert server.request(body="1", X_Chiron_Alone="1").status == 200
    request, *spans = collector.wait_for()
    assert [span.name for span in spans if span.name != "start"] == ["first"]
    assert {span.parent_id for span in spans} == {request.span_id}
    collector.spans.clear()
    assert server.request(body="2", X_Chiron_Alone="1").status == 500
    request, *spans = collector.wait_for()
    errors = [span.error for span in spans if span.name == "first"]
    assert errors
    assert all("ValueError: two" in error for error in errors)
    assert request.attributes["error.type"] == "raised"
    collector.spans.clear()
    assert server.request(body="1").status == 202
    assert [each.attributes["http.response.status_code"] for each in collector.wait_for()] == [202]


def told(exports: Any, spans: int = 2) -> None:
    """A request of so many spans has ended: its own, and those of its tasks."""
    ident = Ident(trace=exported(given(GIVEN, "")))
    results = [Result(ident.number, task, "f", "w", 0, 0.0, 0.0) for task in range(spans - 1)]
    exports.request(ident, results, 0.0, 1.0, 200, None)


def test_who_does_not_take_spans_keeps_nobody_waiting_and_they_are_counted(collector, eventually):
    """4,096 spans may wait."""
    exports = exporter(collector.url)
    collector.open.clear()
    for _ in range(6):
        told(exports, 1002)
    assert exports.dropped.lines()[-1].split()[1] == str(2 * 1002)
    collector.open.set()
    assert eventually(lambda: len({span.span_id for span in collector.spans}) == 4 * 1002)


def test_what_is_refused_is_in_the_log_once_and_what_is_left_is_sent_at_the_end(
    start: Any, wrap_image: Any, collector: Any, eventually: Any
) -> None:
    server = start(wrap_image({"one": ECHO}, entry=ONE), **{ENDPOINT: collector.url})
    collector.status = 400

    def dropped() -> float:
        page = server.request("GET", "/metrics").text
        return float(page.partition("\nchiron_spans_dropped_total ")[2].split()[0])

    for count in (2, 4):
        assert server.request(body="x").text == "x"
        assert eventually(lambda count=count: dropped() == count)
    assert server.log.read_text().count("spans are dropped: ") == 1
    collector.status = 200
    collector.answer = json.dumps({"partialSuccess": {"rejectedSpans": "1"}}).encode()
    server.request(body="x")
    assert eventually(lambda: dropped() == 5)
    collector.spans.clear()
    for _ in range(3):
        server.request()
    assert server.terminate() == 0
    assert len(collector.spans) == 6


@pytest.fixture
def answering() -> Iterator[Any]:
    """Serves each connection with what a function sends to it until it fails; counts them."""
    listeners = []

    class Place:
        def __init__(self, send: Any) -> None:
            self.asked, self.cut = threading.Semaphore(0), threading.Semaphore(0)
            self._send, self.sent = send, b""
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
            listeners.append(self._listener)
            threading.Thread(target=self._serve, daemon=True).start()

        def _serve(self) -> None:
            with contextlib.suppress(OSError):
                while True:
                    channel, _ = self._listener.accept()
                    threading.Thread(target=self._answer, args=(channel,), daemon=True).start()

        def _answer(self, channel: socket.socket) -> None:
            with channel, contextlib.suppress(OSError):
                head = b""
                while b"\r\n\r\n" not in head:
                    head += channel.recv(1 << 16)
                self.asked.release()
                self.sent = head.partition(b"\r\n\r\n")[2]
                self._send(channel)
            self.cut.release()

    yield Place
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _endless(channel: socket.socket) -> None:
    channel.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        channel.sendall(bytes(1 << 16))


def _a_byte_at_a_time(channel: socket.socket) -> None:
    channel.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        channel.sendall(b"x")
        time.sleep(0.05)


def _on_its_way(channel: socket.socket) -> None:
    while True:
        channel.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.05)


@pytest.mark.parametrize("send", [_endless, _a_byte_at_a_time, _on_its_way])
def test_an_answer_that_never_ends_is_cut_off(send, answering, monkeypatch):
    monkeypatch.setattr("wrap.observe.spans._TRIES_S", (0.0,))
    place = answering(send)
    exports = exporter(place.url, OTEL_EXPORTER_OTLP_TIMEOUT="200")
    told(exports)
    assert place.cut.acquire(timeout=60)
    exports.close(60)  # it prints that spans are dropped: in no other test


def test_a_redirect_is_an_answer_and_nothing_is_sent_to_where_it_leads(
    answering: Any, eventually: Any, capfd: Any
) -> None:
    elsewhere = answering(lambda channel: channel.sendall(b"HTTP/1.1 200 OK\r\n\r\n"))
    head = f"HTTP/1.1 307 Over there\r\nLocation: {elsewhere.url}/x\r\nContent-Length: 0\r\n\r\n"
    exports = exporter(answering(lambda channel: channel.sendall(head.encode())).url)
    told(exports)
    exports.close(60)
    assert "answered 307" in capfd.readouterr().out
    assert not elsewhere.asked.acquire(blocking=False)


def test_messages_are_compressed_where_that_is_asked_for(answering: Any) -> None:
    def keep(channel: socket.socket) -> None:
        place.sent = place.sent or channel.recv(1 << 16)
        channel.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    place = answering(keep)
    told(exporter(place.url, OTEL_EXPORTER_OTLP_COMPRESSION="gzip"))
    assert place.cut.acquire(timeout=60)
    assert b"resourceSpans" in gzip.decompress(place.sent)


UNUSABLE = {
    "ENDPOINT": [
        "collector:4318",
        "http://",
        "http://a:99999",
        "http://a\r\nX: y",
        "http://u:secret@a",
    ],
    "TRACES_ENDPOINT": ["ftp://a"],
    "HEADERS": ["a b=c", "=c", "a=b%0d%0ac: d"],
    "TRACES_HEADERS": ["a=%E2%82%AC"],
    "TIMEOUT": ["soon", "0", "1e400"],
    "TRACES_TIMEOUT": ["9" * 30],
    "COMPRESSION": ["zstd"],
    "PROTOCOL": ["http/xml"],
}


@each_row(("name", "value"), [(name, each) for name, values in UNUSABLE.items() for each in values])
def test_a_setting_that_cannot_be_used_is_named(name: str, value: str) -> None:
    variable = f"OTEL_EXPORTER_OTLP_{name}"
    environment = {ENDPOINT: "http://a:4318"} | {variable: value}
    with pytest.raises(ValueError, match=variable) as raised:
        exporter(traces_url(environment), **environment)
    assert "secret" not in str(raised.value)


def test_a_wrap_does_not_start_with_a_setting_that_cannot_be_used(wrap_image, run_to_end):
    image = wrap_image({"one": ECHO}, entry=ONE)
    status, log = run_to_end(image, **{ENDPOINT: "collector:4318"})
    assert status == 1
    assert f"{ENDPOINT} is 'collector:4318': set it to a URL" in log
