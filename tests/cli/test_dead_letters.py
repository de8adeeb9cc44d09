"""Dead letters of a deployed workflow are shown, run again and deleted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from chiron.generator.annotations import PLANNER, ROLE, WORKFLOW
from chiron.workflow.tracing import KEY_ANNOTATION

LETTER = {"name": "17", "killed": 3, "bytes": 1200, "begins": ["[1, \x1b[2J]"]}


class Gateway(ThreadingHTTPServer):
    """Has one deployed workflow; notes what its wrap is asked, with which key."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked = list[tuple[str, str]]()
        self.status = 200


class Answers(BaseHTTPRequestHandler):
    server: Gateway

    def do_GET(self) -> None:
        functions = {
            "name": "ads",
            "image": "ads",
            "replicas": 1,
            "availableReplicas": 1,
            "annotations": {WORKFLOW: "ads", PLANNER: "pgp", ROLE: "entry", KEY_ANNOTATION: "key"},
        }
        provider = {"provider": "faasd", "orchestration": "containerd"}
        is_info = self.path.startswith("/system/info")
        self._send({"provider": provider} if is_info else [functions], 200)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        assert self.path == "/function/ads/_/dead-letters"
        self.server.asked.append((body, self.headers["X-Chiron-Trace"]))
        self._send([LETTER], self.server.status)

    def _send(self, value: object, status: int) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def url(gateway: Gateway) -> str:
    return f"http://127.0.0.1:{gateway.server_address[1]}"


def test_they_are_shown_and_their_escapes_are_escaped(chiron, gateway):
    result = chiron("dead-letters", "ads", "-g", url(gateway))
    assert result.status == 0, result.stderr
    assert "17" in result.stderr and "\x1b[2J" not in result.stderr
    assert chiron("dead-letters", "ads", "-g", url(gateway), "--json").json == [LETTER]
    assert gateway.asked == [("show", "key")] * 2


@pytest.mark.parametrize("verb", ["retry", "discard"])
def test_they_are_run_again_or_deleted(chiron, gateway, verb):
    result = chiron("dead-letters", "ads", "17", f"--{verb}", "-g", url(gateway))
    assert (result.status, gateway.asked[-1]) == (0, (f"{verb}\n17", "key"))


def test_what_is_none_is_an_error_and_nothing_is_done(chiron, gateway):
    result = chiron("dead-letters", "ads", "18", "--discard", "-g", url(gateway))
    assert result.status == 2 and "18" in result.error()
    assert gateway.asked == [("show", "key")]


def test_what_the_wrap_refuses_is_an_error(chiron, gateway):
    gateway.status = 404
    result = chiron("dead-letters", "ads", "-g", url(gateway))
    assert result.status == 1 and "404" in result.error()
