"""A client that means harm, beside the load: one attack of each kind after another."""

from __future__ import annotations

import gzip
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import create_connection, socket
from urllib.parse import urlsplit

import requests

#: Between two attacks, and connections that are left open: more give way to the first ones.
_PAUSE_S, _OPEN = 0.05, 100
_TIMEOUT_S = 30
#: What a refused attack is answered.
_REFUSED = (400, 403, 413, 415)


class Hostile:
    """Attacks `target` of the gateway, and the services; `got_through` has to stay empty."""

    def __init__(self, gateway: str, services: str, target: str) -> None:
        self.tried: Counter[str] = Counter()
        self.got_through: list[str] = []
        self._gateway, self._services, self._target = gateway, services, target
        self._left_open: deque[socket] = deque()
        self._over = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Attack for the length of the block."""
        thread = threading.Thread(target=self._attack)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
            for connection in self._left_open:
                connection.close()

    def _attack(self) -> None:
        attacks: list[Callable[[], None]] = [
            self._deploy_from_a_page,
            self._deploy_under_a_rebound_name,
            self._promise_a_body,
            self._be_silent,
            self._nest_json,
            self._trace,
            self._send_what_is_packed,
        ]
        while True:
            for attack in attacks:
                if self._over.wait(_PAUSE_S):
                    return
                self.tried[attack.__name__.lstrip("_")] += 1
                with suppress(OSError, requests.RequestException):  # what is attacked is killed too
                    attack()

    def _refused(self, what: str, answer: requests.Response) -> None:
        if answer.status_code not in _REFUSED and answer.status_code < 500:
            self.got_through.append(f"{what}: {answer.status_code} {answer.text[:200]}")

    def _deploy_from_a_page(self) -> None:
        body = '{"service": "evil", "image": "soak-fork"}'
        for headers in ({"Origin": "http://evil.example"}, {"Content-Type": "text/plain"}):
            url = f"{self._gateway}/system/functions"
            given = {"Content-Type": "application/json"} | headers
            answer = requests.post(url, body, headers=given, timeout=_TIMEOUT_S)
            self._refused("deployed by a page", answer)

    def _deploy_under_a_rebound_name(self) -> None:
        for url in (f"{self._gateway}/system/functions", f"{self._services}/jobs"):
            answer = requests.get(url, headers={"Host": "evil.example"}, timeout=_TIMEOUT_S)
            self._refused("a rebound name", answer)

    def _promise_a_body(self) -> None:
        head = f"POST /function/{self._target} HTTP/1.1\r\nHost: g\r\nContent-Length: 67108864"
        self._leave_open(self._gateway, f"{head}\r\n\r\nx".encode())

    def _be_silent(self) -> None:
        self._leave_open(self._services, b"POST /scheduler/schedule HTTP/1.1\r\n")

    def _leave_open(self, url: str, begin: bytes) -> None:
        parts = urlsplit(url)
        connection = create_connection((parts.hostname or "", parts.port or 0), _TIMEOUT_S)
        connection.sendall(begin)
        self._left_open.append(connection)
        if len(self._left_open) > _OPEN:
            self._left_open.popleft().close()

    def _nest_json(self) -> None:
        for body in (b"[" * 100_000, b'{"replicas": ' + b"9" * 5000 + b"}"):
            url = f"{self._gateway}/system/scale-function/{self._target}"
            given = {"Content-Type": "application/json"}
            answer = requests.post(url, body, headers=given, timeout=_TIMEOUT_S)
            if answer.status_code == 500:
                self.got_through.append(f"500 for {body[:20]!r}")
            self._refused("JSON that is no order", answer)

    def _trace(self) -> None:
        url = f"{self._gateway}/function/{self._target}"
        answer = requests.post(url, "x", headers={"X-Chiron-Trace": "1"}, timeout=_TIMEOUT_S)
        if answer.status_code == 200 and "timeline" in answer.text:
            self.got_through.append("traced without the key")

    def _send_what_is_packed(self) -> None:
        url = f"{self._gateway}/function/{self._target}"
        packed = {"Content-Encoding": "gzip"}
        content = b"x" * 100
        answer = requests.post(url, gzip.compress(content), headers=packed, timeout=_TIMEOUT_S)
        if content in answer.content:
            self.got_through.append("what was packed came unpacked")
