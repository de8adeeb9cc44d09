"""The caller's request reaches the first task, and the last task's answer the caller."""

from __future__ import annotations

import copy
import hashlib
import hmac
import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: Where the one task runs: in the entry's processes, or in another wrap that is called by the
#: gateway or directly.
PLACES = ("thread", "fork", "pool", "gateway", "direct")
every_place = pytest.mark.parametrize("place", PLACES)
KEY = "trace-key-of-the-tests"

EVENT = """
    import hashlib, hmac, json

    def handle(event, context):
        said = {
            "signature": hmac.new(b"key", event.body, hashlib.sha256).hexdigest(),
            "method": event.method,
            "path": event.path,
            "query": event.query.to_dict(flat=False),
            "headers": dict(event.headers),
            "body": event.body.decode(errors="replace"),
            "host": context.hostname,
        }
        return {"statusCode": 200, "body": json.dumps(said)}
"""
REQUEST = """
    from flask import jsonify, request

    def handle(req):
        return jsonify(
            method=request.method,
            path=request.path,
            query=request.args.to_dict(flat=False),
            headers=dict(request.headers),
            cookies=request.cookies,
            remote=request.remote_addr,
            body=req,
        )
"""
ANSWERS = """
    from flask import Response, abort, after_this_request, make_response, redirect

    def handle(req):
        if req == "created":
            return "made", 201, {"Location": "/orders/7", "X-Rate": "9"}
        if req == "octets":
            return b"\\x89\\xff", {"Content-Type": "image/png"}
        if req == "redirect":
            return redirect("http://example.test/there")
        if req == "empty":
            return "", 204
        if req == "cookies":
            response = make_response("c")
            response.set_cookie("a", "1")
            response.set_cookie("b", "2")
            return response
        if req == "missing":
            return {"error": "no such order"}, 404
        if req == "aborted":
            abort(409, "taken")
        if req == "teapot":
            return Response("short", "299 As I Like It", mimetype="text/csv")
        if req == "broken":
            return "later", 503, {"Retry-After": "7"}
        if req == "said":
            return "fine"

        @after_this_request
        def mark(response):
            response.headers["X-After"] = "1"
            return response

        return "fine"
"""


STREAMS = """
    import time
    from pathlib import Path

    from flask import Response, request, stream_with_context

    def wait_for(name):
        while not Path(name).exists():
            time.sleep(0.01)

    def pieces(req):
        yield "begin\\n"
        wait_for("go-on")
        if req == "fails":
            raise ValueError("in the middle")
        if req == "dies":
            import os
            os.kill(os.getpid(), 9)
        yield "end\\n"

    def handle(req):
        if req == "yields":
            return pieces(req)
        if req == "fails-first":
            def none():
                raise ValueError("before all")
                yield ""
            return Response(none())
        if req == "many":
            return Response(("x" * 1000 for _ in range(20_000)), 201)
        if req == "context":
            return Response(stream_with_context(request.path for _ in "ab"))
        return Response(pieces(req), 203, {"X-A": "1"}, mimetype="text/event-stream")
"""
#: One function that does all that, as the path says.
FLASK = {
    "asks.py": REQUEST,
    "answers.py": ANSWERS,
    "streams.py": STREAMS,
    "handler.py": """
        import answers, asks, streams
        from flask import request

        def handle(req):
            module = {"/answers": answers, "/streams": streams}.get(request.path, asks)
            return module.handle(req)
    """,
}


@pytest.fixture(scope="module")
def serve(
    shared_start: Any, shared_image: Any, shared_gateway: Any, tmp_path_factory: Any
) -> Callable[..., Any]:
    """Starts wraps whose one task runs a handler at a place, once: the entry's server.

    Its answers wait for the file `go_on`.
    """
    secrets = tmp_path_factory.mktemp("secrets")
    (secrets / "chiron-direct").write_text("a secret of the tests")
    servers = dict[tuple[str, str], Any]()

    def serve(place: str, style: str = "flask") -> Any:
        if (place, style) not in servers:
            servers[place, style] = begin(place, style)
        server = servers[place, style]
        server.go_on.unlink(missing_ok=True)
        return server

    def begin(place: str, style: str) -> Any:
        handlers, styles = {"f": FLASK if style == "flask" else EVENT}, {"f": style}
        settings = {"chiron_trace_key": KEY, "HOSTNAME": "here"}
        if place in ("thread", "fork", "pool"):
            further = {} if place == "thread" else {"processes": [[], [0]], "mechanism": place}
            entry = {"output": 0, "styles": [style]}
            image = shared_image(handlers, styles=styles, entry=entry, **further)
            server = shared_start(image, **settings)
        else:
            settings["gateway_url"] = shared_gateway.url
            if place == "direct":
                settings["secrets_dir"] = str(secrets)
            names = f"test-near-{style}-{place}", f"test-far-{style}-{place}"
            others = {"inputs": {0: None}, "answers": 0, "remotes": {names[0]: {}}}
            image = shared_image(handlers, name=names[1], styles=styles, **others)
            entry = {"output": 0, "styles": [style], "remotes": {names[1]: {0: "f"}}}
            near = shared_image({}, [[]], name=names[0], tasks={}, entry=entry)
            shared_gateway.ports[names[1]] = shared_start(image, **settings).port
            server = shared_start(near, **settings)
        server.go_on = directory_of(image) / "go-on"
        return server

    return serve


@every_place
def test_an_event_has_the_callers_method_path_query_and_headers(place: str, serve: Any) -> None:
    """But those that waitress takes away from who is no trusted proxy: on the template too."""
    server = serve(place, "http")
    headers = {
        "X-Api-Key": "k",
        "Authorization": "Bearer t",
        "Cookie": "a=1; b=2",
        "Accept": "text/csv",
        "X-Call-Id": "0f6e-1",
        "X-Start-Time": "123",
        "X-Forwarded-For": "203.0.113.9",
        "X-Chiron-Alone": "1",
        "X-Chiron-Trace": "wrong",
    }
    for method in ("GET", "PUT", "PATCH", "DELETE", "POST"):
        body = "" if method == "GET" else "body"
        answer = server.request(method, "/orders/7%20x?a=1&b=2&a=3", body, **headers)
        said = answer.json
        assert (answer.status, said["method"], said["path"]) == (200, method, "/orders/7 x")
        assert said["query"] == {"a": ["1", "3"], "b": ["2"]}
        assert (said["body"], said["host"]) == (body, "here")
        assert {name: said["headers"].get(name) for name in headers} == {
            **headers,
            "X-Forwarded-For": None,
            "X-Chiron-Alone": None,
            "X-Chiron-Trace": None,
        }
    body = b'{"a":\xff}'  # a webhook's, which is no UTF-8: its signature is of the bytes
    signature = hmac.new(b"key", body, hashlib.sha256).hexdigest()
    assert server.request(body=body).json["signature"] == signature


@every_place
def test_flasks_request_is_the_callers(place: str, serve: Any) -> None:
    server = serve(place)
    answer = server.request("GET", "/a/b?x=1&x=2", Cookie="a=1; b=2", X_Api_Key="k")
    said = answer.json
    assert (said["method"], said["path"], said["body"]) == ("GET", "/a/b", "")
    assert (said["query"], said["cookies"]) == ({"x": ["1", "2"]}, {"a": "1", "b": "2"})
    assert (said["headers"]["X-Api-Key"], said["remote"]) == ("k", "127.0.0.1")


def test_methods_are_those_that_the_template_serves(serve: Any) -> None:
    server = serve("thread")
    assert server.request("PUT").status == 405
    options = server.request("OPTIONS", "/orders")
    allowed = set(options.headers["Allow"].split(", "))
    assert (options.status, allowed) == (200, {"GET", "HEAD", "OPTIONS", "POST"})


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_a_host_that_is_none_is_refused_as_by_the_template(host: str, serve: Any) -> None:
    assert serve("thread").request(Host=host).status == 400


def test_a_head_request_is_answered_without_body(serve: Any) -> None:
    answer = serve("fork").request("HEAD", "/x")
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 0


@pytest.mark.parametrize("processes", [[[0, 1]], [[0], [1]], [[], [0, 1]]])
def test_other_tasks_see_a_plain_request(
    processes: list[list[int]], start: Any, wrap_image: Any
) -> None:
    """The second one gets what the first one has answered, and the headers of neither."""
    handlers = {
        "first": 'def handle(req):\n    return req, 201, {"X-First": "1"}\n',
        "second": EVENT,
    }
    declared = {"inputs": {0: None, 1: 0}, "entry": {"output": 1}, "styles": {"second": "http"}}
    server = start(wrap_image(handlers, processes, **declared))
    said = server.request("GET", "/x?a=1", X_Api_Key="k").json
    assert (said["method"], said["path"], said["query"]) == ("POST", "/", {})
    assert not {"X-First", "X-Api-Key"} & set(said["headers"])


def raw(server: Any, body: str) -> tuple[int, str, list[tuple[str, str]], bytes]:
    """Status, reason, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("POST", "/answers", body)
        response = connection.getresponse()
        return response.status, response.reason, response.getheaders(), response.read()
    finally:
        connection.close()


@every_place
def test_the_last_tasks_answer_is_the_clients(place: str, serve: Any) -> None:
    server = serve(place)

    def ask(body: str) -> tuple[int, str, dict[str, str], bytes]:
        status, reason, headers, content = raw(server, body)
        return status, reason, dict(headers), content

    status, _, headers, body = ask("created")
    assert (status, body) == (201, b"made")
    assert (headers["Location"], headers["X-Rate"]) == ("/orders/7", "9")
    status, _, headers, _ = ask("redirect")
    assert (status, headers["Location"]) == (302, "http://example.test/there")
    status, _, headers, body = ask("empty")
    assert (status, body, "Content-Length" in headers) == (204, b"", False)
    cookies = [value for name, value in raw(server, "cookies")[2] if name == "Set-Cookie"]
    assert cookies == ["a=1; Path=/", "b=2; Path=/"]
    status, _, headers, body = ask("missing")
    assert (status, json.loads(body)) == (404, {"error": "no such order"})
    assert headers["Content-Type"] == "application/json"
    status, _, headers, body = ask("aborted")
    assert (status, b"taken" in body) == (409, True)
    status, reason, headers, body = ask("teapot")
    assert (status, reason, body) == (299, "As I Like It", b"short")
    assert headers["Content-Type"] == "text/csv; charset=utf-8"
    status, _, headers, body = ask("broken")
    assert (status, headers["Retry-After"], body) == (503, "7", b"later")
    status, _, headers, body = ask("anything")
    assert (status, headers["X-After"], body) == (200, "1", b"fine")
    assert headers["Content-Type"] == "text/html; charset=utf-8"


def test_an_answer_of_failure_is_no_failure_of_the_wrap(
    start: Any, wrap_image: Any, eventually: Any
) -> None:
    server = start(wrap_image({"f": ANSWERS}, [[], [0]], entry={"output": 0}))
    assert server.request(body="missing").status == 404
    counted = 'http_requests_total{code="404",method="post"} 1'
    assert eventually(lambda: counted in server.request("GET", "/metrics").text)
    assert 'error="status"' not in server.request("GET", "/metrics").text
    assert "no such order" not in server.log.read_text()


def test_a_task_that_is_not_the_last_fails_with_its_status(start: Any, wrap_image: Any) -> None:
    handlers = {"first": ANSWERS, "second": "def handle(req):\n    return req\n"}
    server = start(wrap_image(handlers, inputs={0: None, 1: 0}, entry={"output": 1}))
    answer = server.request(body="missing")
    assert (answer.status, answer.json["code"], answer.json["function"]) == (500, "status", "first")


def test_several_last_tasks_answer_a_list_with_200(start: Any, wrap_image: Any) -> None:
    handlers = {"a": ANSWERS, "b": ANSWERS}
    server = start(wrap_image(handlers, entry={"output": [0, 1]}))
    answer = server.request(body="created")
    assert (answer.status, answer.json) == (200, ["made", "made"])
    assert "Location" not in answer.headers
    assert answer.headers["Content-Type"] == "application/json"
    assert server.request(body="missing").json["code"] == "status"


def machine(**states: Any) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


def task(function: str, **fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": function, **(fields or {"End": True})}


@pytest.mark.parametrize("processes", [[[0, 1]], [[], [0, 1]]])
def test_a_state_machine_gives_the_request_as_it_came(
    processes: list[list[int]], start: Any, wrap_image: Any
) -> None:
    """To what gets it unchanged, however many states are before that."""
    handlers, styles = {"f": EVENT, "g": EVENT}, {"f": "http", "g": "http"}
    states = machine(
        Look={
            "Type": "Choice",
            "Choices": [{"Variable": "$.to", "StringEquals": "f", "Next": "F"}],
            "Default": "G",
        },
        F=task("f"),
        G=task("g", InputPath="$.inner", End=True),
    )
    entry = {"output": None, "machine": states, "states": {"F": 0, "G": 1}}
    image = wrap_image(handlers, processes, styles=styles, instances=2, entry=entry, inputs={})
    server = start(image)
    said = server.request("PUT", "/x?a=1", '{"to":   "f"}', X_Key="k").json
    assert (said["method"], said["path"], said["query"]) == ("PUT", "/x", {"a": ["1"]})
    assert (said["body"], said["headers"]["X-Key"]) == ('{"to":   "f"}', "k")
    said = server.request("PUT", "/x?a=1", '{"to": "g", "inner": {"b": 1}}', X_Key="k").json
    assert (said["method"], said["path"], said["query"]) == ("POST", "/", {})
    assert (said["body"], "X-Key" in said["headers"]) == ('{"b":1}', False)


def test_a_state_machine_answers_as_its_last_task_where_nothing_changes_that(
    start: Any, wrap_image: Any
) -> None:
    states = machine(
        Try=task(
            "f",
            Catch=[{"ErrorEquals": ["status"], "ResultPath": None, "Next": "Other"}],
            Next="End",
        ),
        End={"Type": "Succeed"},
        Other=task("g", ResultPath="$.was", End=True),
    )
    entry = {"output": None, "machine": states, "states": {"Try": 0, "Other": 1}}
    handlers = {"f": ANSWERS, "g": ANSWERS}
    server = start(wrap_image(handlers, instances=2, entry=entry, inputs={}))
    answer = server.request(body="created")
    assert (answer.status, answer.text, answer.headers["Location"]) == (201, "made", "/orders/7")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8", "as Flask says alone"
    answer = server.request(body="said")
    assert (answer.status, answer.text) == (200, "fine")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    answer = server.request(body="octets")
    assert (answer.body, answer.headers["Content-Type"]) == (b"\x89\xff", "image/png")
    answer = server.request(body="broken")  # both fail with it, and nothing catches the second
    assert (answer.status, answer.json["code"]) == (500, "status")


def test_an_event_can_be_copied() -> None:
    from wrap.functions.styles import Event
    from wrap.values.value import Object

    event = Event(Object("body"), {})
    vars(event)["user"] = "u"
    copied = copy.copy(event)
    assert (copied.body, copied.method, vars(copied)["user"]) == (b"body", "POST", "u")


@pytest.mark.parametrize("processes", [[[0, 1]], [[0], [1]]])
def test_the_next_task_gets_the_coding_of_an_answer(
    processes: list[list[int]], start: Any, wrap_image: Any
) -> None:
    zips = """
        import gzip
        from flask import Response
        def handle(req):
            return Response(gzip.compress(req.encode()), headers={"Content-Encoding": "gzip"})
    """
    unzips = """
        import gzip
        def handle(event, context):
            assert event.headers["Content-Encoding"] == "gzip"
            return gzip.decompress(event.body)
    """
    styles, handlers = {"unzips": "http"}, {"zips": zips, "unzips": unzips}
    inputs, entry = {0: None, 1: 0}, {"output": 1}
    image = wrap_image(handlers, processes, inputs=inputs, styles=styles, entry=entry)
    answer = start(image).request(body="text")
    assert (answer.text, answer.headers.get("Content-Encoding")) == ("text", None)


class Streaming:
    """A request to a wrap, whose answer is read as it comes."""

    def __init__(self, server: Any, body: str, method: str = "POST") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self._connection.request(method, "/streams", body)
        self.response = self._connection.getresponse()

    def __enter__(self) -> http.client.HTTPResponse:
        return self.response

    def __exit__(self, *_: object) -> None:
        self._connection.close()


#: Where an answer comes piece by piece.
STREAMING = ("thread", "fork", "pool", "direct")


def directory_of(image: Path) -> Path:
    """The working directory of the only function of a wrap."""
    return image / "function" / "functions" / "f"


@pytest.mark.parametrize("place", STREAMING)
def test_what_the_last_task_streams_comes_piece_by_piece(place: str, serve: Any) -> None:
    server = serve(place)
    with Streaming(server, "anything") as answer:
        assert (answer.status, answer.getheader("X-A")) == (203, "1")
        assert answer.getheader("Content-Type") == "text/event-stream; charset=utf-8"
        assert answer.getheader("Transfer-Encoding") == "chunked"
        assert answer.readline() == b"begin\n"  # although the task waits for us now
        server.go_on.touch()
        assert answer.read() == b"end\n"
    with Streaming(server, "yields") as answer:
        assert (answer.status, answer.read()) == (200, b"begin\nend\n")
        assert answer.getheader("Content-Type") == "text/html; charset=utf-8"
    with Streaming(server, "many") as answer:
        assert (answer.status, len(answer.read())) == (201, 20_000_000)
    with Streaming(server, "context") as answer:
        assert (answer.status, answer.read()) == (200, b"/streams/streams")


@pytest.mark.parametrize("place", STREAMING)
def test_a_stream_that_fails_cuts_the_connection(place: str, serve: Any) -> None:
    server = serve(place)
    with Streaming(server, "fails") as answer:
        assert (answer.status, answer.readline()) == (203, b"begin\n")
        server.go_on.touch()
        with pytest.raises(http.client.IncompleteRead):
            answer.read()
    with Streaming(server, "fails-first") as answer:
        assert (answer.status, json.loads(answer.read())["code"]) == (500, "raised")
    assert server.request(path="/streams", body="yields").text == "begin\nend\n"  # and others go on


@pytest.mark.parametrize("mechanism", ["fork", "pool"])
def test_a_task_that_has_begun_to_answer_does_not_begin_again(
    mechanism: str, wrap_image: Any, start: Any
) -> None:
    processes = {"processes": [[], [0]], "mechanism": mechanism, "attempts": 2}
    image = wrap_image({"f": STREAMS}, entry={"output": 0}, **processes)
    server = start(image)
    with Streaming(server, "dies") as answer:
        assert answer.readline() == b"begin\n"
        (directory_of(image) / "go-on").touch()
        with pytest.raises(http.client.IncompleteRead):
            answer.read()


@pytest.mark.parametrize("place", ["thread", "fork"])
def test_a_task_ends_whose_client_has_gone(place: str, serve: Any, eventually: Any) -> None:
    server = serve(place)
    with Streaming(server, "anything") as answer:
        assert answer.readline() == b"begin\n"
    server.go_on.touch()
    assert eventually(lambda: "chiron_requests_in_hand 0" in server.request("GET", "/metrics").text)
    assert server.request(path="/streams", body="yields").text == "begin\nend\n"


def test_a_traced_stream_and_one_without_body_come_whole(serve: Any) -> None:
    server = serve("fork")
    server.go_on.touch()
    traced = server.request(path="/streams", body="anything", X_Chiron_Trace=KEY).json
    assert traced["output"] == "begin\nend\n"
    with Streaming(server, "anything", "HEAD") as answer:
        assert (answer.status, answer.read()) == (203, b"")


def test_an_answer_that_no_server_could_send_fails_its_task(wrap_image: Any, start: Any) -> None:
    source = """
        def handle(req):
            status, name = {"name": (200, "bad header"), "status": (1000, "x-a")}[req]
            return "x", status, {name: "1"}
    """
    server = start(wrap_image({"f": source}, entry={"output": 0}))
    for given, said in (("name", "'bad header' is no name"), ("status", "1000 is no status")):
        told = server.request(body=given)
        assert (told.status, told.json["code"]) == (500, "bad-output")
        assert said in told.json["message"]
