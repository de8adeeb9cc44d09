"""What a wrap cannot work without ends it, so that it is started again and no request hangs."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import Any

import psutil
import pytest
from wrap.event_loop.liveness import END_SIGNAL

ONE: dict[str, Any] = {"output": 0}
#: Raises in the thread that the request names; what a module has started does not end.
RAISES = """
    import ctypes, socket, threading, time

    threading.Thread(target=time.sleep, args=(1000,)).start()

    def handle(req):
        for thread in threading.enumerate():
            if thread.name == req:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident), ctypes.py_object(ZeroDivisionError)
                )
        if req == "streams":
            from wrap.pipes import broker
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
                channel.connect("\\0" + broker._address)
        return "x"
"""
#: Keeps all of Python from running for so many seconds.
HOLDS = """
    import ctypes

    def handle(req):
        if req:
            ctypes.PyDLL(None).usleep(int(float(req) * 1e6))
        return "x"
"""
#: Does as the request says to what a test would not get at from outside.
STOPS = """
    import gc, threading, time

    def handle(req):
        if req:
            loop = next(each for each in gc.get_objects() if type(each).__name__ == "Loop")
            loop.call_at(time.monotonic(), threading.Event().wait)
        return "x"
"""
#: Follows the fork server's own code: it raises once the file is there.
ENDS_FORK_SERVER = """
import threading, time
from pathlib import Path

threading.Thread(target=time.sleep, args=(1000,)).start()
miss = ForkServer._patience_s

def raises(fork_server):
    if Path("raise").exists():
        Path("raise").unlink()
        raise ZeroDivisionError("in the fork server")
    return miss(fork_server)

ForkServer._patience_s = raises
"""


@pytest.mark.parametrize("thread", ["loop", "streams", "MainThread"])
def test_the_end_of_an_essential_thread_ends_the_wrap_with_the_reason(
    thread: str, start: Any, wrap_image: Any
) -> None:
    streams = {
        "tasks": {0: "one", 1: "two"},
        "inputs": {0: None, 1: []},
        "buckets": [([], [0]), ([0], [1])],
        "streams": {1: {"one": 0}},
        "live": {0: [1]},
        "passing": [0],
        "live_buckets": [([], [0, 1])],
        "entry": {"output": 1},
    }
    handlers = {"one": RAISES, "two": "def handle(req):\n    return req\n"}
    server = start(wrap_image(handlers, **streams))
    family = server.family()
    with contextlib.suppress(ConnectionError):  # it may end before it answers
        server.request(body=thread)
    assert server.process.wait(60) == 1
    said = server.log.read_text()
    assert "ZeroDivisionError" in said
    name = "HTTP server" if thread == "MainThread" else f"thread {thread}"
    assert f"the {name} has ended, so the" in said
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


def test_a_server_that_never_gets_its_gil_is_ended_with_its_traceback(
    start: Any, wrap_image: Any
) -> None:
    handlers = {"one": HOLDS, "two": "def handle(req):\n    return req\n"}
    image = wrap_image(handlers, [[0], [1]], timeout_s=0.5, entry={"output": [0, 1]})
    server = start(image)
    family = server.family()
    with pytest.raises(ConnectionError):
        server.request(body="1000")
    assert server.process.wait(60) == END_SIGNAL
    said = server.log.read_text()
    assert "stood still" in said and "in handle" in said
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


@pytest.mark.slow
def test_a_handler_may_hold_the_gil_for_as_long_as_a_request_may_last(
    start: Any, wrap_image: Any
) -> None:
    server = start(wrap_image({"one": HOLDS}, timeout_s=4.0, entry=ONE))
    answers = [server.request(body="3.5") for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200]
    assert server.request().text == "x"
    assert server.process.poll() is None


@pytest.mark.slow
def test_what_was_paused_goes_on(start: Any, wrap_image: Any) -> None:
    server = start(wrap_image({"one": HOLDS}, timeout_s=0.5, entry=ONE))
    everyone = [psutil.Process(server.process.pid), *server.family()]
    # Longer than the server's loops may stand still, and until it has looked at them again.
    for number, seconds in ((signal.SIGSTOP, 5), (signal.SIGCONT, 2)):
        for each in everyone:
            each.send_signal(number)
        time.sleep(seconds)
    assert server.request().text == "x"
    assert server.process.poll() is None


@pytest.mark.slow
def test_a_loop_that_stands_still_fails_the_health_probe_and_ends_the_wrap(
    start: Any, wrap_image: Any, eventually: Any
) -> None:
    server = start(wrap_image({"one": STOPS}, timeout_s=3.0, entry=ONE))
    assert server.request(body="stops").status == 200
    assert eventually(lambda: server.request("GET", "/_/health").status == 503)
    assert server.process.wait(60) == END_SIGNAL
    assert "stood still" in server.log.read_text()


def test_a_fork_server_that_ends_says_why_and_is_replaced_before_a_request_needs_it(
    start: Any, wrap_image: Any, with_own_runtime: Any, eventually: Any
) -> None:
    echo = "def handle(req):\n    return req\n"
    image = wrap_image({"one": echo, "two": echo}, [[0], [1]], entry={"output": [0, 1]})
    module = with_own_runtime(image) / "workers" / "fork_server.py"
    text = module.read_text()
    module.unlink()
    module.write_text(text + ENDS_FORK_SERVER)
    server = start(image)
    first = server.fork_server()
    (image / "raise").touch()
    assert eventually(lambda: (found := server.family()) and first not in found)
    assert "ZeroDivisionError: in the fork server" in server.log.read_text()
    second = server.family()
    assert server.request(body="y").json == ["y", "y"]
    assert server.terminate() == 0
    _, alive = psutil.wait_procs(second, timeout=60)  # the thread of its module does not keep it
    assert not alive
