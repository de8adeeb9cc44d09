"""What callers can make a replica hold, or wait for: it is bounded, and others are served on."""

from __future__ import annotations

import http.client
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20
ONE: dict[str, Any] = {"output": 0}
#: Answers so many bytes, with or without a body that asks for it; waits where it is told to, or
#: until there is a file `go`.
HANDLER = """
    import time
    from pathlib import Path

    def handle(req):
        word, _, number = req[:20].partition(" ")
        if word == "waits":
            Path(f"began-{number}").touch()
            time.sleep(float(number))
        while word == "holds" and not Path("go").exists():
            Path("began-holding").touch()
            time.sleep(0.01)
        return "x" * int(number) if word == "answers" else str(len(req))
"""
TCP_ESTABLISHED = 1

Replica = Callable[..., Any]


@pytest.fixture
def replica(
    request: Any, start: Any, plain_image: Any, wrap_image: Any, limit_descriptors: Any
) -> Replica:
    """Starts a replica that may take so many MiB, in its `directory`.

    It is a wrap unless a test has it be plain: that serves with the same modules.
    """

    def begin(mib: int = 4096, descriptors: int = 0, **settings: str) -> Any:
        plain = getattr(request, "param", "wrap") == "plain"
        image = plain_image(HANDLER) if plain else wrap_image({"one": HANDLER}, entry=ONE)
        if descriptors:
            limit_descriptors(image, descriptors)
        server = start(image, MEMORY_LIMIT_BYTES=str(mib * MIB), **settings)
        server.directory = image if plain else image / "function" / "functions" / "one"
        return server

    return begin


@pytest.fixture
def connect() -> Iterator[Callable[..., socket.socket]]:
    """Opens connections that end with the test."""
    with ExitStack() as stack:

        def open_one(server: Any, sends: bytes = b"", timeout: float = 60) -> socket.socket:
            address = ("127.0.0.1", server.port)
            connection = stack.enter_context(socket.create_connection(address, timeout))
            connection.sendall(sends)
            return connection

        yield open_one


def head(length: int, *fields: str) -> bytes:
    lines = ["POST / HTTP/1.1", "Host: here", f"Content-Length: {length}", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


def peak_mib(server: Any) -> float:
    """The most memory that it has had resident."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def answer(connection: socket.socket) -> tuple[int, str]:
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, response.read().decode()


def is_gone(connection: socket.socket) -> bool:
    """Whether the other end has closed it."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    return info[0] != TCP_ESTABLISHED


def serves(server: Any) -> bool:
    return server.request(body="abc").text == "3"


def test_a_body_that_has_only_been_promised_costs_nothing(replica: Replica, connect: Any) -> None:
    server = replica(256)
    before = peak_mib(server)
    for _ in range(8):
        connect(server, head(64 * MIB) + b"x")
    assert serves(server)
    assert peak_mib(server) - before < 32  # of 512


@pytest.mark.parametrize("replica", ["plain", "wrap"], indirect=True)
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.each_once
def test_bodies_that_stall_hold_no_more_than_their_share(replica, connect, chunked):
    server = replica(64)
    before = peak_mib(server)
    part, rest = head(8 * MIB) + bytes(6 * MIB), bytes(2 * MIB)
    if chunked:
        begin = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
        part, rest = begin + (b"%x\r\n" % MIB + bytes(MIB) + b"\r\n") * 8, b"0\r\n\r\n"
    stalled = [connect(server, part) for _ in range(8)]
    assert serves(server)
    assert peak_mib(server) - before < 2 * 16 + 8  # of 48 or 64; one that grows is copied
    for connection in stalled:
        connection.sendall(rest)
    answers = [answer(connection) for connection in stalled]
    statuses = [status for status, _ in answers]
    assert {200, 503} == set(statuses)
    assert all(str(16 * MIB) in text for status, text in answers if status == 503)
    assert server.request(body=bytes(8 * MIB)).text == str(8 * MIB)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_above_the_share_is_refused_with_the_figure(chunked: bool, replica: Replica) -> None:
    server = replica(64)
    before = peak_mib(server)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = bytes(17 * MIB)
    connection.request("POST", "/", iter([body]) if chunked else body, encode_chunked=chunked)
    response = connection.getresponse()
    assert response.status == 413
    assert str(16 * MIB) in response.read().decode()
    assert peak_mib(server) - before < 2 * 16 + 8  # one that grows is copied
    assert server.request(body=bytes(15 * MIB)).text == str(15 * MIB)


def test_heads_and_what_stands_between_chunks_are_bounded_and_the_number_of_chunks_is_not(
    replica: Replica, connect: Any
) -> None:
    server = replica()
    begin = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection = connect(server, begin)
    connection.sendall(b"1;" + b"x" * 100_000)
    assert answer(connection)[0] == 400
    connection = connect(server, begin + b"1\r\nx\r\n" * 200_000 + b"0\r\n\r\n")
    assert answer(connection) == (200, "200000")
    many = [f"A{n}: 1" for n in range(300)]
    assert answer(connect(server, head(0, *many)))[0] == 400
    assert answer(connect(server, head(0, "A: " + "x" * 70_000)))[0] == 431


def test_heads_that_stall_hold_no_more_than_their_share(replica, connect, eventually):
    server = replica(16)
    part = b"POST / HTTP/1.1\r\n" + b"".join(b"A%05d: %0250d\r\n" % (n, n) for n in range(220))
    stalled = [connect(server, part) for _ in range(200)]
    assert eventually(lambda: sum(map(is_gone, stalled)) >= 100)
    assert serves(server)


def test_silent_connections_take_no_more_than_half_of_the_descriptors(replica, connect, eventually):
    server = replica(descriptors=64)
    for _ in range(3):
        connections = [connect(server) for _ in range(100)]
        assert serves(server)
        assert server.descriptors() <= 64 - 16
        assert eventually(lambda c=connections: sum(map(is_gone, c)) >= 100 - 32)


def answers_a_newcomer(server: Any) -> bool:
    """Whether it answers; a connection that has said nothing for long gives way to others."""
    with suppress(ConnectionError):
        return serves(server)
    return False


def test_a_crowd_that_comes_again_and_again_keeps_nobody_out(replica, strangers_at, eventually):
    server = replica(descriptors=256)
    with strangers_at(("127.0.0.1", server.port)) as strangers:
        assert eventually(lambda: strangers.ended > strangers.many)
        for _ in range(5):
            assert eventually(lambda: answers_a_newcomer(server))
    assert "connection limit" not in server.log.read_text()


def test_what_comes_over_many_connections_at_once_holds_no_more_than_their_share(replica, connect):
    server = replica(mib=128)
    connections = [connect(server) for _ in range(600)]
    assert serves(server)
    server.process.send_signal(signal.SIGSTOP)  # the next turn finds all of it
    for each in connections:
        each.setblocking(False)
        each.send(head(200_001) + bytes(200_000))
    server.process.send_signal(signal.SIGCONT)
    assert serves(server)
    assert peak_mib(server) < 136  # 114, of 150 without a bound


def test_health_is_told_while_all_threads_are_busy(replica, in_background, eventually):
    server = replica(WAITRESS_THREADS="1")
    running = in_background(server.request, body="holds")
    assert eventually((server.directory / "began-holding").exists)
    assert server.request("GET", "/_/health").text == "OK"
    assert server.request("HEAD", "/_/health").status == 200
    assert not running.done()
    (server.directory / "go").touch()
    assert running.result(60).status == 200


def test_of_clients_that_have_gone_what_was_begun_goes_on_and_nothing_else_begins(
    replica: Replica, connect: Any, eventually: Any
) -> None:
    server = replica(WAITRESS_THREADS="1")
    gone = [connect(server, head(5) + b"holds")]
    assert eventually((server.directory / "began-holding").exists)
    gone += [connect(server, head(len(b)) + b) for b in (b"waits 0.01", b"waits 0.02")]
    assert server.request("GET", "/_/health").status == 200  # it has read what came before
    for connection in gone:
        connection.close()
    (server.directory / "go").touch()
    assert serves(server)
    assert not list(server.directory.glob("began-0*"))
    assert server.terminate() == 0


def test_a_plain_handler_s_exception_is_told_to_nobody_but_the_log(start, plain_image):
    server = start(plain_image("def handle(req):\n    raise ValueError('hunter2')\n"))
    answer = server.request()
    assert answer.status == 500
    assert "hunter2" not in answer.text and "ValueError" not in answer.text
    assert "hunter2" in server.log.read_text()


def test_a_lost_listener_ends_a_replica_that_has_inherited_it(start, plain_image, eventually):
    handler = "import os\ndef handle(req):\n    os.closerange(3, 5000)\n    return 'x'\n"
    server = start(plain_image(handler))
    with pytest.raises(OSError):
        server.request()
    assert server.process.wait(60) == 1
