"""An engine that stops while functions run: they are said to be down, and are back when it is."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from chiron.gateway.embedded import EmbeddedGateway

pytestmark = [pytest.mark.docker, pytest.mark.slow]

TIMEOUT_S = 60
NAME = "interrupted"


class Relay:
    """A socket that leads to the engine's until it is cut, as the engine's own if that stops."""

    def __init__(self, path: Path, engine: str) -> None:
        self.path = path
        self._engine = engine
        self._open: list[socket.socket] = []

    def join(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        self.path.unlink(missing_ok=True)
        for end in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._engine)
                self._open += (near, far)
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(1 << 16):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay(engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """What DOCKER_HOST names from now on."""
    scheme, _, path = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").partition("://")
    if scheme != "unix":
        pytest.skip("the engine listens on no Unix socket")
    relay = Relay(tmp_path / "docker.sock", path)
    relay.join()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{relay.path}")
    yield relay
    relay.cut()


def test_an_engine_that_stops_takes_its_functions_down_until_it_is_back(
    engine, make_image, relay, wait_until
):
    make_image("docker", NAME, "def handle(req):\n    return 'here'\n")
    with EmbeddedGateway(backend="docker") as gateway:

        def call() -> requests.Response:
            return requests.post(f"{gateway.url}/function/{NAME}", timeout=TIMEOUT_S)

        functions = f"{gateway.url}/system/functions"
        body = {"service": NAME, "image": NAME}
        assert requests.post(functions, json=body, timeout=TIMEOUT_S).status_code == 202
        assert call().text == "here"

        relay.cut()
        wait_until(lambda: call().status_code == 503)
        refused = call().text
        assert "no Docker engine answers at unix://" in refused
        assert refused.count("\n") == 1
        [status] = requests.get(functions, timeout=TIMEOUT_S).json()
        assert "availableReplicas" not in status
        other = requests.post(functions, json=body | {"service": "other"}, timeout=TIMEOUT_S)
        assert (other.status_code, other.text.count("\n")) == (503, 1)

        relay.join()
        wait_until(lambda: call().status_code == 200)
        relay.cut()
    relay.join()
    wait_until(lambda: engine.containers(NAME) == [])
