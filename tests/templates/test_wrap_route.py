"""An entry that is told of another one hands its requests on to it, and only who knows the key
tells it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

KEY = "0123456789abcdef"
ONE: dict[str, Any] = {"output": 0}
OLD = 'def handle(req):\n    return "old " + req\n'
NEW = """\
import time

def handle(req):
    if req == "raises":
        raise ValueError("no")
    if req == "waits":
        time.sleep(0.5)
    return "new " + req
"""


@pytest.fixture(scope="module")
def both(shared_start: Any, shared_image: Any, shared_gateway: Any) -> tuple[Any, Any]:
    image = shared_image({"one": NEW}, entry=ONE, name="test-wrap1-b")
    new = shared_start(image, chiron_trace_key=KEY)
    shared_gateway.ports["test-wrap1-b"] = new.port
    image = shared_image({"one": OLD}, entry=ONE)
    settings = {"chiron_trace_key": KEY, "gateway_url": shared_gateway.url, "WAITRESS_THREADS": "1"}
    return shared_start(image, **settings), new


@pytest.fixture
def servers(both: tuple[Any, Any]) -> tuple[Any, Any]:
    """An entry, and another one that the gateway knows as ``test-wrap1-b``."""
    assert hand(both[0], "") == 204
    return both


def hand(server: Any, target: str, key: str = KEY) -> int:
    return server.request(path="/_/route", body=target, X_Chiron_Trace=key).status


def behind(server: Any) -> str:
    return server.request("GET", "/_/wrap").text


def test_requests_are_handed_on_with_their_answers_and_taken_back(servers: Any) -> None:
    called, new = servers
    assert (called.request(body="x").text, behind(called)) == ("old x", "test-wrap1")
    assert hand(called, "test-wrap1-b") == 204
    assert behind(called) == "test-wrap1-b"
    for body in ("x", '{"a": 1}', "raises"):
        answers = [server.request(body=body) for server in (called, new)]
        first, second = [(a.status, a.text, a.headers["Content-Type"]) for a in answers]
        assert first == second
    assert called.request(body="raises").json["function"] == "one"
    assert hand(called, "") == 204
    assert (called.request(body="x").text, behind(called)) == ("old x", "test-wrap1")


def test_a_request_is_handed_on_whole_and_so_is_its_answer(
    start: Any, wrap_image: Any, gateway: Any
) -> None:
    handler = """
        from flask import make_response, request

        def handle(req):
            response = make_response([request.method, request.full_path, req], 404)
            response.set_cookie("a", request.headers["X-Key"])
            response.set_cookie("b", "2")
            return response
    """
    entry = {**ONE, "styles": ["http"]}
    new = start(wrap_image({"one": handler}, entry=entry, name="test-wrap1-b"))
    gateway.ports["test-wrap1-b"] = new.port
    settings = {"chiron_trace_key": KEY, "gateway_url": gateway.url}
    called = start(wrap_image({"one": OLD}, entry=entry), **settings)
    assert hand(called, "test-wrap1-b") == 204
    answer = called.request("PUT", "/orders/a%20b?x=1&x=2", "body", X_Key="k")
    assert (answer.status, answer.json) == (404, ["PUT", "/orders/a b?x=1&x=2", "body"])
    assert answer.headers["Set-Cookie"] == "b=2; Path=/"  # the last one of both
    assert answer.headers["Content-Type"] == "application/json"
    assert "X-Chiron-Answered" not in answer.headers


def test_what_waits_for_the_other_one_keeps_nobody_waiting(servers: Any) -> None:
    """Of its own it would run one request at a time; four that wait half a second take no two."""
    called, _ = servers
    assert hand(called, "test-wrap1-b") == 204
    together = threading.Barrier(4)
    texts: list[str] = []

    def ask() -> None:
        together.wait()
        texts.append(called.request(body="waits", X_Chiron_Timeout="1.2").text)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["new waits"] * 4


def test_a_timeline_comes_from_the_one_that_answers(servers: Any) -> None:
    called, _ = servers
    assert hand(called, "test-wrap1-b") == 204
    traced = called.request(body="x", X_Chiron_Trace=KEY).json
    assert traced["output"] == "new x"
    assert {row["wrap"] for row in traced["timeline"]["spans"]} == {"test-wrap1-b"}


def test_one_that_is_gone_is_named(servers: Any) -> None:
    called, _ = servers
    assert hand(called, "test-wrap1-c") == 204
    answer = called.request(body="x")
    assert answer.status == 500
    assert answer.json["code"] == "remote"
    assert "test-wrap1-c" in answer.json["message"]


def test_strangers_and_what_is_no_name_change_nothing(servers: Any) -> None:
    called, _ = servers
    for target, key in (("test-wrap1-b", ""), ("test-wrap1-b", KEY[1:]), ("", "")):
        assert hand(called, target, key) == 403
        assert called.request(body="x").text == "old x"
    assert hand(called, "../x", KEY) == 400
    assert called.request(body="x").text == "old x"


def test_it_is_kept_when_the_program_begins_anew_and_known_from_the_start(
    start: Any, wrap_image: Any, servers: Any, shared_gateway: Any, eventually: Any
) -> None:
    stuck = "import os\nPIPE = os.pipe()\n\ndef handle(req):\n    os.read(PIPE[0], 1)\n"
    image = wrap_image({"one": stuck}, entry=ONE, name="test-wrap1-a")
    url = shared_gateway.url
    settings = {"chiron_trace_key": KEY, "gateway_url": url, "WAITRESS_THREADS": "64"}
    called = start(image, **settings)
    threads = [
        threading.Thread(target=called.request, kwargs={"body": "x", "X_Chiron_Timeout": "0.3"})
        for _ in range(64)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hand(called, "test-wrap1-b") == 204
    assert eventually(lambda: "begins anew" in called.log.read_text())
    assert called.request(body="x").text == "new x"
    called.terminate()

    assert start(image, **settings, chiron_route="test-wrap1-b").request(body="x").text == "new x"
