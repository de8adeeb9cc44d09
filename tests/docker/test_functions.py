"""A function's life is the same as a process and as a container."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
import requests

pytestmark = [
    pytest.mark.slow,
    pytest.mark.docker,
    pytest.mark.parametrize("backend", ["docker"], indirect=True, scope="session"),
]

TIMEOUT_S = 60
INSTANCE = """
    import uuid

    ME = uuid.uuid4().hex

    def handle(req):
        print("asked", req)
        return ME
"""


def answering(text: str) -> str:
    return f"""
        import time

        def handle(req):
            time.sleep(0.01)
            return {text!r}
    """


def stop(mark: str) -> None:
    """Send SIGSTOP to the server with that variable MARK, be it in a container."""
    [pid] = [process.pid for process in psutil.process_iter() if runs(process, mark)]
    os.kill(pid, signal.SIGSTOP)


def runs(process: psutil.Process, mark: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return "index.py" in process.cmdline() and process.environ().get("MARK") == mark
    return False


def test_all_that_a_handler_prints_is_in_the_log_in_order(deploy, wait_until):
    function = deploy(
        "prints-much",
        """
        def handle(req):
            for number in range(20_000):
                print("line", number)
            return "done"
        """,
    )
    assert function.post().text == "done"
    wait_until(lambda: "line 19999" in function.logs())
    seen = [json.loads(line)["text"] for line in function.logs().splitlines()]
    assert seen == [f"line {number}" for number in range(18_000, 20_000)]


def test_a_stopped_function_is_replaced_and_its_call_answered(deploy):
    mark = uuid.uuid4().hex
    function = deploy("stopped", answering("done"), envVars={"MARK": mark})
    assert function.post().status_code == 200
    stop(mark)
    answer = function.post()
    assert (answer.status_code, "it is stopped" in answer.text) == (502, True)
    assert function.post().status_code == 200
    assert "it is stopped; next start" in function.logs()


def test_a_function_above_its_memory_limit_is_killed_said_so_and_started_again(deploy, wait_until):
    code = """
        import time

        def handle(req):
            block = b"x" * (int(req) << 20)
            time.sleep(1)
            return str(len(block) >> 20)
    """
    function = deploy("greedy", code, limits={"memory": "100Mi"})
    assert function.post("5").text == "5"
    assert function.post("300").status_code == 502
    wait_until(lambda: "memory limit" in function.logs())
    assert function.post("5").text == "5"


def test_the_environment_and_the_secrets_are_there(deploy, embedded):
    code = """
        import os
        from pathlib import Path

        def handle(req):
            secret = Path(os.environ["secrets_dir"], "key").read_text()
            return f"{os.environ['COLOUR']} {os.environ['OPENFAAS_NAME']} {secret}"
    """
    secrets = f"{embedded.url}/system/secrets"
    secret = {"name": "key", "value": "first"}
    assert requests.post(secrets, json=secret, timeout=TIMEOUT_S).status_code == 200
    function = deploy("equipped", code, envVars={"COLOUR": "bl$ue ${x}"}, secrets=["key"])
    assert function.post().text == "bl$ue ${x} equipped first"
    secret["value"] = "second"
    assert requests.put(secrets, json=secret, timeout=TIMEOUT_S).status_code == 200
    assert function.post().text == "bl$ue ${x} equipped second"


def test_a_function_that_ends_is_started_again(deploy, wait_until):
    code = """
        import os, uuid

        ME = uuid.uuid4().hex

        def handle(req):
            if req == "end":
                os._exit(3)
            return ME
    """
    function = deploy("ending", code)
    first = function.post().text
    assert function.post("end").status_code == 502
    wait_until(lambda: "exited with status 3" in function.logs())
    again = function.post()
    assert again.status_code == 200
    assert again.text != first


@contextmanager
def under_requests(function: Any) -> Iterator[list[tuple[int, str]]]:
    """Three callers ask `function` all the time; yields the answers so far: status and text."""
    done = threading.Event()
    answers: list[tuple[int, str]] = []

    def call_until_done() -> None:
        while not done.is_set():
            answer = function.post()
            answers.append((answer.status_code, answer.text))

    with ThreadPoolExecutor(3) as pool:
        callers = [pool.submit(call_until_done) for _ in range(3)]
        try:
            yield answers
        finally:
            done.set()
        for caller in callers:
            caller.result(TIMEOUT_S)


def test_a_redeployment_under_requests_loses_none(deploy, make_image, backend, wait_until):
    function = deploy("renewed", answering("old"))
    function.post()
    with under_requests(function) as answers:
        make_image(backend, "renewed", answering("new"))
        function.update()
        wait_until(lambda: answers[-20:] == [(200, "new")] * 20)
    assert set(answers) == {(200, "old"), (200, "new")}


def test_scaling_under_requests_loses_none(deploy, wait_until):
    function = deploy("scaled-busy", INSTANCE)
    function.post()
    with under_requests(function) as answers:
        function.scale(3)
        wait_until(lambda: len({text for _, text in answers[-20:]}) == 3)
        function.scale(1)
        wait_until(lambda: len({text for _, text in answers[-20:]}) == 1)
    assert {status for status, _ in answers} == {200}


def test_usage_tells_of_memory_and_cpu(deploy):
    code = """
        BLOCK = b"x" * (50 << 20)

        def handle(req):
            return str(sum(range(3_000_000)))
    """
    function = deploy("busy", code)
    function.post()
    usage = function.describe(usage="1")["usage"]
    assert 50 << 20 < usage["totalMemoryBytes"] < 150 << 20
    assert usage["cpu"] > 0


def test_an_unknown_image_is_refused_by_name(embedded):
    url = f"{embedded.url}/system/functions"
    body = {"service": "unknown", "image": "never-built"}
    answer = requests.post(url, json=body, timeout=TIMEOUT_S)
    assert answer.status_code == 400
    assert answer.text.startswith("image never-built not found")
    assert answer.text.count("\n") == 1
