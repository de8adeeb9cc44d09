"""The caller's request reaches the first task, and the last task's answer the caller.

What each kind of handler gets and may answer in each place is in `conformance`; here is what that
does not ask for, and wraps that call each other directly.
"""

from __future__ import annotations

import copy
import http.client
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

KEY = "trace-key-of-the-tests"

EVENT = """
    import json

    def handle(event, context):
        said = {
            "method": event.method,
            "path": event.path,
            "query": event.query.to_dict(flat=False),
            "headers": dict(event.headers),
            "body": event.body.decode("latin-1"),
        }
        return json.dumps(said), 201, [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
"""
ANSWERS = """
    def handle(req):
        if req == "created":
            return "made", 201, {"Location": "/orders/7", "X-Rate": "9"}
        if req == "octets":
            return b"\\x89\\xff", {"Content-Type": "image/png"}
        if req == "missing":
            return {"error": "no such order"}, 404
        if req == "broken":
            return "later", 503, {"Retry-After": "7"}
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


@pytest.fixture(scope="module")
def serve(
    shared_start: Any, shared_image: Any, shared_gateway: Any, tmp_path_factory: Any
) -> Callable[..., Any]:
    """Starts wraps whose one task runs a handler at a place, once: the entry's server.

    The place is a mechanism of the entry, or ``direct``: another wrap that is called directly. The
    server's answers wait for the file `go_on`.
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
        handlers, styles = {"f": STREAMS if style == "flask" else EVENT}, {"f": style}
        settings = {"chiron_trace_key": KEY}
        entry = {"output": 0, "styles": [style]}
        if place == "direct":
            settings |= {"gateway_url": shared_gateway.url, "secrets_dir": str(secrets)}
            near, far = f"test-near-{style}", f"test-far-{style}"
            others = {"inputs": {0: None}, "answers": 0, "remotes": {near: {}}}
            image = shared_image(handlers, name=far, styles=styles, **others)
            shared_gateway.ports[far] = shared_start(image, **settings).port
            entry["remotes"] = {far: {0: "f"}}
            home = shared_image({}, [[]], name=near, tasks={}, entry=entry)
            server = shared_start(home, **settings)
        else:
            further = {} if place == "thread" else {"processes": [[], [0]], "mechanism": place}
            image = shared_image(handlers, styles=styles, entry=entry, **further)
            server = shared_start(image, **settings)
        server.go_on = directory_of(image) / "go-on"
        return server

    return serve


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_a_host_that_is_none_is_refused_as_by_the_template(host: str, serve: Any) -> None:
    assert serve("thread").request(Host=host).status == 400


@pytest.mark.parametrize(
    ("method", "protocol", "status"),
    [("POST", "websocket", 400), ("GET", "WebSocket", 400), ("PUT", "websocket", 405)],
)
def test_a_websocket_is_refused_as_by_the_template(
    method: str, protocol: str, status: int, serve: Any
) -> None:
    ask = partial(serve("thread").request, body="context", Connection="Upgrade")
    assert ask(method=method, Upgrade=protocol).status == status
    assert ask(method="POST", Upgrade="h2c").status == 200


def test_a_direct_call_has_the_whole_request_and_its_answer(serve: Any) -> None:
    """But what waitress takes away from who is no trusted proxy, and what is for the wrap."""
    server = serve("direct", "http")
    hidden = {"X-Forwarded-For": "203.0.113.9", "X-Chiron-Alone": "1", "X-Chiron-Trace": "wrong"}
    headers = {"X-Api-Key": "k", "Authorization": "Bearer t", "Cookie": "a=1; b=2"}
    for method in ("GET", "PUT", "PATCH", "DELETE", "POST"):
        body = b"" if method == "GET" else b'{"a":\xff}'
        answer = server.request(method, "/orders/7%20x?a=1&b=2&a=3", body, **headers, **hidden)
        said = answer.json
        assert (answer.status, answer.headers["Set-Cookie"]) == (201, "b=2")  # the last of both
        assert (said["method"], said["path"]) == (method, "/orders/7 x")
        assert (said["query"], said["body"]) == (
            {"a": ["1", "3"], "b": ["2"]},
            body.decode("latin-1"),
        )
        assert headers.items() <= said["headers"].items()
        assert not hidden.keys() & said["headers"].keys()


def test_other_tasks_see_a_plain_request(start: Any, wrap_image: Any) -> None:
    """The second one gets what the first one has answered, and the headers of neither."""
    handlers = {
        "first": 'def handle(req):\n    return req, 201, {"X-First": "1"}\n',
        "second": EVENT,
    }
    declared = {"inputs": {0: None, 1: 0}, "entry": {"output": 1}, "styles": {"second": "http"}}
    server = start(wrap_image(handlers, [[0], [1]], **declared))
    said = server.request("GET", "/x?a=1", X_Api_Key="k").json
    assert (said["method"], said["path"], said["query"]) == ("POST", "/", {})
    assert not {"X-First", "X-Api-Key"} & set(said["headers"])


def test_an_answer_of_failure_is_no_failure_of_the_wrap(
    start: Any, wrap_image: Any, eventually: Any
) -> None:
    server = start(wrap_image({"f": ANSWERS}, [[], [0]], entry={"output": 0}))
    assert server.request(body="missing").status == 404
    counted = 'http_requests_total{code="404",method="post"} 1'
    assert eventually(lambda: counted in server.request("GET", "/metrics").text)
    assert 'error="status"' not in server.request("GET", "/metrics").text
    assert "no such order" not in server.log.read_text()


def test_several_last_tasks_answer_a_list_with_200_unless_one_fails(
    start: Any, wrap_image: Any
) -> None:
    handlers = {"a": ANSWERS, "b": ANSWERS, "c": "def handle(req):\n    return req\n"}
    server = start(wrap_image(handlers, inputs={0: None, 1: None, 2: 0}, entry={"output": [1, 2]}))
    answer = server.request(body="created")
    assert (answer.status, answer.json) == (200, ["made", "made"])
    assert "Location" not in answer.headers
    assert answer.headers["Content-Type"] == "application/json"
    assert server.request(body="missing").json["code"] == "status"


def machine(**states: Any) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


def task(function: str, **fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": function, **(fields or {"End": True})}


def test_a_state_machine_gives_the_request_as_it_came(start: Any, wrap_image: Any) -> None:
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
    processes = [[], [0, 1]]
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


def test_the_next_task_gets_the_coding_of_an_answer(start: Any, wrap_image: Any) -> None:
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
    image = wrap_image(handlers, [[0], [1]], inputs=inputs, styles=styles, entry=entry)
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


def directory_of(image: Path) -> Path:
    """The working directory of the only function of a wrap."""
    return image / "function" / "functions" / "f"


@pytest.mark.parametrize("place", ["thread", "fork", "direct"])
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


@pytest.mark.parametrize("place", ["thread", "fork", "direct"])
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


def test_a_task_that_has_begun_to_answer_does_not_begin_again(wrap_image: Any, start: Any) -> None:
    processes = {"processes": [[], [0]], "mechanism": "pool", "attempts": 2}
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


#: What a handler answers -> what is said of it.
UNSENDABLE = {
    "'x', 200, {'bad header': '1'}": "'bad header' is no name",
    "'x', 1000": "1000 is no status",
    "'x', 200, {'X-A': '€'}": "the header X-A has characters beyond Latin-1",
    "'x', 200, {'Content-Type': 'a/€'}": "the header Content-Type has characters beyond Latin-1",
    "Response('x', headers={'bad header': '1'})": "'bad header' is no name",
    "Response('x', status='299 €')": "the status has characters beyond Latin-1",
    "'x', 'ok'": "the status 'ok' has no number: answer 404, say",
}


def test_an_answer_that_no_server_could_send_fails_its_task(wrap_image: Any, start: Any) -> None:
    source = "from flask import Response\ndef handle(req):\n    return eval(req)\n"
    server = start(wrap_image({"f": source}, entry={"output": 0}))
    for given, said in UNSENDABLE.items():
        told = server.request(body=given)
        assert (told.status, told.json["code"]) == (500, "bad-output"), given
        assert said in told.json["message"]


def test_head_gets_the_length_that_a_response_gives(wrap_image: Any, start: Any) -> None:
    source = """
        from flask import Response
        def handle(req):
            return eval(req) if req else Response(headers={"Content-Length": "123"})
    """
    server = start(wrap_image({"f": source}, entry={"output": 0}))

    def length(method: str, body: str = "") -> tuple[int, bytes, str | None]:
        told = server.request(method, body=body)
        return told.status, told.body, told.headers.get("Content-Length")

    assert length("HEAD") == (200, b"", "123")
    assert length("GET") == (200, b"", "0"), "nothing follows"
    assert length("HEAD", "'', 200, {'Content-Length': '9'}") == (200, b"", "0"), "as in Flask"
    assert length("HEAD", "'text'") == (200, b"", "4")
    assert length("HEAD", "Response(status=204, headers={'Content-Length': '9'})")[2] is None
