"""However a gateway ends, no process of its functions stays behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import requests

from chiron.gateway.embedded import EmbeddedGateway
from chiron.workflow.errors import ChironError

TIMEOUT_S = 60
FAMILY = """
    import os, signal, subprocess, sys

    def stubborn():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    DAEMON = "import os, time; os.setsid(); time.sleep(600)"

    def handle(request):
        child = subprocess.Popen(["sleep", "600"], preexec_fn=stubborn)
        daemon = subprocess.Popen([sys.executable, "-c", DAEMON])
        return f"{os.getpid()} {child.pid} {daemon.pid}"
"""


@pytest.fixture
def family(make_image, alive):
    """Start a function with stubborn children; returns the pids of them all."""
    make_image("family", FAMILY)

    def start(gateway: EmbeddedGateway) -> list[int]:
        body = {"service": "family", "image": "family"}
        requests.post(f"{gateway.url}/system/functions", json=body, timeout=TIMEOUT_S)
        answer = requests.post(f"{gateway.url}/function/family", timeout=TIMEOUT_S)
        pids = [int(pid) for pid in answer.text.split()]
        assert len(pids) == 3
        assert all(alive(pid) for pid in pids)
        return pids

    return start


def everything_below(pid: int) -> list[int]:
    return [process.pid for process in psutil.Process(pid).children(recursive=True)]


def test_sigterm_ends_every_process_and_the_temporary_files(store, family, alive, wait_until):
    with EmbeddedGateway(images=store.root) as gateway:
        pids = family(gateway) + everything_below(gateway.pid)
        scratch = scratch_of(pids[0])
        assert scratch.is_dir()
        os.kill(gateway.pid, signal.SIGTERM)
        wait_until(lambda: not any(alive(pid) for pid in [*pids, gateway.pid]))
    assert not scratch.exists()


def test_a_gateway_ends_with_the_process_that_embeds_it(store, alive, wait_until):
    code = (
        "import sys, os, time; from pathlib import Path;"
        "from chiron.gateway.embedded import EmbeddedGateway;"
        "gateway = EmbeddedGateway(images=Path(sys.argv[1])).__enter__();"
        "print(gateway.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", code, str(store.root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    wait_until(lambda: not alive(int(done.stdout)))


def test_a_request_in_flight_is_answered_before_the_end(
    store, make_image, in_background, wait_until
):
    make_image(
        "slow",
        """
        import time

        def handle(request):
            print("entered")
            time.sleep(1)
            return "done"
        """,
    )
    with EmbeddedGateway(images=store.root) as gateway:
        body = {"service": "slow", "image": "slow"}
        requests.post(f"{gateway.url}/system/functions", json=body, timeout=TIMEOUT_S)
        url = f"{gateway.url}/function/slow"
        answer = in_background(requests.post, url, timeout=TIMEOUT_S)
        logs = f"{gateway.url}/system/logs?name=slow"
        wait_until(lambda: "entered" in requests.get(logs, timeout=TIMEOUT_S).text)
    assert answer.result(TIMEOUT_S).text == "done"


def test_a_port_in_use_is_one_line_that_names_it(store):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ChironError, match=f"port {port} is in use") as refused,
            EmbeddedGateway(port=port, images=store.root),
        ):
            pass
    assert "\n" not in refused.value.message


def scratch_of(pid: int) -> Path:
    """The gateway's temporary folder, told from a function's home in it."""
    return Path(psutil.Process(pid).environ()["HOME"]).parents[2]
