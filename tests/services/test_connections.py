"""Connections that are many, silent, slow or without the secret: all others are served."""

from __future__ import annotations

import json
import resource
import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest
from waitress import wasyncore

from chiron.openfaas.credentials import Credentials
from chiron.services import connections
from chiron.services.connections import Server
from chiron.services.serve import listen
from tests.rows import each_row

TOKEN = "correct-horse-battery"  # noqa: S105
AUTHORISED = f"Authorization: Bearer {TOKEN}\r\n"
MIB = 1024 * 1024
#: Far above what an answer takes, far below what the crowd waits for.
SOON_S = 60


def head(length=None, more="", method="POST", path="/"):
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{size}{more}\r\n".encode()


class Application:
    """Answers how long the body was; to /large, 8 MiB. /wait it answers when it is let go."""

    def __init__(self):
        self.bodies = 0
        self.go = threading.Event()

    def __call__(self, environ, start_response):
        size = len(environ["wsgi.input"].read())
        self.bodies += size
        if environ["PATH_INFO"] == "/wait":
            self.go.wait(60)
        answer = bytes(8 * MIB) if environ["PATH_INFO"] == "/large" else str(size).encode()
        start_response("200 OK", [("Content-Length", str(len(answer)))])
        return [answer]


@pytest.fixture
def application():
    return Application()


@pytest.fixture
def server(application, monkeypatch):
    """A server in a thread, of which the bounds of bytes are small."""
    monkeypatch.setattr(connections, "_BODIES", 4 * MIB)
    monkeypatch.setattr(connections, "_HELD", 24 * MIB)
    listener = listen(port=0)
    server = Server(application, listener, Credentials.bearer(TOKEN))
    ended = threading.Event()
    thread = threading.Thread(target=server.run, args=(ended,))
    thread.start()
    yield server
    application.go.set()
    ended.set()
    server.pull_trigger()  # it looks now
    thread.join()
    wasyncore.close_all(server._map)


@pytest.fixture
def connect(server):
    """Connects, and sends something; all connections are closed after the test."""
    with ExitStack() as open_ones:

        def call(sent=b""):
            place = ("127.0.0.1", int(server.effective_port))
            client = open_ones.enter_context(socket.create_connection(place, SOON_S))
            client.sendall(sent)
            return client

        yield call


@pytest.fixture
def ask(connect):
    """The status, headers and body of the answer to what is sent."""
    return lambda sent: answer(connect(sent))


def answer(client):
    received = b""
    while piece := client.recv(MIB):
        received += piece
    lines, _, body = received.partition(b"\r\n\r\n")
    first, *headers = lines.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in headers), body


def silent(connect):
    connect()


def slow_head(connect):
    connect(head()[:20])


def slow_body(connect):
    connect(head(64 * MIB, AUTHORISED) + b"x")


def not_read(connect):
    client = connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sendall(head(more=AUTHORISED, method="GET"))


def kept(connect):
    client = connect(head(more=AUTHORISED, method="GET") + head(more=AUTHORISED)[:20])
    client.recv(1)


def test_beside_a_crowd_a_client_is_served(connect, ask):
    with descriptors(3 * 650 + 512):
        for other in (silent, slow_head, slow_body, not_read, kept):
            for _ in range(130):
                other(connect)
            assert ask(head(3, AUTHORISED) + b"abc")[0] == 200


@each_row("given", ["", "Authorization: Bearer wrong\r\n", "Expect: 100-continue\r\n"])
@each_row("length", [64 * MIB, 10**15, None])
def test_who_has_not_the_secret_is_refused_when_the_head_is_whole(ask, application, given, length):
    status, headers, body = ask(head(length, given))

    assert status == 401
    assert headers["Www-Authenticate"] == 'Basic realm="chiron"'  # the last of two
    assert json.loads(body)["code"] == "unauthorised"
    assert application.bodies == 0


def test_of_a_body_without_the_secret_nothing_is_held_and_the_refusal_arrives(connect, server):
    clients = [connect(head(2 * MIB)) for _ in range(8)]
    for client in clients:
        client.sendall(bytes(2 * MIB))

    assert server._held < MIB
    assert {answer(client)[0] for client in clients} == {401}


def test_bodies_are_held_up_to_a_bound_of_all_together(connect, ask, server, application):
    clients = [connect() for _ in range(8)]
    for client in clients:
        client.sendall(head(2 * MIB, AUTHORISED) + bytes(MIB + MIB // 2))

    def refusals():
        return [client for client in clients if says_something(client)]

    assert eventually(lambda: len(refusals()) >= 4)
    refused = refusals()
    assert server._held <= 4 * MIB
    for client in refused:
        status, headers, body = answer(client)
        assert (status, headers["Retry-After"], json.loads(body)["code"]) == (429, "5", "busy")
    assert ask(head(more=AUTHORISED, method="GET"))[0] == 200


def test_what_was_held_is_given_back_when_it_is_answered_and_when_it_is_gone(
    connect, ask, server, application
):
    for _ in range(8):
        assert ask(head(2 * MIB, AUTHORISED) + bytes(2 * MIB))[0] == 200
        connect(head(2 * MIB, AUTHORISED) + bytes(MIB)).close()
    waiting = connect(head(2 * MIB, AUTHORISED, path="/wait") + bytes(2 * MIB))
    waiting.close()
    application.go.set()

    assert eventually(lambda: server._held == 0)
    assert ask(head(2 * MIB, AUTHORISED) + bytes(2 * MIB))[2] == str(2 * MIB).encode()


def test_answers_that_are_not_read_keep_no_thread_and_are_bounded(connect, ask, server):
    for _ in range(20):  # more than there are threads
        client = connect()
        client.sendall(head(more=AUTHORISED, method="GET", path="/large"))

    assert ask(head(more=AUTHORISED, method="GET"))[0] == 200
    assert server._held <= 24 * MIB


@pytest.mark.parametrize("state", ["head", "transfer"])
def test_who_is_slower_than_may_be_is_closed_however_often_a_byte_comes(
    connect, server, monkeypatch, state
):
    monkeypatch.setattr(connections, "_HEAD_S", 1.0 if state == "head" else 60.0)
    monkeypatch.setattr(connections, "_TRANSFER_S", 1.0)
    sent = head(MIB, AUTHORISED)
    client = connect(sent[:5] if state == "head" else sent)

    with pytest.raises(OSError):
        for byte in sent[5:] * 10:
            client.sendall(bytes([byte]))
            time.sleep(0.1)


def test_where_room_is_short_slow_bodies_give_way(connect, ask, server, monkeypatch):
    monkeypatch.setattr(connections, "_CROWDED_S", 1.0)
    slow = [connect(head(4 * MIB, AUTHORISED) + bytes(4 * MIB - 9)) for _ in range(2)]

    assert eventually(lambda: ask(head(MIB, AUTHORISED) + bytes(MIB))[0] == 200)
    assert len(slow) == 2


def test_a_body_without_a_length_is_refused(ask):
    chunked = head(more=f"{AUTHORISED}Transfer-Encoding: chunked\r\n")

    status, _, body = ask(chunked + b"1\r\nx\r\n0\r\n\r\n")

    assert (status, json.loads(body)["code"]) == (411, "length-required")


def test_a_connection_is_for_one_request(ask, application):
    status, headers, body = ask((head(3, AUTHORISED) + b"abc") * 100)

    assert (status, headers["Connection"], body) == (200, "close", b"3")
    assert application.bodies == 3


def test_more_requests_than_may_wait_are_refused_at_once(connect, ask, server, monkeypatch):
    monkeypatch.setattr(connections, "_CONNECTIONS", 4)
    dispatcher, wait = server.task_dispatcher, head(more=AUTHORISED, method="GET", path="/wait")
    for busy in range(1, 8 + 1):  # as many as there are threads
        connect(wait)
        assert eventually(lambda busy=busy: dispatcher.active_count == busy)
    for _ in range(4):  # as many as may wait
        connect(wait)
    assert eventually(lambda: len(dispatcher.queue) == 4)

    status, _, body = ask(head(more=AUTHORISED, method="GET"))

    assert (status, json.loads(body)["code"]) == (429, "busy")


@each_row(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (head(more=f"Content-Length: 1, 1\r\n{AUTHORISED}"), 400),
        (head(more=f"X: {'x' * 20_000}\r\n{AUTHORISED}"), 431),
        (head(65 * MIB, AUTHORISED), 413),
        (head(more=f"Transfer-Encoding: gzip\r\n{AUTHORISED}"), 501),
    ],
)
def test_what_the_server_refuses_has_the_form_of_all_errors(ask, sent, status):
    found, headers, body = ask(sent)

    assert (found, headers["Content-Type"]) == (status, "application/json")
    assert set(json.loads(body)) == {"code", "message", "path", "functions"}
    assert "\n" not in json.loads(body)["message"]


def test_a_body_is_let_on_and_arrives(connect):
    client = connect(head(3, f"{AUTHORISED}Expect: 100-continue\r\n"))
    assert client.recv(100).startswith(b"HTTP/1.1 100")
    client.sendall(b"abc")

    assert answer(client)[2] == b"3"


def says_something(client):
    """Whether an answer comes, soon; it stays to be read."""
    client.settimeout(0.05)
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    finally:
        client.settimeout(SOON_S)


def eventually(condition):
    deadline = time.monotonic() + SOON_S
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@contextmanager
def descriptors(wanted):
    """As many as the test needs, for both ends of each connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, hard)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_connection_that_broke_as_its_answer_was_sent_is_closed_once_more_without_a_fault(
    server, connect, wait_until
):
    connect()
    there = connections._Connection
    (channel,) = wait_until(lambda: [c for c in server._map.values() if isinstance(c, there)])
    channel.handle_close()
    channel.will_close = True
    channel.handle_close()
    assert channel.socket is None
