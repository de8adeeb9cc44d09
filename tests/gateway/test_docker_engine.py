"""What stands in the way of Docker is said in one line that names the mend."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from chiron.gateway import docker_engine, processes
from chiron.gateway.docker_backend import cgroup_memory_bytes
from chiron.gateway.embedded import EmbeddedGateway
from chiron.workflow.errors import ChironError

docker = pytest.importorskip("docker")
TIMEOUT_S = 60


def test_docker_py_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(ChironError, match=r"pip install 'chiron-openfaas\[docker\]'") as caught:
        docker_engine.connect()
    assert caught.value.code == "no-docker-py"
    assert f": {shlex.quote(sys.executable)} -m pip install" in str(caught.value)


def test_no_engine_at_all(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with pytest.raises(ChironError, match="no Docker engine answers at unix://") as caught:
        docker_engine.connect()
    assert (caught.value.code, caught.value.status) == ("no-docker-engine", 503)
    assert "\n" not in caught.value.message


def test_an_engine_that_was_stopped_leaves_a_socket_that_nobody_serves(monkeypatch, tmp_path):
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    with pytest.raises(ChironError, match="Connection refused"):
        docker_engine.connect()


def test_an_engine_that_one_may_not_use():
    with (
        pytest.raises(ChironError, match="usermod -aG docker") as caught,
        docker_engine.engine_errors(),
    ):
        raise docker.errors.DockerException("x") from PermissionError(13, "Permission denied")
    assert caught.value.code == "docker-forbidden"


def test_a_gateway_without_an_engine_says_so_and_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with (
        pytest.raises(ChironError, match="no Docker engine answers at ") as refused,
        EmbeddedGateway(backend="docker"),
    ):
        pass
    assert "\n" not in refused.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_runs_is_not_gone_and_one_that_has_ended_is():
    assert not processes.is_gone(processes.identity())
    scope, pid, start = processes.identity().rsplit("/", 2)
    assert processes.is_gone(f"{scope}/{pid}/{int(start) + 1}")  # another process had this pid
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(TIMEOUT_S)
    assert processes.is_gone(f"{scope}/{process.pid}/1")


def test_a_gateway_that_cannot_be_seen_from_here_is_taken_to_live():
    boot, namespace, user, pid, start = processes.identity().split("/")
    assert not processes.is_gone(f"{boot}/pid:[1]/{user}/{pid}/1")
    assert not processes.is_gone(f"{boot}/{namespace}/{os.getuid() + 1}/{pid}/1")
    assert not processes.is_gone("by hand")
    assert processes.is_gone(f"another-boot/{namespace}/{user}/{pid}/{start}")


@pytest.mark.parametrize("field", ["total_inactive_file", "inactive_file"])
def test_memory_is_counted_without_the_page_cache(field):
    assert cgroup_memory_bytes({"usage": 100, "stats": {field: 30}}) == 70
    assert cgroup_memory_bytes({}) == 0


class Images:
    """An engine's images by id; `removed` is what was asked to go."""

    def __init__(self, **images):
        self.images = self
        self._images = images
        self.removed = []

    def get(self, ident):
        if ident not in self._images:
            raise docker.errors.ImageNotFound("no such image")
        return self._images[ident]

    def remove(self, ident):
        self.removed.append(ident)
        raise docker.errors.APIError("a container needs it")  # which is no error here


@pytest.mark.parametrize(
    ("labels", "tags", "removed"),
    [
        ({docker_engine.BUILT_LABEL: "f"}, [], ["old"]),
        ({docker_engine.BUILT_LABEL: "f"}, ["f:latest"], []),
        ({}, [], []),
    ],
)
def test_an_image_of_ours_goes_when_a_later_build_has_its_name(labels, tags, removed):
    engine = Images(old=SimpleNamespace(labels=labels, tags=tags))
    docker_engine.remove_superseded(engine, "old")
    docker_engine.remove_superseded(engine, "gone already")
    assert engine.removed == removed
