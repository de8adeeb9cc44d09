"""One gateway for each backend: what is tested here holds for processes and containers alike.

The tests with containers are marked `docker` and need an engine; tests/docker/engine.sh starts one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import requests

from chiron.gateway import docker_engine
from chiron.gateway.build import FunctionSource, build, build_in_docker
from chiron.gateway.embedded import EmbeddedGateway
from chiron.gateway.images import ImageStore
from chiron.gateway.names import BackendName
from chiron.templates import TEMPLATES
from chiron.workflow.errors import ChironError

TIMEOUT_S = 60
_DEFAULT_BASE = "python:3.11-slim-bookworm"


@dataclass(frozen=True)
class Engine:
    """A Docker engine, and the image in it that tests build upon."""

    client: Any
    base: str

    def containers(self, function: str) -> list[Any]:
        """All containers of a function, also those that have ended."""
        label = f"{docker_engine.FUNCTION_LABEL}={function}"
        found: list[Any] = self.client.containers.list(
            all=True, filters={"label": label}, ignore_removed=True
        )
        return found


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine that DOCKER_HOST names; skips where there is none, or no base image."""
    base = os.environ.get("CHIRON_BASE_IMAGE", _DEFAULT_BASE)
    try:
        client = docker_engine.connect()
        docker_engine.find_image(client, base)
    except ChironError as error:
        pytest.skip(f"{error.message}; tests/docker/engine.sh starts an engine for tests")
    yield Engine(client, base)
    client.close()


@pytest.fixture(
    scope="session", params=["process", pytest.param("docker", marks=pytest.mark.docker)]
)
def backend(request: pytest.FixtureRequest) -> BackendName:
    """Each backend in turn."""
    if request.param == "docker":
        request.getfixturevalue("engine")
    name: BackendName = request.param
    return name


@pytest.fixture(autouse=True)
def images_of_its_own(monkeypatch: pytest.MonkeyPatch, worker_id: str) -> None:
    """Plans of one name have images of one name, and all workers share the engine."""
    monkeypatch.setenv("OPENFAAS_PREFIX", f"chiron-test/{worker_id}")


@dataclass
class Deployed:
    """A deployed function and the gateway it is on."""

    name: str
    url: str

    def post(self, body: str = "") -> requests.Response:
        return requests.post(f"{self.url}/function/{self.name}", data=body, timeout=TIMEOUT_S)

    def describe(self, **query: str) -> dict[str, Any]:
        url = f"{self.url}/system/function/{self.name}"
        found: dict[str, Any] = requests.get(url, params=query, timeout=TIMEOUT_S).json()
        return found

    def logs(self) -> str:
        query = {"name": self.name}
        return requests.get(f"{self.url}/system/logs", params=query, timeout=TIMEOUT_S).text

    def scale(self, replicas: int) -> None:
        url = f"{self.url}/system/scale-function/{self.name}"
        body = {"serviceName": self.name, "replicas": replicas}
        assert requests.post(url, json=body, timeout=TIMEOUT_S).status_code == 200

    def update(self, **fields: Any) -> None:
        body = {"service": self.name, "image": self.name, **fields}
        answer = requests.put(f"{self.url}/system/functions", json=body, timeout=TIMEOUT_S)
        assert answer.status_code == 202, answer.text

    def remove(self) -> int:
        url = f"{self.url}/system/functions"
        return requests.delete(url, json={"functionName": self.name}, timeout=TIMEOUT_S).status_code


@pytest.fixture(scope="session")
def embedded(backend: BackendName, home: Path) -> Iterator[EmbeddedGateway]:
    """The gateway that these tests share, one for each backend."""
    with EmbeddedGateway(backend=backend) as gateway:
        yield gateway


@pytest.fixture(scope="session")
def make_image(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[BackendName, str, str], None]:
    """Build an image of a plain handler for a backend, from its text."""

    def make(backend: BackendName, name: str, code: str) -> None:
        folder = tmp_path_factory.mktemp(name)
        (folder / "handler.py").write_text(dedent(code))
        source = FunctionSource(name, name, "python3-flask", folder)
        if backend == "docker":
            base = os.environ.get("CHIRON_BASE_IMAGE", _DEFAULT_BASE)
            build_in_docker(source, TEMPLATES, {"BASE_IMAGE": base})
        else:
            build(source, TEMPLATES, ImageStore(home / "images"))

    return make


@pytest.fixture
def deploy(
    embedded: EmbeddedGateway, backend: BackendName, make_image: Callable[..., None]
) -> Iterator[Callable[..., Deployed]]:
    """Build and deploy a handler's text under a name; removed after the test."""
    made: list[Deployed] = []

    def deploy_one(name: str, code: str, **fields: Any) -> Deployed:
        make_image(backend, name, code)
        body = {"service": name, "image": name, **fields}
        url = f"{embedded.url}/system/functions"
        answer = requests.post(url, json=body, timeout=TIMEOUT_S)
        assert answer.status_code == 202, answer.text
        made.append(Deployed(name, embedded.url))
        return made[-1]

    yield deploy_one
    for function in made:
        function.remove()
