"""The runner of plain handlers behaves as the python3-flask and python3-http templates do."""

from __future__ import annotations

import hashlib
import http.client
import itertools
import re
import socket
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest


def test_a_flask_handler_gets_bytes_if_it_asks_for_them(start: Any, plain_image: Any) -> None:
    image = plain_image("def handle(req):\n    return req + type(req).__name__.encode()\n")
    assert start(image, RAW_BODY="true").request(body=b"\xff").body == b"\xffbytes"


def test_a_request_that_comes_while_functions_are_imported_waits(
    start: Any, wrap_image: Any, in_background: Any, eventually: Any, free_port: int, tmp_path: Path
) -> None:
    """Kubernetes sends some as soon as the watchdog is there."""
    go_on = tmp_path / "go on"
    handler = (
        "import pathlib, time\n"
        f"while not pathlib.Path({str(go_on)!r}).exists():\n    time.sleep(0.01)\n"
        "def handle(req):\n    return 'answered ' + req\n"
    )
    image = wrap_image({"f": handler}, entry={"output": 0})
    server = in_background(start, image, port=str(free_port))

    def listens() -> bool:
        with socket.socket() as channel:
            return channel.connect_ex(("127.0.0.1", free_port)) == 0

    assert eventually(listens)
    connection = http.client.HTTPConnection("127.0.0.1", free_port, timeout=30)
    connection.request("POST", "/", b"x")
    go_on.touch()
    assert connection.getresponse().read() == b"answered x"
    server.result()


@pytest.mark.parametrize(
    ("handler", "settings", "said"),
    [
        ("x = 1\n", {}, "defines no handle()"),
        ("import nothing_of_the_kind\n", {}, "nothing_of_the_kind"),
        ("def handle(req): ...\n", {"handler_style": "cgi"}, "set it to flask, http, http-debian"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(
    handler: str, settings: dict[str, str], said: str, run_to_end: Any, plain_image: Any
) -> None:
    status, log = run_to_end(plain_image(handler), **settings)
    assert status == 1
    assert said in log and len(log.splitlines()) == 1


@pytest.mark.parametrize("runner", ["plain", "wrap"])
def test_there_is_no_application_at_import_as_on_the_template(
    runner: str, run_to_end: Any, plain_image: Any, wrap_image: Any
) -> None:
    handler = "import flask\nNAME = flask.current_app.name\ndef handle(req):\n    return NAME\n"
    plain = runner == "plain"
    image = plain_image(handler) if plain else wrap_image({"f": handler}, entry={"output": 0})
    status, log = run_to_end(image)
    assert status == 1
    assert "Working outside of application context" in log


def test_sigterm_lets_the_request_in_flight_finish(start, plain_image, eventually, in_background):
    image = plain_image(
        """
        import time
        from pathlib import Path

        def handle(req):
            Path("began").touch()
            time.sleep(0.5)
            return "done"
        """
    )
    server = start(image)
    answer = in_background(server.request)
    assert eventually((image / "began").exists)
    assert server.terminate() == 0
    assert answer.result(60).text == "done"


def test_a_large_answer_arrives_whole_where_it_is_read_slowly(start: Any, plain_image: Any) -> None:
    server = start(plain_image("def handle(req):\n    return req * 1_000_000\n"))
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        for body in (b"abcdefghij", b"x", b"0123456789"):  # over one connection, one by one
            head = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n" % len(body)
            connection.sendall(head + body)
            response = http.client.HTTPResponse(connection)
            response.begin()
            pieces = iter(partial(response.read, 50_000), b"")
            assert b"".join(pieces) == body * 1_000_000


def test_a_body_arrives_whole_in_whatever_pieces_it_comes(start: Any, plain_image: Any) -> None:
    handler = """
        import hashlib

        def handle(req):
            return hashlib.sha256(req.encode()).hexdigest()
    """
    server = start(plain_image(handler))
    for size in (65_535, 65_536, 700_000):
        bodies = [(b"%06d " % number * (size // 7 + 1))[:size] for number in (1, 2)]
        heads = [
            b"POST / HTTP/1.1\r\nHost: here\r\nConnection: %s\r\nContent-Length: %d\r\n\r\n"
            % (kept, size)
            for kept in (b"keep-alive", b"close")
        ]
        # The second request begins within the piece that ends the first.
        stream = memoryview(b"".join(head + body for head, body in zip(heads, bodies, strict=True)))
        lengths = itertools.cycle([200, 1, 9, 100_000, 3, 70_000, 5_000])
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while stream:
                length = next(lengths)
                connection.sendall(stream[:length])
                stream = stream[length:]
                time.sleep(0.002)
            answers = b"".join(iter(partial(connection.recv, 10_000), b""))
        found = [digest.decode() for digest in re.findall(rb"[0-9a-f]{64}", answers)]
        assert found == [hashlib.sha256(body).hexdigest() for body in bodies]


def test_nothing_follows_the_head_of_an_answer_in_pieces(start, plain_image):
    handler = "from flask import Response\ndef handle(req):\n    return Response(iter('ab'))\n"
    server = start(plain_image(handler))
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.partition(b"\r\n\r\n")[2] == b""
