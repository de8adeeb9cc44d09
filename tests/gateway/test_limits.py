"""Who sends too much, too slowly, or nothing at all is turned away; everybody else is served."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from unittest.mock import Mock
from urllib.parse import urlsplit

import aiohttp
import pytest
import requests

from chiron.gateway.embedded import EmbeddedGateway
from chiron.gateway.exchange import LARGEST_BYTES, StreamedBody
from chiron.gateway.registry import Function
from chiron.gateway.revision import backoff_s
from chiron.workflow.errors import ChironError

TIMEOUT_S = 60
SLOW = """
    import time

    def handle(request):
        print("entered", flush=True)
        time.sleep(0.3)
        return request.body
"""
BIG = """
    def handle(request):
        return "x" * (1 << 20) if request.path == "/big" else request.body
"""


def connect(url):
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), TIMEOUT_S)


def closed(connection):
    """Wait for the other end to close; what it said until then."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            said += piece
    return said


@pytest.fixture
def impatient(store):
    """A gateway that soon gives up on connections that do nothing."""
    with EmbeddedGateway(images=store.root, idle_timeout_s=0.5) as gateway:
        yield gateway


def deployed(gateway, name):
    body = {"service": name, "image": name}
    requests.post(f"{gateway.url}/system/functions", json=body, timeout=TIMEOUT_S)
    return f"{gateway.url}/function/{name}"


@pytest.mark.parametrize("sent", [b"", b"POST /function/f HTTP/1.1\r\nHost: g\r\nX-Slow: "])
def test_who_sends_no_whole_head_is_cut_off_and_the_others_are_answered(
    impatient, make_image, sent
):
    make_image("limits-others", SLOW)
    url = deployed(impatient, "limits-others")
    with connect(impatient.url) as loris:
        loris.sendall(sent)
        assert requests.post(url, "a", timeout=TIMEOUT_S).text == "a"
        closed(loris)
    assert requests.post(url, "b", timeout=TIMEOUT_S).text == "b"


def test_who_takes_no_answer_is_cut_off(impatient, make_image, wait_until):
    make_image("limits-big", BIG)
    url = deployed(impatient, "limits-big")
    assert requests.post(url, "ready", timeout=TIMEOUT_S).text == "ready"

    with connect(impatient.url) as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(8):
            silent.sendall(b"GET /function/limits-big/big HTTP/1.1\r\nHost: g\r\n\r\n")

        def cut_off():
            try:
                silent.sendall(b"GET / HTTP/1.1\r\nHost: g\r\n\r\n")
            except OSError:
                return True
            return bool(silent.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

        wait_until(cut_off)


def test_a_client_that_goes_away_in_the_middle_disturbs_nobody(deploy, gateway, wait_until):
    function = deploy(SLOW)
    function.post()
    head = f"POST /function/{function.name} HTTP/1.1\r\nHost: g\r\nContent-Length: 9\r\n\r\n"
    for sent in (head.encode(), head.encode() + b"half"):
        with connect(gateway.url) as leaving:
            leaving.sendall(sent)
    with connect(gateway.url) as leaving:
        leaving.sendall(head.encode() + b"the whole")
        wait_until(lambda: function.logs().count("entered") == 2)

    assert function.post("still here").text == "still here"


def test_a_body_that_is_too_large_is_413(deploy, gateway):
    function = deploy(BIG)
    with connect(gateway.url) as connection:
        head = f"POST /function/{function.name} HTTP/1.1\r\nHost: g\r\nContent-Length: "
        connection.sendall(f"{head}{LARGEST_BYTES + 1}\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")
    assert function.post("small").text == "small"


def test_a_body_in_pieces_is_broken_off_at_the_limit(monkeypatch):
    monkeypatch.setattr("chiron.gateway.exchange.LARGEST_BYTES", 8)

    async def read():
        source = aiohttp.StreamReader(Mock(), limit=8)
        source.feed_data(b"12345678")
        pieces = StreamedBody(source, 60, Mock())
        reading = aiter(pieces)
        assert await anext(reading) == b"12345678"
        source.feed_data(b"9")
        with pytest.raises(ChironError):
            await anext(reading)
        return pieces.refused

    assert asyncio.run(read()).status == 413


LARGE = {
    "length": b"Content-Length: 2097152\r\n\r\n",
    "chunked": b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
}


def stall(function, framing):
    """Begin a large body, and send no more of it."""
    connection = connect(function.gateway)
    head = f"POST /function/{function.name} HTTP/1.1\r\nHost: g\r\n"
    connection.sendall(head.encode() + LARGE[framing])
    return connection


@pytest.mark.parametrize("framing", LARGE)
def test_a_large_body_that_does_not_come_in_time_is_408_and_its_place_is_free_again(
    deploy, framing
):
    function = deploy(envVars={"read_timeout": "1s", "max_inflight": "1"})
    function.post()
    with stall(function, framing) as stalled:
        answer = stalled.recv(4096)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert function.name.encode() in answer
    assert function.post("next").text == "next"


def test_a_large_body_that_comes_slowly_but_in_time_passes_however_slowly_it_is_taken(deploy):
    function = deploy(
        """
        import time

        def handle(request):
            time.sleep(5)
            return str(len(request.body))
        """,
        envVars={"read_timeout": "4s"},
    )
    function.post()

    def slowly():
        for _ in range(4):
            time.sleep(0.1)
            yield b"x" * (1 << 19)

    assert function.post(slowly()).text == str(1 << 21)


def test_callers_that_stall_in_large_bodies_leave_room_for_others(deploy):
    function = deploy(envVars={"read_timeout": "100s", "exec_timeout": "100s"})
    function.post()
    with ExitStack() as stalled:
        for _ in range(120):
            stalled.enter_context(stall(function, "chunked"))
        assert function.post("small").text == "small"


def test_a_body_of_the_management_api_that_is_too_large_is_413(gateway):
    secret = {"name": "large", "value": "x" * (2 << 20)}
    answer = requests.post(f"{gateway.url}/system/secrets", json=secret, timeout=TIMEOUT_S)

    assert answer.status_code == 413


@pytest.mark.parametrize(
    "head",
    [
        {"X-Long": "x" * 10_000},
        {f"X-Header-{number}": "x" for number in range(200)},
    ],
    ids=["long", "many"],
)
def test_a_head_that_is_too_large_is_400(gateway, head):
    answer = requests.get(f"{gateway.url}/healthz", headers=head, timeout=TIMEOUT_S)

    assert answer.status_code == 400


def test_calls_above_what_a_function_takes_are_429(monkeypatch):
    monkeypatch.setattr("chiron.gateway.registry._MOST_CALLS", 1)
    function = Function("busy", Mock(), Mock(), Mock())

    with ExitStack() as calls:
        calls.enter_context(function.admit())
        with pytest.raises(ChironError, match="1 calls are running or waiting") as refusal:
            calls.enter_context(function.admit())
    assert refusal.value.status == 429
    with function.admit():
        pass  # as there is room again


ABANDONED = """
    import select

    def handle(request):
        if request.path != "/wait":
            return "answered"
        print("entered", flush=True)
        # What can be read now is the end of the connection.
        ready, _, _ = select.select([request.connection], [], [], 30)
        print("left" if ready else "not left", flush=True)
        return ""
"""


def abandon(function, wait_until, sent=""):
    """Begin a call, and hang up once the function has it."""
    before = function.logs().count("entered")
    with connect(function.gateway) as leaving:
        head = f"POST /function/{function.name}/wait HTTP/1.1\r\nHost: g\r\n"
        leaving.sendall(f"{head}Content-Length: {len(sent)}\r\n\r\n{sent}".encode())
        wait_until(lambda: function.logs().count("entered") > before)


def test_a_call_whose_caller_has_gone_is_given_up(deploy, wait_until):
    function = deploy(ABANDONED, envVars={"max_inflight": "1"})
    function.post()
    abandon(function, wait_until, "body")
    wait_until(lambda: "left" in function.logs())

    assert "not left" not in function.logs()
    assert function.post().text == "answered"  # and not 429
    metrics = requests.get(f"{function.gateway}/metrics", timeout=TIMEOUT_S).text
    gone = f'code="499",function_name="{function.name}.openfaas-fn"'
    assert f"gateway_function_invocation_total{{{gone}}} 1.0" in metrics


def test_a_call_whose_caller_has_gone_gives_up_its_place_in_every_queue(deploy, wait_until):
    function = deploy(
        """
        import time

        time.sleep(4)  # so long are calls waiting for a replica

        def handle(request):
            print("entered", flush=True)
            return ""
        """
    )
    for _ in range(3):
        with connect(function.gateway) as leaving:
            leaving.sendall(f"GET /function/{function.name} HTTP/1.1\r\nHost: g\r\n\r\n".encode())
    assert function.post().ok
    assert function.post().ok

    wait_until(lambda: function.logs().count("entered") >= 2)
    assert function.logs().count("entered") == 2


def status(url):
    return requests.get(f"{url}/healthz", timeout=TIMEOUT_S).status_code


def test_connections_above_what_descriptors_allow_are_503(store, wait_until):
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64));"
        "from chiron.gateway.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "--port", "0", "--images", str(store.root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = json.loads(process.stdout.readline())["url"]
        with ExitStack() as crowd:
            for _ in range(32):
                crowd.enter_context(connect(url))
            # Those that are accepted in one go are counted together.
            wait_until(lambda: status(url) == 503)
        wait_until(lambda: status(url) == 200)
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def test_the_gateway_takes_all_descriptors_it_may_have_and_functions_as_many_as_ever(
    deploy, gateway
):
    function = deploy("""
        import resource

        def handle(request):
            return str(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    """)
    soft, hard = resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE)

    assert soft == hard
    assert int(function.post().text) == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_a_function_killed_once_is_back_at_once_and_one_killed_again_and_again_backs_off(
    deploy, wait_until
):
    function = deploy("import os\ndef handle(request):\n    return str(os.getpid())\n")
    seen = set()
    for _ in range(6):
        answer = function.post()
        if answer.status_code != 200:
            break
        seen.add(answer.text)
        os.kill(int(answer.text), signal.SIGKILL)
        wait_until(lambda: function.logs().count("ended by SIGKILL") >= len(seen))

    assert "ended by SIGKILL; next start in 0 s" in function.logs()
    wait_until(lambda: "SIGKILL" in function.post().text or function.post().ok)
    assert "ended by SIGKILL; next start in 0.25 s" in function.logs()


def test_each_wait_before_a_start_is_twice_the_last_up_to_a_bound():
    waits = [backoff_s(failures) for failures in range(10)]

    assert waits[:4] == [0, 0.25, 0.5, 1.0]
    assert waits[-1] == 30.0
