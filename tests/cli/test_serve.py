"""`chiron serve`: what listens, what a port in use does to it, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from contextlib import suppress

import psutil
import pytest
import requests

_TIMEOUT_S = 60
SERVICES = re.compile(r"services on (http://127\.0\.0\.1:\d+)")
DASHBOARD = re.compile(r"dashboard on (http://127\.0\.0\.1:\d+)/")
GATEWAY = re.compile(r"embedded gateway on (http://127\.0\.0\.1:\d+)")


@pytest.fixture
def taken():
    """A port on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield str(listener.getsockname()[1])


@pytest.mark.parametrize(
    "arguments",
    [["scheduler", "--port"], ["--port=0", "--gateway-port"], ["gateway", "--gateway-port"]],
)
def test_a_port_in_use_is_named(arguments, taken, chiron):
    result = chiron("serve", *arguments, taken)
    assert (result.status, result.stdout) == (2, "")
    error = result.error()
    assert taken in error
    assert "in use" in error


def test_a_store_that_is_none_is_told_at_once(chiron):
    result = chiron("serve", "--port=0", "--gateway-port=0", "--store=ftp://here")
    assert result.status == 2
    assert "ftp://here" in result.error()


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_everything_answers_until_a_signal_ends_it_and_leaves_nothing(number, start):
    process = start("serve", "--port=0", "--gateway-port=0")
    gateway, services = process.wait_for(GATEWAY), process.wait_for(SERVICES)
    assert process.wait_for(DASHBOARD) == services
    assert requests.get(f"{services}/docs", timeout=_TIMEOUT_S).status_code == 200
    assert "/deployments" in requests.get(f"{services}/openapi.json", timeout=_TIMEOUT_S).text
    assert requests.get(f"{gateway}/healthz", timeout=_TIMEOUT_S).status_code == 200
    below = psutil.Process(process.pid).children(recursive=True)
    assert below
    assert process.end(number) == 0
    _, alive = psutil.wait_procs(below, _TIMEOUT_S)
    assert alive == []


@pytest.mark.slow
def test_a_gateway_alone_ends_by_a_signal_too(start):
    process = start("serve", "gateway", "--gateway-port=0")
    gateway = process.wait_for(GATEWAY)
    assert requests.get(f"{gateway}/system/functions", timeout=_TIMEOUT_S).json() == []
    below = psutil.Process(process.pid).children(recursive=True)
    process.end(signal.SIGINT)
    _, alive = psutil.wait_procs(below, _TIMEOUT_S)
    assert alive == []


def test_what_the_gateway_warns_of_is_told(start, chiron, small, free_port):
    assert chiron("build", "-f", small.stack_file).status == 0
    gateway = start("serve", "gateway", "--gateway-port=0")
    url, nowhere = gateway.wait_for(GATEWAY), f"http://127.0.0.1:{free_port}/done"
    body = {"service": "join", "image": "join:latest"}
    requests.post(f"{url}/system/functions", json=body, timeout=_TIMEOUT_S)
    to = {"X-Callback-Url": nowhere}
    requests.post(f"{url}/async-function/join", headers=to, timeout=_TIMEOUT_S)
    told = gateway.wait_for(re.compile("warning: the embedded gateway: (callback .*)"))
    assert told.startswith(f"callback {nowhere}: ClientConnectorError")


@pytest.mark.slow
def test_the_hint_is_a_command_that_works_as_it_stands(start, small, tmp_path):
    (tmp_path / "token").write_text("secret-long-enough")
    options = ("--host=0.0.0.0", "--token-file=token", "--gateway=http://127.0.0.1:9")
    process = start("serve", *options, "deployments", "--port=0")
    command = process.wait_for(re.compile("next: (curl .*)"))
    assert '{"directory": "small", "slo": "200ms"}' in command
    wrong = command.replace("200ms", "200")
    done = subprocess.run(
        ["bash", "-c", wrong], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["code"] == "bad-duration"


def test_a_gateway_that_dies_ends_it_all_with_the_reason(start):
    process = start("serve", "gateway", "--gateway-port=0")
    gateway = process.wait_for(GATEWAY)
    assert requests.get(f"{gateway}/healthz", timeout=_TIMEOUT_S).status_code == 200
    below = psutil.Process(process.pid).children(recursive=True)
    (embedded,) = (child for child in below if "chiron.gateway" in child.cmdline())
    embedded.kill()
    how = process.wait_for(re.compile("error: the embedded gateway (.*)"))
    assert how.startswith("was killed by signal 9; what was deployed on it is gone")
    assert process.end(0) == 1  # no signal: it has ended
    _, alive = psutil.wait_procs(below, _TIMEOUT_S)
    assert alive == []


def below(process, word):
    """The process below `process` whose command has `word`, as soon as it has been executed."""
    until = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until:
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if word in " ".join(child.cmdline()):
                    return child
        time.sleep(0.01)
    raise AssertionError(f"no process of {word}")


@pytest.mark.slow
def test_a_supervisor_that_dies_ends_it_all_with_the_reason(start):
    process = start("serve", "gateway", "--gateway-port=0")
    process.wait_for(GATEWAY)
    below(process, "chiron.gateway.supervisor").kill()
    how = process.wait_for(re.compile("error: the embedded gateway (.*)"))
    assert "the supervisor of the gateway was killed: restart it" in how


@pytest.mark.slow
def test_one_of_the_services_has_no_gateway_and_starts_a_fork_server_again(start, small):
    process = start("serve", "scheduler", "--port=0")
    services = process.wait_for(SERVICES)
    paths = requests.get(f"{services}/openapi.json", timeout=_TIMEOUT_S).json()["paths"]
    assert "/scheduler/schedule" in paths
    assert "/predictor/predict" not in paths
    commands = [child.cmdline() for child in psutil.Process(process.pid).children()]
    assert not [command for command in commands if "chiron.gateway" in command]

    def asked():
        body = {"directory": "small", "slo": "200ms"}
        answer = requests.post(f"{services}/scheduler/schedule", json=body, timeout=_TIMEOUT_S)
        return answer.status_code, answer.text

    first = asked()
    child = below(process, "multiprocessing.forkserver")
    child.kill()
    while child.status() != psutil.STATUS_ZOMBIE:
        pass
    assert asked() == first
