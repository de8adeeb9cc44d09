"""What goes wrong in a function stays in that function, and is said."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import aiohttp
import pytest
import requests
from multidict import CIMultiDict

from chiron.gateway import processes
from chiron.gateway.embedded import EmbeddedGateway
from chiron.gateway.exchange import OutgoingRequest, exchange
from chiron.gateway.process_backend import Launcher
from chiron.gateway.registry import Function
from chiron.gateway.replica import Replica
from chiron.workflow.errors import ChironError

CRASHER = """
    import os

    def handle(request):
        if request.path == "/crash":
            os._exit(3)
        return str(os.getpid())
"""


def test_a_function_that_dies_at_once_says_why(deploy, wait_until):
    function = deploy("""
        print("about to fail")
        raise RuntimeError("no database")
        handle = None
    """)
    answer = function.post()
    assert answer.status_code == 503
    assert "exited with status 1" in answer.text
    assert "availableReplicas" not in function.describe()
    wait_until(lambda: "no database" in function.logs())
    assert "about to fail" in function.logs()
    wait_until(lambda: "next start in" in function.logs())


def test_a_function_that_crashes_fails_that_request_and_serves_the_next(deploy, wait_until):
    function = deploy(CRASHER)
    before = function.post().text
    crashed = function.post(path="/crash")
    assert (crashed.status_code, crashed.text.strip().endswith("exited with status 3")) == (
        502,
        True,
    )
    after = function.post()
    assert after.status_code == 200
    assert after.text != before
    wait_until(lambda: "exited with status 3" in function.logs())


def test_a_call_that_takes_a_function_above_its_memory_limit_is_told_so(deploy):
    function = deploy(
        """
        import time

        def handle(request):
            hog = bytearray(200 << 20)
            time.sleep(60)
        """,
        limits={"memory": "100Mi"},
    )
    answer = function.post()
    assert answer.status_code == 502
    assert re.search(r"it used \d+ MiB, above its memory limit of 100 MiB", answer.text)


def test_a_process_that_the_kernel_kills_for_memory_is_told_from_others(monkeypatch):
    async def faults(kills: list[int]) -> list[str | None]:
        monkeypatch.setattr(processes, "killed_for_memory", lambda: kills.pop(0))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs, socket.create_server(("127.0.0.1", 0)) as listener:
            launcher = Launcher(ours, Mock(), Path(), lambda: None)
            asyncio.get_running_loop().add_reader(ours, launcher.receive)
            children = [launcher.start({"command": ["true"]}, listener, 1) for _ in range(2)]
            for child in children:
                theirs.send(json.dumps({"id": child.ident, "exit": -signal.SIGKILL}).encode())
                await asyncio.wait_for(child.ended, 10)
            asyncio.get_running_loop().remove_reader(ours)
        return [child.fault for child in children]

    other, killed = asyncio.run(faults([0, 1, 0, 2]))
    assert other is None
    assert killed is not None
    assert "the kernel has killed for want of memory" in killed


def test_a_call_that_takes_longer_than_its_timeout_is_504(deploy):
    function = deploy(
        """
        import time

        def handle(request):
            if request.path == "/slow":
                time.sleep(600)
            return "done"
        """,
        envVars={"write_timeout": "3s"},
    )
    assert function.post().status_code == 200
    late = function.post(path="/slow")
    assert (late.status_code, "no answer within 3 s" in late.text) == (504, True)
    assert function.post().status_code == 200


def test_calls_above_max_inflight_are_429(deploy, in_background, wait_until, tmp_path):
    go_on = tmp_path / "go-on"
    function = deploy(
        f"""
        import time
        from pathlib import Path

        def handle(request):
            print("entered", flush=True)
            while not Path({str(go_on)!r}).exists():
                time.sleep(0.01)
            return "done"
        """,
        envVars={"max_inflight": "1"},
    )
    first = in_background(function.post)
    wait_until(lambda: "entered" in function.logs())
    refused = function.post()
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    go_on.touch()
    assert first.result(60).status_code == 200


def test_a_function_that_never_answers_its_health_check_is_not_ready(store, make_image, wait_until):
    import requests

    make_image("sleeper", "import time\ntime.sleep(600)\nhandle = None")
    with EmbeddedGateway(images=store.root, ready_timeout_s=0.5) as gateway:
        body = {"service": "sleeper", "image": "sleeper"}
        requests.post(f"{gateway.url}/system/functions", json=body, timeout=60)
        answer = requests.post(f"{gateway.url}/function/sleeper", timeout=60)
    assert answer.status_code == 503
    assert "no answer to /_/health within 0.5 s" in answer.text


def test_the_wait_for_the_start_is_not_the_function_s_time(deploy):
    function = deploy(
        "import time\ntime.sleep(3.5)\ndef handle(request):\n    return 'done'\n",
        envVars={"exec_timeout": "3s"},
    )
    assert function.post().text == "done"


def test_an_answer_that_breaks_off_does_not_pass_for_a_whole_one(deploy):
    function = deploy("""
        import os

        def handle(request):
            request.send_response(200)
            request.send_header("Content-Length", str(10 << 20))
            request.end_headers()
            request.wfile.write(b"only the beginning" * 100_000)
            request.wfile.flush()
            os._exit(1)
    """)
    with pytest.raises(requests.RequestException):
        function.post()


def test_who_waits_for_more_of_an_answer_is_told_that_its_process_has_ended():
    """Also where the news of the process comes before the end of its connection."""
    go_on = asyncio.Event()

    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        of_health = b"/healthy" in head
        length = 1 if of_health else 9
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n+" % length)
        if not of_health:
            await go_on.wait()
        writer.close()

    async def ends():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        ended, started = asyncio.get_running_loop().create_future(), asyncio.Event()
        started.set()
        known = {"host": host, "port": port, "health_path": "/healthy", "error": None}
        child = SimpleNamespace(ended=ended, started=started, fault=None, **known)
        replica = Replica(child)
        await replica.become_ready(60, 60)
        async with server, asyncio.timeout(60):
            with replica.busy():
                async with replica.connections.request("GET") as response:
                    assert await response.content.readany() == b"+"
                    more = asyncio.ensure_future(response.content.readany())
                    await asyncio.sleep(0)
                    ended.set_result(1)
                    await replica.stop(0, asyncio.Event())
                    go_on.set()
                    await more

    with pytest.raises(aiohttp.ClientPayloadError):
        asyncio.run(ends())


@pytest.mark.parametrize(("method", "sent"), [("GET", 2), ("PUT", 2), ("POST", 1), ("PATCH", 1)])
def test_a_request_is_sent_again_only_if_running_it_twice_does_no_harm(method, sent):
    """A server that closes a connection may have run the request."""
    arrived = []

    async def close_the_first(reader, writer):
        arrived.append(await reader.readuntil(b"\r\n\r\n"))
        if len(arrived) > 1:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def status():
        server = await asyncio.start_server(close_the_first, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        ended = asyncio.get_running_loop().create_future()
        ended.set_result(1)
        replica = Replica(SimpleNamespace(host=host, port=port, ended=ended, fault=None))
        revision = Mock(wait_ready=AsyncMock(return_value=replica))
        revision.limits.answer_s = 60
        request = OutgoingRequest(method, "", CIMultiDict(), None)
        async with server, exchange(Function("f", Mock(), revision, Mock()), request) as answer:
            return answer.status

    with nullcontext() if sent == 2 else pytest.raises(ChironError):
        assert asyncio.run(status()) == 200
    assert len(arrived) == sent
