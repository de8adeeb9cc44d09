"""W3C Trace Context: what of it is valid, and that handlers of every kind and place get it."""

from __future__ import annotations

import json
from typing import Any

import pytest

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{PARENT}-01"
HTTP = """
def handle(event, context):
    return [event.headers.get("traceparent"), event.headers.get("tracestate")]
"""
FLASK = """
from flask import request
def handle(req):
    return [request.headers.get("traceparent"), request.headers.get("tracestate")]
"""
COMMAND = ["python3", "-c", "import json, os; print(json.dumps([*map(os.environ.get, %r)]))"]
COMMAND[-1] %= (["TRACEPARENT", "TRACESTATE"],)


@pytest.mark.parametrize(
    ("traceparent", "flags"),
    [
        (GIVEN, 1),
        (f"00-{TRACE}-{PARENT}-00", 0),
        (f"00-{TRACE}-{PARENT}-ff", 3),  # flags that are not known are not passed on
        (f"cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like", 1),
        (f"cc-{TRACE}-{PARENT}-01", 1),
    ],
)
def test_a_valid_header_is_taken(traceparent: str, flags: int) -> None:
    from wrap.observe.trace_context import given

    found = given(traceparent, "vendor=1")
    assert found == (TRACE, PARENT, flags, "vendor=1", False)
    passed_on = {"traceparent": f"00-{TRACE}-{PARENT}-{flags:02x}", "tracestate": "vendor=1"}
    assert found.headers(1, 2) == passed_on


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"cc-{TRACE}-{PARENT}-01.what",
        f"00-{TRACE[1:]}-{PARENT}-01",
        f"{GIVEN}, {GIVEN}",
        f"{GIVEN}\n",
    ],
)
def test_an_invalid_one_is_ignored(traceparent: str) -> None:
    from wrap.observe.trace_context import given

    assert given(traceparent, "") is None


@pytest.mark.parametrize("state", ["x" * 513, "a=\x01", "a=ü"])
def test_a_state_that_could_not_be_sent_is_not_passed_on(state: str) -> None:
    from wrap.observe.trace_context import given

    found = given(GIVEN, state)
    assert found is not None
    assert found.state == ""


def test_tasks_of_exported_executions_have_spans_of_their_own() -> None:
    from wrap.observe.trace_context import exported, given

    context = exported(given(GIVEN, ""))
    parents = {context.headers(*each)["traceparent"][36:52] for each in [(1, 2), (1, 3), (2, 2)]}
    assert len(parents) == 3
    assert PARENT not in parents
    assert context.span_id(1, 2) in parents
    begun = exported(None)
    assert (begun.parent_id, begun.flags, begun.is_exported) == ("", 1, True)
    assert begun.trace_id != exported(None).trace_id
    unsampled = exported(given(f"00-{TRACE}-{PARENT}-00", ""))
    assert not unsampled.is_exported
    assert unsampled.headers(1, 2) == {"traceparent": f"00-{TRACE}-{PARENT}-00"}


def test_handlers_of_every_kind_and_place_get_it(start: Any, wrap_image: Any, gateway: Any) -> None:
    sources: dict[str, Any] = {"http": HTTP, "flask": FLASK, "command": {"none": ""}}
    commands = {"command": COMMAND}
    styles = {"http": "http", "flask": "flask", "command": "command"}
    names = list(sources)
    inputs = dict.fromkeys(range(9)) | {9: list(range(9))}
    functions = {**{number: names[number % 3] for number in range(9)}, 9: "join"}
    away = {number: functions[number] for number in (6, 7, 8)}
    entry = wrap_image(
        sources | {"join": "def handle(req):\n    return req\n"},
        [[0, 1, 2, 9], [3, 4, 5]],
        tasks={number: each for number, each in functions.items() if number not in away},
        styles=styles,
        commands=commands,
        inputs=inputs,
        entry={"output": 9, "remotes": {"test-wrap2": away}},
    )
    other = wrap_image(
        sources,
        [[6, 7, 8]],
        tasks=away,
        styles=styles,
        commands=commands,
        inputs=inputs,
        name="test-wrap2",
        buckets=[([], [number]) for number in range(9)] + [(list(range(9)), [9])],
        remotes={"test-wrap1": {n: each for n, each in functions.items() if n not in away}},
    )
    server = start(entry, gateway_url=gateway.url)
    gateway.ports["test-wrap2"] = start(other).port
    answer = server.request(body="x", traceparent=GIVEN, tracestate="a=1,b=2")
    assert answer.json == [[GIVEN, "a=1,b=2"]] * 9
    assert server.request(body="x", traceparent=GIVEN).json == [[GIVEN, None]] * 9
    # What is invalid is any other header of the request, and no trace.
    headers = [["00-nothing", None], ["00-nothing", None], [None, None]]
    assert server.request(body="x", traceparent="00-nothing").json == headers * 3


def test_what_buckets_fire_for_a_request_is_part_of_its_trace(start: Any, wrap_image: Any) -> None:
    from chiron.workflow.buckets import parse_buckets

    buckets = {"events": {"trigger": "immediate", "function": "first"}}
    workflow = parse_buckets({"entry": "events", "buckets": buckets}, "test")
    entry = {"output": None, "states": {"first": 0}, "buckets": workflow.buckets}
    image = wrap_image({"first": HTTP}, [[], [0]], styles={"first": "http"}, entry=entry)
    answer = start(image).request(body="1", traceparent=GIVEN, X_Chiron_Alone="1")
    assert answer.json == {"first": [[GIVEN, None]]}


def test_who_answers_instead_gets_it(start: Any, wrap_image: Any, gateway: Any) -> None:
    one = {"styles": {"one": "http"}, "entry": {"output": 0}}
    new = start(wrap_image({"one": HTTP}, name="test-wrap1-b", **one))
    gateway.ports["test-wrap1-b"] = new.port
    called = start(
        wrap_image({"one": HTTP}, **one), gateway_url=gateway.url, chiron_route="test-wrap1-b"
    )
    answer = called.request(body="x", traceparent=GIVEN, tracestate="a=1")
    assert json.loads(answer.body) == [GIVEN, "a=1"]
