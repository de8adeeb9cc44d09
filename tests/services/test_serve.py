"""The server takes its port first, serves this machine alone, and loses no job when it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import requests

from chiron.openfaas.credentials import Credentials
from chiron.services.jobs import JobStore
from chiron.services.serve import listen
from chiron.workflow.errors import ChironError

TIMEOUT_S = 60


@contextmanager
def server(folder, *token):
    """A server process on `folder` and its URL; killed if it has not ended after the block."""
    command = [sys.executable, str(Path(__file__).with_name("server_process.py")), str(folder)]
    command += token
    # One that is killed removes nothing, so what it left is kept with the test's own files.
    variables = os.environ | {"TMPDIR": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        try:
            yield process, f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@pytest.fixture
def calibrate(wait_until):
    """Queue jobs at a server; returns their URLs once the first of them runs."""

    def post(url, jobs):
        urls = []
        for _ in range(jobs):
            accepted = requests.post(f"{url}/profiler/calibrate", timeout=TIMEOUT_S)
            assert accepted.status_code == 202
            urls.append(url + accepted.json()["location"])
        wait_until(lambda: requests.get(urls[0], timeout=TIMEOUT_S).json()["progress"])
        return [Path(job).name for job in urls]

    return post


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_ends_the_server_after_its_job_has_removed_what_it_deployed(
    tmp_path, calibrate, number
):
    with server(tmp_path) as (process, url):
        running, queued = calibrate(url, 2)
        process.send_signal(number)
        assert process.wait(TIMEOUT_S) == 0
        with pytest.raises(requests.ConnectionError):
            requests.get(url, timeout=TIMEOUT_S)

    assert (tmp_path / "removed").exists()
    store = JobStore(tmp_path / "state" / "jobs.sqlite")
    assert store.get(running).error.code == "interrupted"
    assert store.get(queued).status == "queued"


@pytest.mark.slow
def test_a_server_that_is_killed_again_and_again_loses_no_job(tmp_path, calibrate, wait_until):
    with server(tmp_path) as (process, url):
        running, queued = calibrate(url, 2)
        process.kill()
        process.wait(TIMEOUT_S)
    wait_until((tmp_path / "removed").exists)  # the job's process outlives the server that long

    def status(job):
        return requests.get(f"{url}/jobs/{job}", timeout=TIMEOUT_S).json()

    with server(tmp_path) as (process, url):
        wait_until(lambda: status(running)["status"] == "running")
        assert status(queued)["status"] == "queued"
        process.kill()
        process.wait(TIMEOUT_S)

    with server(tmp_path) as (_, url):
        wait_until(lambda: status(queued)["progress"])
        assert status(queued)["status"] == "running"
        assert status(running)["status"] == "failed"
        assert status(running)["error"]["code"] == "interrupted"


@pytest.mark.slow
def test_beside_a_job_requests_are_answered_and_when_it_is_cancelled_the_next_one_runs(
    tmp_path, calibrate, wait_until
):
    with server(tmp_path) as (_, url):
        running, queued = calibrate(url, 2)
        answer = requests.get(f"{url}/openapi.json", timeout=TIMEOUT_S)
        assert "/profiler/calibrate" in answer.json()["paths"]
        assert requests.delete(f"{url}/jobs/{running}", timeout=TIMEOUT_S).status_code == 200

        def status(job):
            return requests.get(f"{url}/jobs/{job}", timeout=TIMEOUT_S).json()["status"]

        wait_until(lambda: status(queued) == "running")
        assert status(running) == "cancelled"
        assert (tmp_path / "removed").exists()


def test_a_port_in_use_is_named_with_the_mend():
    with listen(port=0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ChironError, match=f"port {port} .* is in use") as refusal:
            listen(port=port)

    assert refusal.value.code == "port-in-use"


def test_a_port_that_was_served_is_free_at_once():
    with ExitStack() as sockets:
        first = sockets.enter_context(listen(port=0))
        client = sockets.enter_context(socket.create_connection(first.getsockname()))
        first.accept()[0].close()
        port = first.getsockname()[1]
        first.close()
        client.close()

        sockets.enter_context(listen(port=port))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])  # noqa: S104
def test_without_a_secret_the_services_are_for_this_machine_alone(host):
    with pytest.raises(ChironError, match=r"127\.0\.0\.1") as refusal:
        listen(host, 0)

    assert refusal.value.code == "no-secret"


def test_with_a_secret_the_services_are_for_others_too():
    with listen("0.0.0.0", 0, secret=Credentials.bearer("x" * 32)) as listener:  # noqa: S104
        assert listener.getsockname()[0] == "0.0.0.0"  # noqa: S104


#: The thread that runs jobs fails when there is the first one.
FAULTY = """
import sys
from pathlib import Path
from chiron.services.jobs import JobStore
import server_process

claim = JobStore.claim
JobStore.claim = lambda *given: 1 // 0 if claim(*given) else None
server_process.main(Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_server_whose_thread_for_jobs_fails_ends_with_the_reason(tmp_path):
    root = Path(__file__).parents[2]
    path = os.pathsep.join((str(root), str(root / "tests" / "services")))
    with subprocess.Popen(
        [sys.executable, "-c", FAULTY, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as process:
        try:
            url = f"http://127.0.0.1:{int(process.stdout.readline())}"
            assert requests.post(f"{url}/profiler/calibrate", timeout=TIMEOUT_S).status_code == 202
            assert process.wait(TIMEOUT_S) != 0
            assert "the thread that runs jobs" in process.stderr.read()
        finally:
            process.kill()
