"""A function that is deployed by itself and called over HTTP: its input, its answer, its errors."""

from __future__ import annotations

import json
from socket import socket
from typing import Any

import pytest
from wrap.functions.remote import headers_of
from wrap.functions.styles import environ_of
from wrap.values.value import FIELDS, Object

#: Where the task of the function is: in the server, or in a further process.
PLACES = {"main": [[0, 1]], "fork": [[0], [1]], "pool": [[0], [1]]}
GIVE = """
    def handle(event, context):
        return {"body": "given", "headers": {"Content-Type": "a/b"}}
"""
#: Stands for a function of any language: answers with what it has seen of the call.
SEES = """
    import json, time
    def handle(event, context):
        if event.path == "/status":
            return {"statusCode": 418, "body": "no coffee", "headers": {"X-Kind": "pot"}}
        if event.path == "/hang":
            time.sleep(event.query.get("s", 30, type=float))
        names = ("Content-Type", "X-Own", "Traceparent", "Host", "X-Chiron-Timeout")
        seen = {name: event.headers.get(name) for name in names}
        asked = {key: event.query[key] for key in event.query}
        return {
            "body": json.dumps([event.method, event.path, asked, event.body.decode(), seen]),
            "headers": {"Content-Type": "application/json", "X-Kind": "pot"},
        }
"""


@pytest.fixture
def serve(start: Any, wrap_image: Any, plain_image: Any, gateway: Any) -> Any:
    """Starts a wrap of a handler, and behind it a function of the gateway."""
    alone = start(plain_image(SEES), handler_style="http")
    gateway.ports["sees"] = alone.port

    def serve(place: str = "main", **fields: Any) -> Any:
        image = wrap_image(
            {"give": GIVE, "sees": {}},
            PLACES[place],
            styles={"give": "http", "sees": "remote"},
            mechanism="pool" if place == "pool" else "fork",
            **{"inputs": {0: None, 1: 0}, "entry": {"output": 1}} | fields,
        )
        return start(image, gateway_url=gateway.url)

    return serve


def test_it_gets_what_the_task_before_gave_and_its_answer_is_the_tasks(serve: Any) -> None:
    server = serve("fork")
    answer = server.request(path="/lost?x=1", X_Own="lost")
    assert (answer.status, answer.headers["X-Kind"]) == (200, "pot")
    method, path, asked, body, seen = answer.json
    assert (method, path, asked, body) == ("POST", "/", {}, "given")
    assert [seen[name] for name in ("Content-Type", "X-Own", "X-Chiron-Timeout")] == [
        *("a/b", None, None)
    ]


def test_as_the_first_task_it_gets_the_request_as_it_is(serve: Any) -> None:
    server = serve("pool", inputs={1: None, 0: 1})
    answer = server.request("PUT", "/a%20b/c?x=1%202", "whole", X_Own="own", Content_Type="c/d")
    method, path, asked, body, seen = answer.json
    assert (method, path, asked, body) == ("PUT", "/a b/c", {"x": "1 2"}, "whole")
    assert (seen["Content-Type"], seen["X-Own"], seen["X-Chiron-Timeout"]) == ("c/d", "own", None)


def test_its_status_is_an_error_to_other_tasks_and_the_answer_to_the_client(serve, gateway):
    """One that is not deployed is told by name."""
    answering = serve(inputs={0: None, 1: None}).request(path="/status")
    assert (answering.status, answering.text) == (418, "no coffee")
    failing = serve(inputs={1: None, 0: 1}, entry={"output": 0}, name="test-wrap2")
    answer = failing.request(path="/status")
    assert answer.status == 500
    said, told = "the handler answered 418: no coffee", answer.json
    assert json.loads(told.pop("cause"))["errorMessage"] == said
    assert told == {
        "code": "status",
        "message": said,
        "function": "sees",
        "wrap": "test-wrap2",
        "error": "status",
    }
    del gateway.ports["sees"]
    told = failing.request().json
    assert (told["code"], told["function"]) == ("status", "sees")
    assert told["message"] == "the handler answered 404: no such function"


def test_a_gateway_that_is_not_there_is_told_in_words(start: Any, wrap_image: Any) -> None:
    image = wrap_image({"sees": {}}, [[0]], styles={"sees": "remote"}, entry={"output": 0})
    with socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        told = start(image, gateway_url=url).request().json
    place = f"{url}/function/sees"
    assert told["message"] == f"function sees cannot be reached at {place}: Connection refused"


def test_a_call_that_is_late_is_given_up_and_its_thread_ends(serve: Any, eventually: Any) -> None:
    server = serve(inputs={1: None, 0: 1}, entry={"output": 0}, timeouts_s={"sees": 0.3})
    server.request()
    before = server.threads()
    told = server.request(path="/hang").json
    assert (told["code"], told["function"]) == ("timeout", "sees")
    assert eventually(lambda: "lost" not in server.log.read_text() and server.threads() <= before)
    assert server.request().status == 200


def test_it_gets_names_that_wsgi_leaves_out_and_a_handler_of_wsgi_does_not() -> None:
    fields = "X-A: 1\r\nx-a: 2\r\napi_key: k\r\nX_Chiron_Own: x\r\nContent-Length: 0"
    environ = {"HTTP_X_A": "1, 2", "REQUEST_METHOD": "GET", FIELDS: fields}
    assert headers_of(environ) == {"X-A": "1, 2", "Api_Key": "k"}
    given = Object(b"", head=environ)
    assert environ_of(given, {}) == {"HTTP_X_A": "1, 2", "REQUEST_METHOD": "GET"}
