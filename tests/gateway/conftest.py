"""Fixtures: a gateway of the tests' own, and functions made from a few lines of handler."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import requests

from chiron.gateway.build import FunctionSource, build
from chiron.gateway.embedded import EmbeddedGateway
from chiron.gateway.images import Image, ImageStore
from tests.serving import Answering, served

ECHO = """
    def handle(request):
        return request.body
"""
_TIMEOUT_S = 60


@dataclass
class Deployed:
    """A deployed function and the gateway it is on."""

    name: str
    gateway: str

    def post(self, body: str | bytes = "", path: str = "", **options: Any) -> requests.Response:
        url = f"{self.gateway}/function/{self.name}{path}"
        return requests.post(url, data=body, timeout=_TIMEOUT_S, **options)

    def describe(self, usage: bool = False) -> dict[str, Any]:
        url = f"{self.gateway}/system/function/{self.name}"
        return requests.get(url, params={"usage": 1} if usage else {}, timeout=_TIMEOUT_S).json()

    def logs(self) -> str:
        url = f"{self.gateway}/system/logs"
        return requests.get(url, params={"name": self.name}, timeout=_TIMEOUT_S).text

    def scale(self, replicas: int) -> None:
        url = f"{self.gateway}/system/scale-function/{self.name}"
        body = {"serviceName": self.name, "replicas": replicas}
        assert requests.post(url, json=body, timeout=_TIMEOUT_S).status_code == 200


@pytest.fixture(scope="session")
def alive() -> Callable[[int], bool]:
    """Whether a process runs; one that has ended and is not reaped does not."""

    def is_alive(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return is_alive


@pytest.fixture
def in_background() -> Iterator[Callable[..., Future[Any]]]:
    """Run a call in a thread; returns its future."""
    with ThreadPoolExecutor(16) as pool:
        yield pool.submit


@pytest.fixture(scope="session")
def minimal_templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A templates folder whose every template is the minimal one."""
    folder = tmp_path_factory.mktemp("templates")
    for name in ("plain", "python3-wrap"):
        shutil.copytree(Path(__file__).parent / "minimal_template", folder / name)
    return folder


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> ImageStore:
    """The image store of the session's gateway."""
    return ImageStore(tmp_path_factory.mktemp("images"))


MakeImage = Callable[..., Image]


@pytest.fixture(scope="session")
def make_image(
    store: ImageStore, minimal_templates: Path, tmp_path_factory: pytest.TempPathFactory
) -> MakeImage:
    """Build an image from a handler's text, and requirements if it has some."""
    venvs = tmp_path_factory.mktemp("venvs")

    def make(name: str, code: str = ECHO, requirements: str = "") -> Image:
        folder = tmp_path_factory.mktemp(name)
        (folder / "handler.py").write_text(textwrap.dedent(code))
        (folder / "requirements.txt").write_text(requirements)
        source = FunctionSource(name, name, "python3-flask", folder)
        return build(source, minimal_templates, store, venvs)

    return make


@pytest.fixture(scope="session")
def gateway(store: ImageStore) -> Iterator[EmbeddedGateway]:
    """The gateway most tests share; each uses functions of its own."""
    with EmbeddedGateway(images=store.root) as running:
        yield running


Deploy = Callable[..., Deployed]


@contextmanager
def _deploying(gateway: EmbeddedGateway, make_image: MakeImage, stem: str) -> Iterator[Deploy]:
    numbers = count()
    made: list[str] = []

    def deploy_one(code: str = ECHO, requirements: str = "", **fields: Any) -> Deployed:
        name = f"{stem.replace('_', '-').lower()[:40].strip('-')}-{next(numbers)}"
        make_image(name, code, requirements)
        body = {"service": name, "image": name, **fields}
        answer = requests.post(f"{gateway.url}/system/functions", json=body, timeout=_TIMEOUT_S)
        assert answer.status_code == 202, answer.text
        made.append(name)
        return Deployed(name, gateway.url)

    yield deploy_one
    for name in made:
        body = {"functionName": name}
        requests.delete(f"{gateway.url}/system/functions", json=body, timeout=_TIMEOUT_S)


@pytest.fixture
def deploy(gateway: EmbeddedGateway, make_image: MakeImage, request: Any) -> Iterator[Deploy]:
    """Deploy a handler's text under a name of its own; removed after the test."""
    with _deploying(gateway, make_image, request.node.originalname) as deploy_one:
        yield deploy_one


@pytest.fixture(scope="module")
def deploy_for_all(
    gateway: EmbeddedGateway, make_image: MakeImage, request: Any
) -> Iterator[Deploy]:
    """The same for all tests of a module."""
    with _deploying(gateway, make_image, request.node.name.removesuffix(".py")) as deploy_one:
        yield deploy_one


@pytest.fixture(scope="module")
def echo(deploy_for_all: Deploy) -> Deployed:
    """A function that answers what it is sent."""
    return deploy_for_all()


@pytest.fixture
def callback():
    """A server that queues the (headers, body) of what is posted to it."""
    received: queue.Queue = queue.Queue()

    class Handler(Answering):
        def do_POST(self):
            received.put((self.headers, self.body()))
            self.answer(200)

    with served(Handler) as url:
        received.url = f"{url}/done"
        yield received


@pytest.fixture
def gateway_of(store):
    """Starts gateways by a program's code, which changes parts of them first."""
    with ExitStack() as running:

        def start(code):
            arguments = ["--with-stdin", "--port=0", f"--images={store.root}"]
            process = running.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", code, *arguments],
                    cwd=Path(__file__).parents[2],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            )
            running.callback(process.wait, 60)
            running.callback(process.stdin.close)
            process.stdin.write(b"[null, null]\n")
            process.stdin.flush()
            url = json.loads(process.stdout.readline())["url"]
            return SimpleNamespace(url=url, pid=process.pid)

        yield start
