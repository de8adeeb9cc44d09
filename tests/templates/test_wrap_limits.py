"""What bounds a wrap: deadlines of requests and functions, workers' lives, cores, the drain."""

from __future__ import annotations

import http.client
import os
import socket
import time
from typing import Any

import pytest
from wrap.config.settings import Settings

#: Sleeps for as many seconds as it is told, after it has left a file that says so.
SLEEP = """
    import time
    from pathlib import Path

    def handle(req):
        Path(f"began-{req}").touch()
        time.sleep(float(req))
        return "slept"
"""
ONE: dict[str, Any] = {"output": 0}
TWO: dict[str, Any] = {"output": [0, 1]}
PLACES = {"main": [[0]], "further": [[], [0]]}


@pytest.mark.parametrize(("place", "mechanism"), [("main", "fork"), ("further", "pool")])
def test_a_function_has_its_own_limit_and_a_request_may_ask_for_less(
    place: str, mechanism: str, start: Any, wrap_image: Any
) -> None:
    limits = {"timeouts_s": {"one": 1.0}, "timeout_s": 20.0}
    image = wrap_image({"one": SLEEP}, PLACES[place], mechanism=mechanism, entry=ONE, **limits)
    server = start(image)
    answer = server.request(body="3")
    assert (answer.status, answer.json["code"], answer.json["function"]) == (504, "timeout", "one")
    assert server.request(body="0.01").text == "slept"
    answer = server.request(body="3", X_Chiron_Timeout="0.2")
    assert (answer.status, answer.json["code"]) == (504, "timeout")
    assert server.request(body="0", X_Chiron_Timeout="soon").json["code"] == "bad-timeout"


def test_only_the_function_that_is_late_is_blamed(start: Any, wrap_image: Any) -> None:
    handlers = {"one": SLEEP, "other": SLEEP}
    limits = {"timeouts_s": {"other": 0.2}, "timeout_s": 20.0}
    server = start(wrap_image(handlers, [[0, 1]], entry=TWO, **limits))
    assert server.request(body="1").json["message"] == "other did not answer in time"


def test_the_time_in_the_queue_counts(
    start: Any, wrap_image: Any, in_background: Any, eventually: Any
) -> None:
    image = wrap_image({"one": SLEEP}, entry=ONE, timeout_s=20.0)
    server = start(image, WAITRESS_THREADS="1")
    running = in_background(server.request, body="2")
    assert eventually((image / "function/functions/one/began-2").exists)
    late = server.request(body="0.001", X_Chiron_Timeout="0.2")
    assert (late.status, late.json["code"]) == (504, "timeout")
    assert "add replicas" in late.json["message"]
    assert running.result(60).text == "slept"
    assert not (image / "function/functions/one/began-0.001").exists()


def test_many_given_up_threads_are_ended_by_one(
    start: Any, wrap_image: Any, eventually: Any
) -> None:
    loops = "def handle(req):\n    while True: pass\n"
    raises = "import time\ndef handle(req):\n    time.sleep(0.05)\n    raise ValueError\n"
    image = wrap_image({"one": loops, "other": raises}, [[0, 1]], entry=TWO, timeout_s=5.0)
    server = start(image)
    before = server.threads()
    for _ in range(6):
        assert server.request().json["code"] == "raised"
    # A loop each; one thread that ends them all, a request's, one that raises, perhaps one to come.
    assert server.threads() <= before + 6 + 4
    assert eventually(lambda: server.threads() <= before + 4)


def test_every_process_of_a_wrap_keeps_to_its_cores(start: Any, wrap_image: Any) -> None:
    code = "import os\ndef handle(req):\n    return sorted(os.sched_getaffinity(0))\n"
    image = wrap_image({"one": code, "other": code}, [[0], [1]], entry=TWO)
    main, further = start(image, WRAP_CPUS="1").request().json
    assert main == further
    assert len(main) == 1
    assert set(main) <= os.sched_getaffinity(0)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        *((name, "many") for name in ("WRAP_CPUS", "WRAP_MEMORY_MIB", "WAITRESS_THREADS")),
        *(("WRAP_SLO_MS", text) for text in ("soon", "0", "-1", "inf", "nan")),
    ],
)
def test_a_setting_that_is_no_number_above_0_is_named(variable: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"{variable} is '{text}'"):
        Settings.read({variable: text})


def test_what_has_connected_before_sigterm_is_answered(
    start: Any, wrap_image: Any, in_background: Any, eventually: Any
) -> None:
    image = wrap_image({"one": SLEEP}, PLACES["further"], entry=ONE)
    server = start(image, WAITRESS_THREADS="2")
    connections = [http.client.HTTPConnection("127.0.0.1", server.port, 60) for _ in range(8)]
    for connection in connections:
        connection.request("POST", "/", "0.3")
    assert eventually((image / "function/functions/one/began-0.3").exists)
    with socket.create_connection(("127.0.0.1", server.port)) as half:
        half.sendall(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n0")
        ending = in_background(server.terminate)
        time.sleep(0.1)
        half.sendall(b".1")
        answer = half.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 200") and b"Connection: close" in answer
    assert [each.getresponse().read() for each in connections] == [b"slept"] * 8
    assert ending.result(60) == 0
