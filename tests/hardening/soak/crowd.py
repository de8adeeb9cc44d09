"""Clients that are many, slow, or gone: what others of the same gateway notice of them.

Usage: python tests/hardening/soak/crowd.py, which prints the figures as JSON.
"""

from __future__ import annotations

import http.client
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from socket import create_connection, socket
from urllib.parse import urlsplit

import requests
from repeated import repeated

from chiron.evaluation.bench.machine import Measured, this_machine
from chiron.gateway.build import FunctionSource, build
from chiron.gateway.embedded import EmbeddedGateway
from chiron.gateway.images import ImageStore

CROWD = 1000
LORISES = 200
LEAVING_PER_S = 20
ROUNDS, REQUESTS = 6, 150
PAUSE_S = 0.005
NAME = "echo"
_TIMEOUT_S = 60
_HEAD = f"POST /function/{NAME} HTTP/1.1\r\nHost: g\r\nContent-Length: %d\r\n\r\n"


def make_room() -> bool:
    """Let this process, and the gateway that it starts, have a descriptor for each connection.

    Whether the system allows that.
    """
    needed = 2 * CROWD  # the gateway has one for the client and may have one for the function
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed <= hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return needed <= hard


def connect(url: str) -> socket:
    """A connection to the gateway."""
    parts = urlsplit(url)
    return create_connection((parts.hostname or "", parts.port or 0), _TIMEOUT_S)


def ask(connection: socket, text: bytes) -> bytes:
    """Send `text` to the function over a connection that stays; what came back."""
    connection.sendall((_HEAD % len(text)).encode() + text)
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.read()


@contextmanager
def crowd(url: str) -> Iterator[list[socket]]:
    """Many connections, each of which has been answered once and stays."""
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(url)) for _ in range(CROWD)]
        for number, connection in enumerate(connections):
            assert ask(connection, b"%d" % number) == b"%d" % number
        yield connections


@contextmanager
def lorises(url: str) -> Iterator[None]:
    """Connections that send their head a byte at a time and never come to its end."""
    with ExitStack() as stack:
        slow = [stack.enter_context(connect(url)) for _ in range(LORISES)]
        for each in slow:
            each.sendall(_HEAD[:-4].encode() + b"\r\nX-Slow: ")
        with repeated(1.0, lambda: [each.send(b"x") for each in slow]):
            yield


@contextmanager
def leavers(url: str) -> Iterator[None]:
    """Clients that go away in the middle of their body, and before their answer, in turn."""

    def leave() -> None:
        for length in (9, 4):
            with connect(url) as leaving:
                leaving.sendall((_HEAD % length).encode() + b"half")

    with repeated(2 / LEAVING_PER_S, leave):
        yield


def latencies_ms(url: str, requests_: int) -> list[float]:
    """What one well-behaved client waits for its answers."""
    taken = []
    with connect(url) as connection:
        for number in range(requests_):
            text = b"request %d" % number
            start = time.perf_counter()
            assert ask(connection, text) == text
            taken.append(1000 * (time.perf_counter() - start))
            time.sleep(PAUSE_S)
    return taken


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The URL of a gateway with a function that answers what it gets."""
    templates = Path(__file__).resolve().parents[3] / "templates"
    handler = folder / "handler"
    handler.mkdir()
    (handler / "handler.py").write_text("def handle(req):\n    return req\n")
    (handler / "requirements.txt").touch()
    images = ImageStore(folder / "images")
    build(FunctionSource(NAME, NAME, "python3-flask", handler), templates, images, folder / "venvs")
    with EmbeddedGateway(images=images.root) as gateway:
        body = {"service": NAME, "image": NAME}
        requests.post(f"{gateway.url}/system/functions", json=body, timeout=_TIMEOUT_S)
        requests.post(f"{gateway.url}/function/{NAME}", "ready", timeout=_TIMEOUT_S)
        yield gateway.url


def main() -> None:
    """Measure the client alone and beside each crowd, in turn."""
    beside: dict[str, Callable[[str], AbstractContextManager[object]]] = {
        "alone": lambda _: nullcontext(),
        f"{CROWD} connections": crowd,
        f"{LORISES} slow lorises": lorises,
        f"{LEAVING_PER_S} leaving clients a second": leavers,
    }
    taken: dict[str, list[list[float]]] = {name: [] for name in beside}
    machine = this_machine()
    make_room()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as url:
        latencies_ms(url, REQUESTS)
        for _ in range(ROUNDS):
            for name, others in beside.items():
                with others(url):
                    taken[name].append(latencies_ms(url, REQUESTS))
    origin = Measured(machine=machine, command="python tests/hardening/soak/crowd.py").model_dump()
    figures = {name: _figures(rounds) for name, rounds in taken.items()}
    print(json.dumps({**origin, "figures": figures}, indent=1))


def _figures(rounds: list[list[float]]) -> dict[str, object]:
    p99 = [statistics.quantiles(each, n=100)[98] for each in rounds]
    together = statistics.quantiles([ms for each in rounds for ms in each], n=100)
    return {
        "p50 ms": round(together[49], 2),
        "p99 ms": round(together[98], 2),
        "p99 ms of each round": [round(each, 2) for each in p99],
    }


if __name__ == "__main__":
    main()
