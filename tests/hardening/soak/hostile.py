"""A client that means harm, beside the load: one attack of each kind after another."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import create_connection, socket
from typing import Any
from urllib.parse import urlsplit

import requests
from place import Place

#: Between two attacks, and connections that are left open: more give way to the first ones.
_PAUSE_S, _OPEN = 0.05, 100
_TIMEOUT_S = 30
#: Connections of strangers that each port of a wrap gets at once.
_STRANGERS = 150
#: How long a request may take that says so, and how much later it may be answered, in seconds.
_LIMIT_S, _LATE_S = 1.0, 1.0
#: What a refused attack is answered.
_REFUSED = (400, 403, 413, 415)


class Hostile:
    """Attacks the wraps, the gateway and the services; `got_through` has to stay empty."""

    def __init__(self, place: Place) -> None:
        self.tried: Counter[str] = Counter()
        self.got_through: list[str] = []
        self._place, self._target = place, "soak-fork"
        self._gateway, self._services = place.url, place.services.url
        self._left_open: deque[socket] = deque()
        self._strangers: list[socket] = []
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
            for connection in (*self._left_open, *self._strangers):
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
            self._knock_at_all_ports,
            self._wait_for_ages,
            self._evaluate_for_ages,
            self._overflow,
            self._send_many_events,
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

    def _knock_at_all_ports(self) -> None:
        """Connect to whatever wraps listen on, a byte now and another one in the next round."""
        kept = []
        for connection in self._strangers:
            try:
                connection.send(b"x")
                kept.append(connection)
            except OSError:
                connection.close()
        self._strangers = kept[-_STRANGERS:]
        for connection in kept[:-_STRANGERS]:
            connection.close()
        for address in self._place.ports:
            for _ in range(_STRANGERS):
                with suppress(OSError):
                    self._strangers.append(create_connection(address, 1))

    def _wait_for_ages(self) -> None:
        for seconds in (3_000_000, 99_999_999, 1e15):
            self._within_its_limit("a far time", "soak-decides", {"seconds": seconds})

    def _evaluate_for_ages(self) -> None:
        many = [{"v": number} for number in range(5000)]
        self._within_its_limit("a quadratic path", "soak-decides", {"items": many})
        slow = [{"v": "a" * 60 + "!"}]
        self._within_its_limit("a regex without end", "soak-decides", {"items": slow})

    def _overflow(self) -> None:
        deep = "[" * 970 + "]" * 970
        for body in ('{"seconds": 1' + "0" * 400 + "}", '{"seconds": ' + deep + "}"):
            answer = self._post("soak-decides", body)
            if "wrap-failed" in answer.text:
                self.got_through.append(f"an internal error for {body[:30]}: {answer.text[:200]}")

    def _send_many_events(self) -> None:
        answer = self._post("soak-events", "[" + ",".join("1" * 70_000) + "]")
        if answer.status_code not in (202, 413) and answer.status_code < 500:
            self.got_through.append(f"events: {answer.status_code} {answer.text[:200]}")

    def _within_its_limit(self, what: str, target: str, content: Any) -> None:
        begin = time.monotonic()
        answer = self._post(target, json.dumps(content))
        took = time.monotonic() - begin
        if answer.status_code in (200, 504) and took > _LIMIT_S + _LATE_S:
            self.got_through.append(f"{what}: {answer.status_code} after {took:.1f} s")

    def _post(self, target: str, body: str) -> requests.Response:
        url = f"{self._gateway}/function/{target}"
        headers = {"X-Chiron-Timeout": str(_LIMIT_S)}
        return requests.post(url, body, headers=headers, timeout=_TIMEOUT_S)
