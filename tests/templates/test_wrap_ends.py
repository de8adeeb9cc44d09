"""Replicas that are told to end, one after another, under load: nothing is lost, nothing hangs."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chiron.generator.settings import HOLDING_WATCHDOG_SLEEP, WATCHDOG_SLEEP
from chiron.workflow.units import go_duration_s

HOME, FAR, NEAR = NAMES = ("test-home", "test-far", "test-near")
ENDS = int(os.environ.get("CHIRON_SOAK_ENDS", "100"))
CLIENTS = 4
#: For how long a Service sends requests to a replica that has been told to end, in seconds.
LAG_S = 0.7
#: For how long there is load before the first end, in seconds.
QUIET_S = 10.0
CHUNKS, CHUNK = 40, 1 << 16
#: 0 -> 1 -> 2, and 0 -> 3 =stream=> 4, then 5: over all wraps, some of it for seconds.
PLACES = {0: (HOME, 0), 1: (FAR, 0), 2: (NEAR, 0), 3: (FAR, 1), 4: (NEAR, 1), 5: (HOME, 0)}
HANDLERS = {
    "f0": "def handle(req):\n    return req\n",
    "f1": """
import json, time

def handle(req):
    time.sleep(json.loads(req)["s"])
    return req
""",
    "f2": """
import time

def handle(req):
    time.sleep(0.02)
    return req
""",
    "f3": f"""
import json, time
from chiron_io import open_output

def handle(req):
    pause = json.loads(req)["s"] / {CHUNKS}
    with open_output() as out:
        for number in range({CHUNKS}):
            out.write(bytes([number]) * {CHUNK})
            time.sleep(pause)
""",
    "f4": f"""
import zlib
from chiron_io import open_input

def handle(req):
    found = 0
    with open_input() as stream:
        while data := stream.read({CHUNK}):
            found = zlib.crc32(data, found)
    return str(found)
""",
    "f5": "def handle(req):\n    return req\n",
}
DECLARED: dict[str, Any] = {
    "inputs": {0: None, 1: 0, 2: 1, 3: 0, 4: [], 5: [2, 4]},
    "buckets": [([], [0]), ([0], [1, 3]), ([1], [2]), ([3], [4]), ([2, 4], [5])],
    "streams": {4: {"f3": 3}},
    "live": {3: [4]},
    "passing": [3],
    "live_buckets": [([], [0]), ([0], [1, 3, 4]), ([1], [2]), ([2, 4], [5])],
    "mechanism": "pool",
    "attempts": 2,
    "timeout_s": 10.0,
}


class Asked(NamedTuple):
    """A request: what it took beyond what its functions sleep, in seconds, and what went wrong."""

    beyond_s: float
    fault: str


class Replica:
    """A wrap behind a watchdog, which ends when it has slept and is idle, or its wrap fails."""

    def __init__(self, server: Any, sleep_s: float) -> None:
        self.server = server
        self.in_flight = 0
        self._sleep_s = sleep_s

    def end(self) -> None:
        """Tell both to end, and wait until they have."""
        process, until = self.server.process, time.monotonic() + self._sleep_s
        process.send_signal(signal.SIGTERM)
        while not process.poll() and (self.in_flight or time.monotonic() < until):
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Services:
    """Stands for a gateway and Services: each request goes to any replica that is in service."""

    def __init__(self) -> None:
        self.replicas: dict[str, list[Replica]] = {name: [] for name in NAMES}
        services, self._lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self._pass_on(self.rfile.read(int(self.headers["Content-Length"])))

            def do_GET(self) -> None:
                self._pass_on(b"")

            def _pass_on(self, body: bytes) -> None:
                name, _, path = self.path.removeprefix("/function/").partition("/")
                kind = self.headers["Content-Type"] or "text/plain"
                status, answer = services.ask(name, self.command, f"/{path}", body, kind)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def ask(
        self, name: str, method: str, path: str, body: bytes, kind: str = "text/plain"
    ) -> tuple[int, bytes]:
        if not self.replicas[name]:
            return 503, b"no endpoints"
        replica = random.choice(self.replicas[name])
        with self._lock:
            replica.in_flight += 1
        connection = http.client.HTTPConnection("127.0.0.1", replica.server.port, timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": kind})
            response = connection.getresponse()
            return response.status, response.read()
        except OSError as error:
            return 502, f"{type(error).__name__} of {name}: {error}".encode()
        finally:
            connection.close()
            with self._lock:
                replica.in_flight -= 1


@pytest.fixture
def services() -> Iterator[Services]:
    services = Services()
    yield services
    services.server.shutdown()
    services.server.server_close()


class Cluster:
    """Three wraps of two replicas each."""

    def __init__(self, image: Any, start: Any, services: Services, folder: Path) -> None:
        self._start, self._services = start, services
        secrets = folder / "secrets"
        secrets.mkdir()
        (secrets / "chiron-direct").write_text("a secret")
        self._settings = {
            "secrets_dir": str(secrets),
            "chiron_trace_key": "key",
            "gateway_url": services.url,
            "WAITRESS_THREADS": "16",
            "pool_concurrency": "8",
            "WRAP_LINGER_MS": "1500",
        }
        self._images = {}
        for name in NAMES:
            own = {task: f"f{task}" for task, (where, _) in PLACES.items() if where == name}
            last = max(process for where, process in PLACES.values() if where == name)
            self._images[name] = image(
                {function: HANDLERS[function] for function in own.values()},
                [[task for task in own if PLACES[task][1] == p] for p in range(last + 1)],
                tasks=own,
                name=name,
                remotes={
                    other: {t: f"f{t}" for t, (where, _) in PLACES.items() if where == other}
                    for other in NAMES
                    if other != name
                },
                entry={"output": 5} if name == HOME else None,
                **DECLARED,
            )

    def add(self, name: str) -> None:
        """Start a replica, which is in service then."""
        server = self._start(self._images[name], **self._settings)
        sleep_s = go_duration_s(WATCHDOG_SLEEP if name == HOME else HOLDING_WATCHDOG_SLEEP)
        self._services.replicas[name].append(Replica(server, sleep_s))

    def replace(self, name: str) -> None:
        """End a replica as Kubernetes does: another one starts meanwhile."""
        replicas = self._services.replicas[name]
        replica = replicas[0]
        out = threading.Timer(LAG_S, lambda: replicas.remove(replica))
        out.start()
        ending = threading.Thread(target=replica.end)
        ending.start()
        self.add(name)
        out.join()
        ending.join()


def ask(services: Services, number: int) -> Asked:
    request = {"n": number, "s": random.choice((0.05, 0.3, 1.2, 2.5))}
    begun = time.monotonic()
    status, answer = services.ask(HOME, "POST", "/", json.dumps(request).encode())
    beyond_s = time.monotonic() - begun - request["s"]
    found = 0
    for each in range(CHUNKS):
        found = zlib.crc32(bytes([each]) * CHUNK, found)
    right = status == 200 and json.loads(answer) == [request, found]
    return Asked(beyond_s, "" if right else f"{status} {answer[:300]!r}")


@pytest.mark.soak
@pytest.mark.timeout(60 + 20 * ENDS)
def test_replicas_that_are_told_to_end_under_load_lose_nothing(
    wrap_image: Any, start: Any, services: Services, tmp_path: Path
) -> None:
    cluster = Cluster(wrap_image, start, services, tmp_path)
    for name in NAMES * 2:
        cluster.add(name)
    quiet, asked = list[Asked](), list[Asked]()
    into, over = quiet, threading.Event()

    def client(own: int) -> None:
        number = own
        while not over.is_set():
            into.append(got := ask(services, number))
            if got.fault:
                print(f"after {got.beyond_s:.2f} s: {got.fault}", flush=True)
            number += CLIENTS

    with ThreadPoolExecutor(CLIENTS) as clients:
        running = [clients.submit(client, number) for number in range(CLIENTS)]
        try:
            time.sleep(QUIET_S)
            into = asked
            for number in range(ENDS):
                cluster.replace((FAR, NEAR, FAR, NEAR, HOME)[number % 5])
        finally:
            over.set()
        for each in running:
            each.result()
    longest = [max(each.beyond_s for each in its) for its in (quiet, asked)]
    lost = [each for each in asked if each.fault]
    print(f"{ENDS} ends, {len(asked)} requests, {len(lost)} lost, longest beyond sleep {longest} s")
    assert not [each for each in quiet if each.fault]
    assert not lost
    assert longest[1] <= longest[0] + 2.0
