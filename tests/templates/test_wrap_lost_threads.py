"""Threads that never come back: so many and no more, and the wrap begins anew when it is idle."""

from __future__ import annotations

import http.client
import socket
from typing import Any

import psutil
import pytest

ONE: dict[str, Any] = {"output": 0}
#: A system call that does not return: nothing in Python ends its thread.
STUCK = """
    import os, time
    from pathlib import Path

    PIPE = os.pipe()
    BEGUN = time.monotonic()

    def handle(req):
        if req == "stuck":  # and spoils what the wrap begins anew with
            os.chdir("/")
            os.environ.clear()
            os.read(PIPE[0], 1)
        if req.startswith("waits"):
            Path("began").touch()
            time.sleep(float(req[6:]))
        return f"{os.getpid()} {BEGUN} {os.environ.get('HOME')}"
"""
BOUND = 64


@pytest.fixture
def lose(in_background: Any) -> Any:
    """Has so many requests lose their threads; gives the last answers."""

    def lose(server: Any, count: int) -> list[Any]:
        asked = [
            in_background(server.request, body="stuck", X_Chiron_Timeout="0.3")
            for _ in range(count)
        ]
        return [each.result(60) for each in asked]

    return lose


def test_lost_threads_are_bounded_and_the_wrap_begins_anew(
    start: Any, wrap_image: Any, lose: Any, in_background: Any, eventually: Any
) -> None:
    image = wrap_image({"one": STUCK}, entry=ONE, timeout_s=20.0)
    server = start(image, WAITRESS_THREADS="16")
    first = server.request().text
    kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    kept.request("POST", "/")
    assert kept.getresponse().read().decode() == first
    family = server.family()
    running = in_background(server.request, body="waits 6")  # until it ends, nothing begins anew
    assert eventually((image / "function/functions/one/began").exists)
    answers = []
    while not any(answer.status == 503 for answer in answers):
        assert not running.done()
        answers += lose(server, 16)
    refused = next(answer for answer in answers if answer.status == 503)
    assert (refused.json["code"], refused.json["function"]) == ("threads-lost", "one")
    assert "threads of one" in refused.json["message"]
    timeouts = [answer for answer in answers if answer.status == 504]
    assert BOUND - 1 <= len(timeouts) <= BOUND + 2 * 16  # and those that ran then
    assert server.request("GET", "/_/health").status == 200
    assert running.result(60).text.split()[:2] == first.split()[:2]  # it was in flight
    assert eventually(lambda: "begins anew" in server.log.read_text())
    kept.request("POST", "/")  # over the connection of before
    second = kept.getresponse().read().decode()
    assert second.split()[0] == first.split()[0] == str(server.process.pid)
    assert second != first and second.endswith(f" {image}")
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive
    assert server.threads() < BOUND
    assert server.request().text == second
    assert server.terminate() == 0


def test_processes_that_never_come_back_are_killed(
    start: Any, wrap_image: Any, lose: Any, eventually: Any
) -> None:
    image = wrap_image({"one": STUCK}, [[], [0]], mechanism="pool", entry=ONE)
    server = start(image, WAITRESS_THREADS="16", pool_concurrency="16")
    for _ in range(1 + BOUND // 16):
        assert {answer.status for answer in lose(server, 16)} == {504}
    assert server.threads() <= 2 + 2 * 16  # its own two, and to begin and to end what is at once
    assert server.request().status == 200
    assert eventually(lambda: len(server.family()) <= 1 + 16)


@pytest.mark.parametrize("inherited", [True, False])
def test_a_wrap_that_lost_its_listener_opens_it_again_or_ends(
    inherited: bool, start: Any, wrap_image: Any, eventually: Any
) -> None:
    closes = """
        import contextlib, os, socket

        def handle(req):
            for number in os.listdir("/proc/self/fd") if req == "closes" else ():
                with contextlib.suppress(OSError):
                    each = socket.socket(fileno=int(number))
                    if not each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        each.detach()
            return "x"
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    image = wrap_image({"one": closes}, entry=ONE)
    server = start(image, **({} if inherited else {"WRAP_HOST": "127.0.0.1", "port": port}))
    assert server.request(body="closes").status == 200
    if inherited:
        # Whoever has the socket starts another. What seems in flight may take its time before.
        assert server.process.wait(100) == 1
    else:
        assert eventually(lambda: answers(server))
        assert server.process.poll() is None


def answers(server: Any) -> bool:
    try:
        return server.request().text == "x"
    except OSError:
        return False
