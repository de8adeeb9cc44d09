"""What crosses the borders of a wrap: requests, other wraps' calls, handler styles, timelines."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chiron.workflow.timeline import Timeline, Traced

ECHO = "def handle(req):\n    return req\n"
ONE: dict[str, Any] = {"output": 0}
IN_CLUSTER = "http://gateway.openfaas:8080"


@pytest.mark.parametrize(
    ("hosts", "url"),
    [
        ("127.0.0.1\tlocalhost\n10.62.0.5\tgateway prometheus\n", "http://gateway:8080"),
        ("127.0.0.1 localhost gateway.example\n# 10.62.0.5 gateway\n", IN_CLUSTER),
        (None, IN_CLUSTER),
    ],
)
def test_a_wrap_that_is_not_told_knows_where_the_gateway_is(
    hosts: str | None, url: str, tmp_path: Path
) -> None:
    from wrap.config.settings import gateway_url

    if hosts is not None:
        (tmp_path / "hosts").write_text(hosts)
    assert gateway_url(tmp_path / "hosts") == url


def test_a_request_that_there_is_no_memory_for_is_refused_with_the_figure_where_it_is_known(
    start: Any, wrap_image: Any
) -> None:
    image = wrap_image({"one": ECHO}, entry=ONE)
    sized = start(image, WRAP_MEMORY_MIB="112", WRAP_REQUEST_BYTES="1000")
    answer = sized.request(body="x" * 8_653_179)
    assert (answer.status, answer.json["code"]) == (413, "too-large")
    (most,) = re.findall(r"there is memory for (\d+) here", answer.json["message"])
    assert 1_000_000 < int(most) < 4_000_000  # which killed a wrap of that size
    mend = "or put a payload of that size into payloads/ and deploy again"
    assert mend in answer.json["message"]
    assert mend in sized.request(body="x" * 32_000_000).text  # refused before it is read
    assert sized.request(body="x" * int(most)).status == 200
    assert sized.request(body="x" * (int(most) + 1)).status == 413
    unknown = start(image, WRAP_MEMORY_MIB="112")
    assert unknown.request(body="x" * 10_000_000).status == 200


def test_handlers_find_the_gateway_too(start: Any, wrap_image: Any) -> None:
    handler = "import os\nAT = os.environ['gateway_url']\ndef handle(req):\n    return AT\n"
    handlers = {"one": handler, "two": handler}
    image = wrap_image(handlers, [[0], [1]], entry={"output": [0, 1]})
    assert start(image).request(body="x").json == [IN_CLUSTER] * 2
    assert start(image, gateway_url="http://mine").request(body="x").json == ["http://mine"] * 2


def test_a_handler_that_imports_flask_in_its_first_run_finds_the_request(
    start: Any, wrap_image: Any
) -> None:
    handler = """
        def handle(req):
            from flask import request
            return request.get_data()
    """
    server = start(wrap_image({"f": handler}, tasks={0: "f"}, entry={"output": 0}))
    assert server.request(body="first").text == "first"


def test_a_wrap_tells_its_name_and_what_it_does_not_answer(start: Any, wrap_image: Any) -> None:
    server = start(wrap_image({"echo": ECHO}, name="test-wrap1-v2"))
    assert server.request("GET", "/_/wrap").text == "test-wrap1-v2"
    answer = server.request()
    assert (answer.status, answer.json["code"]) == (400, "not-an-entry")
    for body in (b"", b"\xff\xff\xff\xff", b"\0\0\0\2{}", b"\0\0\0\2[]"):
        answer = server.request(body=body, X_Chiron_Call="1")
        assert (answer.status, answer.json["code"]) == (400, "bad-frames"), body


def test_a_wrap_of_another_plan_is_noticed(start: Any, wrap_image: Any, gateway: Any) -> None:
    entry = {"output": 0, "remotes": {"test-wrap2": {0: "echo", 1: "echo"}}}
    server = start(wrap_image({}, entry=entry), gateway_url=gateway.url)
    gateway.ports["test-wrap2"] = start(wrap_image({"echo": ECHO}, name="test-wrap2")).port
    assert server.request().json["code"] == "other-plan"


def test_another_wrap_gets_the_outputs_that_it_wants(start: Any, wrap_image: Any) -> None:
    from wrap.net.framing import pieces, split
    from wrap.net.messages import Ident, Request, Result
    from wrap.values.value import Object

    handlers = {"one": ECHO, "other": ECHO}
    server = start(wrap_image(handlers, [[1], [0]], inputs={0: None, 1: 0}))
    asked = Request(Ident(), [0, 1], {None: Object("x")}, frozenset({1}))
    answer = server.request(body=b"".join(pieces(asked.frames())), X_Chiron_Call="1")
    _, *results = split(answer.body)
    first, second = Result.read(results)
    assert (first.task, first.output, second.task) == (0, None, 1)
    assert second.output.text() == "x"


def test_a_traced_request_tells_what_ran_when(start: Any, wrap_image: Any, gateway: Any) -> None:
    sleeper = "import time\ndef handle(req):\n    time.sleep(0.05)\n    return req\n"
    entry = {"output": [0, 1, 2], "remotes": {"test-wrap2": {3: "far"}}}
    handlers = {"one": sleeper, "two": sleeper, "three": sleeper}
    names = {1: "second", 3: "a far one"}
    image = wrap_image(handlers, [[0], [1, 2]], entry=entry, task_names=names)
    server = start(image, gateway_url=gateway.url, chiron_trace_key="key")
    remote = wrap_image({"far": sleeper}, [[], [3]], tasks={3: "far"}, name="test-wrap2")
    gateway.ports["test-wrap2"] = start(remote, chiron_trace_key="key").port
    began = time.monotonic()
    answer = server.request(body="1", X_Chiron_Trace="key")
    whole_ms = (time.monotonic() - began) * 1000
    traced = Traced.model_validate_json(json.dumps(answer.json))
    assert traced.output == "[1,1,1]"
    timeline = traced.timeline
    spans = [(s.wrap, s.process, s.task, s.function, s.kind) for s in timeline.spans]
    assert sorted(spans, key=str) == sorted(
        [
            ("test-wrap1", 0, "one", "one", "task"),
            ("test-wrap1", 1, None, None, "start"),
            ("test-wrap1", 1, "second", "two", "task"),
            ("test-wrap1", 1, "three", "three", "task"),
            ("test-wrap2", None, "a far one", "far", "transfer"),
            ("test-wrap2", 1, None, None, "start"),
            ("test-wrap2", 1, "a far one", "far", "task"),
        ],
        key=str,
    )
    assert timeline.latency_ms <= whole_ms
    for span in timeline.spans:
        assert 0 <= span.start_ms <= span.end_ms <= timeline.latency_ms
        assert span.kind != "task" or (span.duration_ms >= 49 and span.cpu_ms is not None)


FAILS = """
    import time

    def handle(req):
        time.sleep(0.02)
        if req == "raised":
            raise ValueError("no")
        if req == "exited":
            raise SystemExit(3)
        return "no", 404
"""


@pytest.mark.parametrize("processes", [[[0]], [[], [0]]])
def test_a_traced_request_that_fails_tells_until_when_its_task_ran(
    processes: list[list[int]], start: Any, wrap_image: Any
) -> None:
    image = wrap_image({"fails": FAILS}, processes, entry={"output": 0})
    server = start(image, chiron_trace_key="key")
    asked = {"": "raised", "probe": "raised", "cpu-speed": "exited", "state": "status"}
    asked |= {"memory": "exited"} if len(processes) > 1 else {}
    for beside, code in asked.items():
        answer = server.request(body=code, X_Chiron_Trace=" ".join(filter(None, ("key", beside))))
        assert (answer.status, answer.json["code"]) == (500, code)
        timeline = Timeline.model_validate_json(json.dumps(answer.json["timeline"]))
        (run,) = timeline.tasks
        assert run.duration_ms >= 20 and run.cpu_ms is not None and code in (run.error or code)
        seen = {
            "probe": run.ticks,
            "cpu-speed": run.cpu_probe_ms,
            "state": run.changes,
            "memory": run.own_mib,
        }
        found = {name for name, each in seen.items() if each is not None}
        assert found == {*filter(None, [beside])}
        assert "timeline" not in server.request(body=code).text


def test_concurrent_requests_do_not_mix(start: Any, wrap_image: Any, in_background: Any) -> None:
    handlers = dict.fromkeys(("one", "two", "three"), ECHO)
    declared = {"inputs": {0: None, 1: None, 2: [0, 1]}, "entry": {"output": 2}}
    image = wrap_image(handlers, [[0], [1, 2]], mechanism="pool", **declared)
    server = start(image, pool_concurrency="2", WAITRESS_THREADS="8")
    answers = {n: in_background(server.request, body=str(n)) for n in range(200)}
    for number, answer in answers.items():
        assert answer.result(60).json == [number, number]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tasks": {0: "other"}}, "function 'other' is not declared"),
        ({"processes": [[0], [0]]}, "exactly one process"),
        ({"processes": [[]]}, "exactly one process"),
        ({"processes": [], "tasks": {}}, "no main process"),
        ({"timeout_s": 0}, "above 0"),
        ({"timeout_s": 1e300}, "timeout_s is 1e\\+300, but may be 1814400 at most"),
        ({"functions": {"../echo": "flask", "echo": "flask"}}, "not a function's name"),
        ({"inputs": {0: None, 1: None}}, "not those of the tasks that run here"),
        ({"inputs": {0: 0}}, "needs task 0, which it does not await"),
        ({"buckets": [([0], [0])]}, "some do not run before"),
        ({"buckets": []}, "exactly one bucket"),
        ({"buckets": [([], [0]), ([], [0])]}, "exactly one bucket"),
        ({"entry": {"output": 7}}, "which nothing runs"),
        ({"remotes": {"test-wrap2": {1: "far"}}}, "not those of the tasks"),
        ({"attempts": 0}, "at least 1"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(
    changes: dict[str, Any], said: str
) -> None:
    from wrap.core.wrap_spec import Entry, Wrap

    fields: dict[str, Any] = {
        "workflow": "test",
        "name": "test-wrap1",
        "mechanism": "fork",
        "functions": {"echo": "flask"},
        "tasks": {0: "echo"},
        "processes": [[0]],
        "inputs": {0: None},
        "buckets": [([], [0])],
        "timeout_s": 1.0,
        "entry": {"output": 0},
    }
    changed = fields | changes
    with pytest.raises(ValueError, match=said):
        Wrap(**changed | {"entry": Entry(**changed["entry"])})


@given(st.lists(st.binary(max_size=40) | st.text(max_size=40)), st.integers(1, 50))
@example([b"", b"x" * 200_000, b"y", b"z" * 70_000], 1000)
@example([b"x" * 200_000, b"y" * 200_000], 65_000)
@example(["x" * 700_000, "y", "\x7f" * 70_000, "\x80" * 70_000, b"z"], 65_000)
def test_frames_arrive_whole_whatever_pieces_they_come_in(
    given: list[bytes | str], size: int
) -> None:
    from wrap.net.framing import Inflow, length, pieces, split, unsent

    sent = [each.encode() if isinstance(each, str) else each for each in given]
    frames = [unsent(each) if isinstance(each, str) else each for each in given]
    body = b"".join(pieces(frames))
    assert length(frames) == len(body)
    inflow, found = Inflow(), []
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            for start in range(0, len(body), size):
                theirs.sendall(body[start : start + size])
                found += inflow.receive(ours)
        while (more := inflow.receive(ours)) is not None:
            found += more
    assert found == sent
    assert split(body) == sent


def test_frames_leave_whole_whatever_the_socket_takes() -> None:
    from wrap.net.framing import Outflow, pieces

    jobs = [["head", "x" * 700_000], ["y"], ["z" * 300_000, b"\xff" * 100_000]]
    outflow, found = Outflow(), b""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        for frames in jobs:
            outflow.push(frames)
            outflow.flush(ours)
        while outflow:
            found += theirs.recv(30_000)
            outflow.flush(ours)
        ours.close()
        while piece := theirs.recv(30_000):
            found += piece
        assert found == b"".join(piece for frames in jobs for piece in pieces(frames))


def test_a_body_that_breaks_off_is_noticed() -> None:
    from wrap.net.framing import pieces, split

    first = b"".join(pieces([b"one"]))
    body = b"".join(pieces([b"one", json.dumps({}).encode()]))
    for end in range(1, len(body)):
        if end != len(first):
            with pytest.raises(ValueError, match="ends within a frame"):
                split(body[:end])


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize(
    ("text", "json_it_is"),
    [('{"a": "%s"}', True), (' ["%s"]\n', True), ('"%s"', True), ("%s", False), ("{%s", False)],
)
def test_an_answer_is_called_json_where_it_is_however_long(size, text, json_it_is) -> None:
    from wrap.values.value import Object

    answer = text % ("x" * size)
    for value in (answer, answer.encode()):
        assert (Object(value).answer_type() == "application/json") is json_it_is


@pytest.mark.parametrize("share_from", [None, 1 << 17])
def test_a_frame_takes_memory_as_it_comes_and_has_a_bound(share_from: int | None) -> None:
    from wrap.net.framing import Inflow

    process = psutil.Process()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        inflow = Inflow(512 << 20, share_from)
        before = process.memory_info().rss
        theirs.sendall((512 << 20).to_bytes(4, "big") + b"x" * 70_000)
        while theirs_left := len(ours.recv(1 << 20, socket.MSG_PEEK)):
            assert inflow.receive(ours) == [], theirs_left
            ours.setblocking(False)
            try:
                ours.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                break
        assert process.memory_info().rss - before < 16 << 20
        theirs.sendall(b"x" * 1000)
        with pytest.raises(ValueError, match="above"):
            Inflow(999, share_from)._feed((1000).to_bytes(4, "big"))


def test_a_process_that_writes_garbage_costs_its_request_alone(start: Any, wrap_image: Any) -> None:
    garbage = """
        import contextlib, os, socket

        def handle(req):
            for number in range(3, 100) if req == "garbage" else ():
                with contextlib.suppress(OSError):
                    each = socket.socket(fileno=number)
                    each.send(b"\\x3f\\xff\\xff\\xff" + b"x" * 100)
                    each.detach()
            return req
    """
    image = wrap_image({"one": garbage}, [[], [0]], mechanism="pool", entry=ONE)
    server = start(image, WRAP_MEMORY_MIB="256")
    answer = server.request(body="garbage")
    assert (answer.status, answer.json["code"]) == (500, "process-died")
    assert str(64 << 20) in answer.json["message"]
    assert psutil.Process(server.process.pid).memory_info().rss < 100 << 20
    assert server.request(body="again").text == "again"


@pytest.mark.parametrize("place", [[[0]], [[], [0]]], ids=["main", "further"])
def test_what_is_told_of_an_error_has_no_secret_in_it(
    place: list[list[int]], start: Any, wrap_image: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "key").write_text("hunter2\n")
    (folder / "pin").write_text("123")
    (folder / "lines").write_text('first line\'s "quotes"\nsecond\\line\n')
    handler = """
        import os, sys
        from pathlib import Path

        def handle(req):
            name, how = req.split()
            secret = (Path(os.environ["secrets_dir"]) / name).read_text().rstrip()
            if how == "raises":
                raise KeyError(secret)
            if how == "far":
                raise ValueError("x" * 997 + secret)
            if how == "exits":
                sys.exit(secret)
            if how == "answers":
                return f"no such key: {secret}", 401
            return secret
    """
    image = wrap_image({"one": handler}, place, entry=ONE, answers=None)
    server = start(image, secrets_dir=str(folder))
    for how in ("raises", "far", "exits", "answers"):
        for name, parts in {"key": ["hun"], "lines": ["quotes", "line"]}.items():
            answer = server.request(body=f"{name} {how}")
            assert answer.status == 500
            assert not any(part in answer.text for part in parts)
    assert "KeyError: '[secret]'" in server.request(body="key raises").text
    told = server.request(body="pin raises").json["message"]
    assert told.startswith("KeyError: '123' (handler.py:")
    assert server.request(body="key gives").text == "hunter2"  # what it answers is its own affair
    assert "hunter2" in server.log.read_text()
