"""Containers are reached by this machine alone, and none outlives its gateway."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psutil
import pytest
import requests

from chiron.gateway import docker_engine
from chiron.gateway.embedded import EmbeddedGateway

#: They count the containers of one name, and the next gateway removes those of a killed one.
pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.quiet]

TIMEOUT_S = 60
NAME = "outlived"
HANDLER = """
    import os
    import urllib.error
    import urllib.request

    def handle(req):
        if not req:
            return os.environ["gateway_url"]
        try:
            urllib.request.urlopen(os.environ["gateway_url"] + req, timeout=10)
        except urllib.error.HTTPError as error:
            return str(error.code)
"""


@pytest.fixture
def running(engine, make_image) -> Iterator[EmbeddedGateway]:
    """A gateway of the test's own, with one function in a container."""
    make_image("docker", NAME, HANDLER)
    with EmbeddedGateway(backend="docker") as gateway:
        body = {
            "service": NAME,
            "image": NAME,
            "limits": {"cpu": "500m", "memory": "64Mi"},
            "labels": {"team": "blue"},
        }
        requests.post(f"{gateway.url}/system/functions", json=body, timeout=TIMEOUT_S)
        assert call(gateway).status_code == 200
        yield gateway


def call(gateway: EmbeddedGateway, body: str = "") -> requests.Response:
    return requests.post(f"{gateway.url}/function/{NAME}", data=body, timeout=TIMEOUT_S)


def test_a_sandbox_has_limits_and_labels_and_reaches_function_urls_only(engine, running):
    [container] = engine.containers(NAME)
    settings = container.attrs["HostConfig"]
    assert settings["Memory"] == settings["MemorySwap"] == 64 << 20
    assert settings["CpuQuota"] / settings["CpuPeriod"] == 0.5
    assert settings["CapDrop"] == ["ALL"]
    assert settings["PidsLimit"] == 4096
    assert container.labels["team"] == "blue"
    pid = container.attrs["State"]["Pid"]
    assert psutil.Process(pid).cmdline() == ["python", "index.py"]
    assert psutil.Process(pid).uids().real != 0
    assert not container.attrs["HostConfig"]["PortBindings"]
    assert call(running, f"/function/{NAME}-unknown").text == "404"
    assert call(running, "/system/functions").text == "404"
    inner = call(running).text
    listening = {
        connection.laddr.ip
        for connection in psutil.Process(running.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1", inner.removeprefix("http://").partition(":")[0]}
    port = running.url.rpartition(":")[2]
    assert inner.endswith(f":{port}"), "the bridge's port is the gateway's where it is free"
    with EmbeddedGateway(backend="docker"):
        assert len(engine.containers(NAME)) == 1, "those of a gateway that lives are left alone"
    assert call(running).status_code == 200


def test_killing_the_gateway_leaves_no_container(engine, running, wait_until):
    os.kill(running.pid, signal.SIGKILL)
    wait_until(lambda: engine.containers(NAME) == [])


def test_killing_the_supervisor_ends_the_gateway_and_its_containers(engine, running, wait_until):
    [supervisor] = psutil.Process(running.pid).children()
    supervisor.kill()
    wait_until(lambda: engine.containers(NAME) == [])
    wait_until(lambda: has_ended(running.pid))


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_what_a_killed_gateway_and_supervisor_left_is_removed_by_the_next_gateway(engine, running):
    [supervisor] = psutil.Process(running.pid).children()
    for pid in (running.pid, supervisor.pid):
        os.kill(pid, signal.SIGSTOP)  # so that neither sees the other end
    for pid in (supervisor.pid, running.pid):
        os.kill(pid, signal.SIGKILL)
    assert len(engine.containers(NAME)) == 1
    stranger = engine.client.containers.create(engine.base, command=["true"])
    try:
        with EmbeddedGateway(backend="docker"):
            assert engine.containers(NAME) == []
            stranger.reload()
    finally:
        docker_engine.remove(stranger)
