"""Spans as a wrap sends them: what is in them, and that nobody waits for who takes them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

ECHO = "def handle(req):\n    return req\n"
ONE: dict[str, Any] = {"output": 0}
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{PARENT}-01"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
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
    from wrap.settings import traces_url

    assert traces_url(variables) == url


def test_where_they_name_nothing_nothing_is_loaded(start: Any, wrap_image: Any) -> None:
    handler = """
        import json, sys, threading
        def handle(req):
            threads = sorted(each.name for each in threading.enumerate())
            return json.dumps(["wrap.otlp" in sys.modules, "spans" in threads])
    """
    image = wrap_image({"one": handler}, entry=ONE)
    assert start(image).request(traceparent=GIVEN).json == [False, False]
    assert start(image, **{ENDPOINT: "http://127.0.0.1:9"}).request().json == [True, True]


def test_headers_and_attributes_are_those_that_were_set(
    start: Any, wrap_image: Any, collector: Any
) -> None:
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
    assert task.attributes == {
        "chiron.task": "one",
        "chiron.function": "one",
        "chiron.process": 0,
    }
    assert "as http/json, not as http/protobuf" in server.log.read_text()


def test_grpc_is_refused_in_the_log(start: Any, wrap_image: Any) -> None:
    settings = {ENDPOINT: "http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    server = start(wrap_image({"one": ECHO}, entry=ONE), **settings)
    assert server.request(body="x").text == "x"
    assert "no spans are sent to http://127.0.0.1:4317/v1/traces" in server.log.read_text()


@pytest.mark.parametrize(
    ("request_", "entry", "status", "error", "told"),
    [
        ({"body": "x" * 8_653_179}, ONE, 413, None, "too-large"),
        (
            {"body": "x", "X_Chiron_Timeout": "soon"},
            ONE,
            400,
            None,
            "bad-timeout",
        ),
        (
            {"body": "x"},
            ONE | {"fail": ("Odd", "as it is")},
            500,
            "workflow-failed: Odd: as it is",
            "workflow-failed",
        ),
        ({"body": "sleep", "X_Chiron_Timeout": "0.3"}, ONE, 504, "timeout: one", "timeout"),
    ],
)
def test_what_fails_is_an_error_unless_it_is_the_clients(
    request_: dict[str, str],
    entry: dict[str, Any],
    status: int,
    error: str | None,
    told: str,
    start: Any,
    wrap_image: Any,
    collector: Any,
) -> None:
    handler = """
        import time
        def handle(req):
            while req == "sleep":
                time.sleep(0.01)
            return req
    """
    settings = {"WRAP_MEMORY_MIB": "112", "WRAP_REQUEST_BYTES": "1000", ENDPOINT: collector.url}
    server = start(wrap_image({"one": handler}, entry=entry), **settings)
    assert server.request(**request_).status == status
    request, *tasks = collector.wait_for()
    assert request.attributes["http.response.status_code"] == status
    assert request.attributes["error.type"] == told
    assert (request.error or "").startswith(error or "")
    assert (request.error is None) == (error is None)
    assert [bool(task.error) for task in tasks] == {504: [True], 500: [False]}.get(status, [])


def test_attempts_of_a_workflow_that_decides_are_spans_each(
    start: Any, wrap_image: Any, collector: Any, tmp_path: Path
) -> None:
    retried = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 0, "MaxAttempts": 2}]
    handler = f"""
        from pathlib import Path
        def handle(event, context):
            runs = Path({str(tmp_path / "runs")!r})
            runs.open("a").write("x")
            if len(runs.read_text()) < 3:
                raise ValueError("not yet")
            return {{"body": event.headers["traceparent"]}}
    """
    machine = {
        "StartAt": "Try",
        "States": {"Try": {"Type": "Task", "Resource": "try", "End": True, "Retry": retried}},
    }
    image = wrap_image(
        {"try": handler},
        styles={"try": "http"},
        inputs={},
        buckets=[],
        instances=1,
        entry={"output": None, "machine": machine, "states": {"Try": 0}},
    )
    answer = start(image, **{ENDPOINT: collector.url}).request(body="1", traceparent=GIVEN)
    request, *tasks = collector.wait_for()
    assert answer.status == 200, answer.text
    assert [task.name for task in tasks] == ["try"] * 3
    assert [task.attributes["chiron.task"] for task in tasks] == ["try#1", "try#2", "try#3"]
    assert [task.error for task in tasks[:2]] == ["ValueError: not yet (handler.py:7)"] * 2
    assert tasks[2].error is None
    assert tasks[2].span_id in answer.text
    assert len({task.span_id for task in tasks}) == 3
    assert request.error is None


def test_a_wrap_that_is_not_there_is_no_span_and_the_workflow_goes_on(
    start: Any, wrap_image: Any, gateway: Any, collector: Any
) -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Here"}]
    there = {"Type": "Task", "Resource": "there", "End": True, "Catch": catch}
    here = {"Type": "Task", "Resource": "here", "End": True}
    image = wrap_image(
        {"here": ECHO},
        tasks={1: "here"},
        inputs={},
        buckets=[],
        instances=2,
        entry={
            "output": None,
            "machine": {"StartAt": "There", "States": {"There": there, "Here": here}},
            "states": {"There": 0, "Here": 1},
            "remotes": {"test-wrap2": {0: "there"}},
        },
    )
    settings = {ENDPOINT: collector.url, "gateway_url": gateway.url}
    answer = start(image, **settings).request(body="1")
    assert answer.status == 200, answer.text
    request, task = collector.wait_for()
    assert (request.name, task.name) == ("test", "here")
    assert (request.error, task.error) == (None, None)


def test_what_buckets_fire_is_part_of_a_request_that_waits_for_it(
    start: Any, wrap_image: Any, collector: Any
) -> None:
    from workflow.buckets import parse_buckets

    buckets = {"events": {"trigger": "immediate", "function": "first"}}
    workflow = parse_buckets({"entry": "events", "buckets": buckets}, "test")
    entry = {"output": None, "states": {"first": 0}, "buckets": workflow.buckets}
    handler = """
        def handle(req):
            if req == "2":
                raise ValueError("two")
            return req
    """
    for processes in ([[0]], [[], [0]]):
        name = f"test-wrap{len(processes)}"
        image = wrap_image({"first": handler}, processes, entry=entry, name=name)
        server = start(image, **{ENDPOINT: collector.url})
        collector.spans.clear()
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
        assert [span.attributes["http.response.status_code"] for span in collector.wait_for()] == [
            202
        ]


def test_what_is_left_is_sent_when_the_wrap_ends(
    start: Any, wrap_image: Any, collector: Any
) -> None:
    server = start(wrap_image({"one": ECHO}, entry=ONE), **{ENDPOINT: collector.url})
    for _ in range(3):
        server.request()
    assert server.terminate() == 0
    assert len(collector.spans) == 6


def test_who_does_not_take_spans_keeps_nobody_waiting_and_they_are_counted(
    start: Any, wrap_image: Any, collector: Any, eventually: Any
) -> None:
    """A request has 1,002 spans here, and 4,096 may wait; one message waits for 10 s."""
    inputs: dict[int, Any] = dict.fromkeys(range(1000)) | {1000: 0}
    image = wrap_image(
        {"one": ECHO},
        tasks=dict.fromkeys(inputs, "one"),
        inputs=inputs,
        entry={"output": 1000},
    )
    server = start(image, **{ENDPOINT: collector.url})

    def dropped() -> int:
        (line,) = (
            line
            for line in server.request("GET", "/metrics").text.splitlines()
            if line.startswith("chiron_spans_dropped_total")
        )
        return int(float(line.split()[1]))

    collector.open.clear()
    for _ in range(6):
        began = time.monotonic()
        assert server.request(body="x").status == 200
        assert time.monotonic() - began < 10
    assert eventually(lambda: dropped() == 2 * 1002)  # the last is counted after its answer
    collector.open.set()
    # What was given up after 10 s comes twice.
    assert eventually(lambda: len({span.span_id for span in collector.spans}) == 4 * 1002)
    collector.open.clear()
    server.request(body="x")
    time.sleep(1.5)  # it is being sent
    began = time.monotonic()
    assert server.terminate() == 0
    assert time.monotonic() - began < 6


def test_who_refuses_spans_is_in_the_log_once(
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
