"""What wraps meet on the network: a gateway, strangers, and a way to a server that can hang."""

from __future__ import annotations

import contextlib
import http.client
import math
import selectors
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Longest wait for what takes a moment, in seconds; only what is broken reaches it.
BOUND_S = 180.0


class Strangers:
    """Connections that each send a byte now and then; in place of each that ends comes another."""

    many = 1500

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._selector = selectors.DefaultSelector()
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.ended = 0

    def __enter__(self) -> Strangers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        self._thread.join()

    def _connect(self) -> None:
        stranger = socket.socket()
        stranger.setblocking(False)
        stranger.connect_ex(self._address)
        self._selector.register(stranger, selectors.EVENT_READ)

    def _run(self) -> None:
        for _ in range(self.many):
            self._connect()
        sends = time.monotonic()
        while not self._leave.is_set():
            for key, _ in self._selector.select(0.05):
                if self._has_ended(key.fileobj):
                    self._selector.unregister(key.fileobj)
                    key.fileobj.close()
                    self.ended += 1
                    self._connect()
            if time.monotonic() > sends:
                sends = time.monotonic() + 0.5
                for each in self._all():
                    with contextlib.suppress(OSError):
                        each.send(b"x")
        for each in self._all():
            each.close()

    def _all(self) -> list[Any]:
        return [key.fileobj for key in self._selector.get_map().values()]

    @staticmethod
    def _has_ended(stranger: Any) -> bool:
        try:
            return not stranger.recv(100)
        except BlockingIOError:
            return False
        except OSError:
            return True


class Stalls:
    """Passes connections on to a port, so many bytes a second, until it stalls or cuts them."""

    def __init__(self, port: int, bytes_per_s: float = math.inf) -> None:
        self._to, self._bytes_per_s = port, bytes_per_s
        self._open: list[socket.socket] = []
        self._cut: set[socket.socket] = set()
        self._moves = threading.Event()
        self._moves.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        #: Where it listens.
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._take, daemon=True).start()

    def stall(self) -> None:
        self._moves.clear()

    def go_on(self) -> None:
        self._moves.set()

    def cut(self) -> int:
        """End all connections, as a network does that fails; how many ends there were."""
        ends, self._open = self._open, []
        self._cut.update(ends)
        for each in ends:
            with contextlib.suppress(OSError):
                # No orderly end: what is on its way is gone.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                each.shutdown(socket.SHUT_RD)
                each.close()
        return len(ends)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.go_on()

    def _take(self) -> None:
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return
            self._moves.wait()
            if self._bytes_per_s < math.inf:
                near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            far = socket.create_connection(("127.0.0.1", self._to))
            self._open += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, to: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(1 << 16):
                self._moves.wait()
                to.sendall(content)
                time.sleep(len(content) / self._bytes_per_s)
            if source not in self._cut:
                to.shutdown(socket.SHUT_WR)


@dataclass
class FakeGateway:
    """Passes /function/NAME on to a port, as the gateway does; counts calls and what it hung up.

    Of a wrap that has an address here it says that the wrap takes messages there.
    """

    url: str
    ports: dict[str, int] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    hangs_up: bool = False
    closed: int = 0
    calls: int = 0


def gateways() -> Iterator[FakeGateway]:
    """A gateway for wraps that call each other."""
    fake = FakeGateway("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body does not wait until its head is acknowledged

        def do_POST(self) -> None:
            fake.calls += 1
            self._pass_on(self.rfile.read(int(self.headers["Content-Length"])))

        def do_PUT(self) -> None:
            self.do_POST()

        def do_GET(self) -> None:
            self._pass_on(b"")

        def do_OPTIONS(self) -> None:
            self.do_GET()

        def _pass_on(self, body: bytes) -> None:
            name, _, path = self.path.removeprefix("/function/").partition("/")
            if path == "_/address" and name in fake.addresses:
                self._send(200, fake.addresses[name].encode(), "text/plain")
                return
            if name not in fake.ports:
                self._send(404, b"no such function", "text/plain")
                return
            connection = http.client.HTTPConnection("127.0.0.1", fake.ports[name], timeout=BOUND_S)
            try:
                connection.request(self.command, f"/{path}", body, dict(self.headers))
                response = connection.getresponse()
                kind = response.headers["Content-Type"]
                del response.headers["Content-Type"]
                self._send(response.status, response.read(), kind, response.headers.items())
                self.close_connection = fake.hangs_up
            except ConnectionError as error:
                if body:
                    raise
                self._send(502, str(error).encode(), "text/plain")
            finally:
                connection.close()

        def _send(
            self, status: int, body: bytes, kind: str, others: Iterable[tuple[str, str]] = ()
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            for name, value in others:
                if name not in ("Content-Length", "Date", "Server", "Connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    class CountingServer(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def shutdown_request(self, request: Any) -> None:
            super().shutdown_request(request)
            fake.closed += 1

    server = CountingServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield fake
    server.shutdown()
    thread.join()
    server.server_close()
