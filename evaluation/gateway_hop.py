"""What a hop through the embedded gateway costs: each request once direct and once through it.

    python -m evaluation.gateway_hop [--requests 500] [--output hop.json]

An echo function answers on a port of its own; direct and hopping requests alternate over
kept-alive connections, so that drift of the machine hits both alike. The hop is the difference of
each pair; "p99 over" is the difference of the two 99th percentiles.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import requests
from rich.console import Console
from rich.table import Table

import templates
from gateway.build import FunctionSource, build
from gateway.embedded import EmbeddedGateway
from gateway.images import ImageStore

_WARM_UP = 100
_BODY = json.dumps({"symbol": "NVDA", "quantity": 100}).encode()
_HEADERS = {"Content-Type": "text/plain"}
_NAME = "echo"


@dataclass(frozen=True)
class Latencies:
    """Order statistics of one path's latencies, in milliseconds."""

    p25_ms: float
    p50_ms: float
    p75_ms: float
    p99_ms: float

    @classmethod
    def of(cls, samples_ms: list[float]) -> Latencies:
        """The statistics of `samples_ms`."""
        percentiles = statistics.quantiles(samples_ms, n=100, method="inclusive")
        return cls(*(percentiles[n - 1] for n in (25, 50, 75, 99)))


@dataclass(frozen=True)
class Hop:
    """The result: both paths, the paired difference, and the difference of the tails."""

    requests: int
    direct: Latencies
    through: Latencies
    hop: Latencies
    p99_over_ms: float


def measure(count: int) -> Hop:
    """Deploy the echo function to a gateway of its own and send `count` pairs of requests."""
    with tempfile.TemporaryDirectory() as folder:
        images = _build(Path(folder))
        with EmbeddedGateway(images=images) as gateway:
            address = urlsplit(gateway.url).netloc
            requests.post(
                f"{gateway.url}/system/functions", json=_deployment(), timeout=10
            ).raise_for_status()
            requests.post(f"{gateway.url}/function/{_NAME}", timeout=60).raise_for_status()
            direct = _Path(_own_address(gateway.pid), "/")
            through = _Path(address, f"/function/{_NAME}")
            return _compare(direct, through, count)


def _compare(direct: _Path, through: _Path, count: int) -> Hop:
    pairs = [(direct.request_ms(), through.request_ms()) for _ in range(_WARM_UP + count)]
    straight, hopping = (list(times) for times in zip(*pairs[_WARM_UP:], strict=True))
    ends = Latencies.of(straight), Latencies.of(hopping)
    hops = Latencies.of([b - a for a, b in zip(straight, hopping, strict=True)])
    return Hop(count, *ends, hops, ends[1].p99_ms - ends[0].p99_ms)


class _Path:
    """A kept-alive connection that posts the same request again and again."""

    def __init__(self, address: str, path: str) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=30)
        self._path = path

    def request_ms(self) -> float:
        """Send one request; its latency in milliseconds."""
        start = time.perf_counter()
        self._connection.request("POST", self._path, _BODY, _HEADERS)
        response = self._connection.getresponse()
        body = response.read()
        elapsed = time.perf_counter() - start
        if response.status != 200 or body != _BODY:
            raise RuntimeError(f"{self._path}: status {response.status}, body {body[:80]!r}")
        return elapsed * 1000


def _build(folder: Path) -> Path:
    handler = folder / "handler"
    handler.mkdir()
    (handler / "handler.py").write_text("def handle(req):\n    return req\n", encoding="utf-8")
    store = ImageStore(folder / "images")
    source = FunctionSource(_NAME, _NAME, "python3-flask", handler)
    build(source, Path(templates.__file__).parent, store, folder / "venvs")
    return store.root


def _deployment() -> dict[str, str]:
    return {"service": _NAME, "image": _NAME}


def _own_address(gateway: int) -> str:
    """Where the function itself listens: the one `index.py` below the gateway."""
    below = psutil.Process(gateway).children(recursive=True)
    for process in below:
        if process.cmdline()[-1:] == ["index.py"]:
            for connection in process.net_connections("tcp4"):
                if connection.status == psutil.CONN_LISTEN:
                    return f"{connection.laddr.ip}:{connection.laddr.port}"
    raise RuntimeError(f"no function listens below process {gateway}")


def _table(result: Hop) -> Table:
    table = Table(title=f"Hop through the gateway, {result.requests} pairs of requests, ms")
    for heading in ("path", "p25", "p50", "p75", "p99"):
        table.add_column(heading, justify="left" if heading == "path" else "right")
    for name in ("direct", "through", "hop"):
        values = asdict(getattr(result, name)).values()
        table.add_row(name, *(f"{value:.3f}" for value in values))
    table.add_row("p99 over", "", "", "", f"{result.p99_over_ms:.3f}")
    return table


def main() -> None:
    """Measure, print the table on stderr and the JSON on stdout or into a file."""
    parser = argparse.ArgumentParser(description="Measures a hop through the embedded gateway.")
    parser.add_argument("--requests", type=int, default=500, help="pairs (default %(default)s)")
    parser.add_argument("--output", type=Path, help="write the JSON there (default: stdout)")
    options = parser.parse_args()
    result = measure(options.requests)
    Console(stderr=True).print(_table(result))
    text = json.dumps({"format": 1, **asdict(result)}, indent=2) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
