"""Calls of other wraps over connections of their own: what goes over them, and what may not."""

from __future__ import annotations

import hmac
import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wrap.net.handshake import introduce

OTHER = "test-wrap2"
KEY, SECRET = "the build's key", "a secret of the deployment"
PROOF = hmac.digest(SECRET.encode(), KEY.encode(), "sha256")
#: What the other wrap runs: where it is told to, it fails.
HANDLER = """
import os

def handle(req):
    text = req if isinstance(req, str) else req.decode("latin-1")
    if text.startswith("fail"):
        raise ValueError(text)
    return f"{os.getpid()} {text}"
"""
BYTES = """
import os

def handle(event, context):
    return event.body[::-1]
"""


class Pair:
    """An entry wrap without tasks of its own, and the wrap that it calls."""

    def __init__(self, image: Any, start: Any, gateway: Any, folder: Path, limit: Any) -> None:
        self._image, self._start, self.gateway = image, start, gateway
        self._folder, self._limit = folder, limit
        self._styles = {"f": "flask"}

    def begin(
        self,
        handler: str = HANDLER,
        style: str = "flask",
        attempts: int = 1,
        descriptors: int = 0,
        **other: str,
    ) -> None:
        tasks, styles = {0: "f"}, {"f": style}
        entry = {"output": 0, "remotes": {OTHER: tasks}}
        near = self._image({}, [[]], tasks={}, name="test-wrap1", entry=entry, attempts=attempts)
        self._far = self._image(
            {"f": handler}, name=OTHER, styles=styles, inputs={0: None}, remotes={"test-wrap1": {}}
        )
        if descriptors:
            self._limit(self._far, descriptors)
        self.far = self.start_far(**other)
        self.near = self._start(near, gateway_url=self.gateway.url, **self.settings("near"))

    def start_far(self, **other: str) -> Any:
        settings = self.settings("far", **other)
        far = self._start(self._far, gateway_url=self.gateway.url, **settings)
        self.gateway.ports[OTHER] = far.port
        return far

    def settings(self, name: str, secret: str = SECRET, key: str = KEY) -> dict[str, str]:
        folder = self._folder / f"secrets-{name}"
        folder.mkdir(exist_ok=True)
        (folder / "chiron-direct").write_text(secret)
        return {"secrets_dir": str(folder), "chiron_trace_key": key}

    def ask(self, body: str | bytes) -> Any:
        return self.near.request(body=body)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.far.request("GET", "/_/address").text.partition(" ")
        return host, int(port)


@pytest.fixture
def pair(wrap_image: Any, start: Any, gateway: Any, tmp_path: Path, limit_descriptors: Any) -> Pair:
    return Pair(wrap_image, start, gateway, tmp_path, limit_descriptors)


def test_bytes_of_any_size_come_as_they_were(pair: Pair) -> None:
    pair.begin(BYTES, "http")
    for size in (0, 1, 65_537, 10_000_000):
        body = os.urandom(size)
        assert pair.ask(body).body == body[::-1], size
    assert pair.gateway.calls == 0


def test_what_is_not_of_the_deployment_is_called_by_the_gateway_which_tells_the_same(pair):
    pair.begin()
    directly = pair.ask("fail")
    for calls, secret in enumerate(("another", ""), 1):
        pair.far.terminate()
        far = pair.start_far(secret=secret)
        by_gateway = pair.ask("fail")
        assert pair.gateway.calls == calls
        assert directly.status == by_gateway.status == 500
        assert directly.json == by_gateway.json
        pair.far = far
        assert ("was refused, the 1." in far.log.read_text()) == bool(secret)


def test_strangers_are_refused_and_counted_and_nothing_is_disturbed(pair, eventually):
    pair.begin()
    silent = [socket.create_connection(pair.address) for _ in range(20)]
    with socket.create_connection(pair.address) as replayed:
        # A proof is of one connection's nonces, and so of no use on another one.
        nonce = bytes(16)
        replayed.sendall(nonce + hmac.digest(PROOF, b"call" + nonce + nonce, "sha256"))
    for garbage in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(100_000)):
        with socket.create_connection(pair.address) as stranger:
            stranger.sendall(garbage)
            assert pair.ask("hello").text.endswith("hello")
    assert eventually(lambda: "the 24. so far" in pair.far.log.read_text())
    assert all(each.recv(100) and not each.recv(1) for each in silent)
    assert pair.gateway.calls == 0


#: The most connections of strangers that a wrap keeps at once.
KEPT = 256


def proves(address: tuple[str, int]) -> bool:
    """Whether one that has the secret gets through."""
    with socket.create_connection(address) as peer:
        try:
            introduce(peer, PROOF, time.monotonic() + 60)
        except ConnectionError:
            return False
        return True


def test_a_crowd_of_strangers_takes_neither_threads_nor_descriptors_nor_the_place_of_others(
    pair: Pair, strangers_at: Any, in_background: Any, eventually: Callable[..., bool]
) -> None:
    pair.begin()
    burst = [in_background(pair.ask, f"{n}") for n in range(32)]
    assert all(each.result().status == 200 for each in burst)
    threads, descriptors = pair.far.threads(), pair.far.descriptors()
    near = pair.near.descriptors()
    with strangers_at(pair.address) as strangers:
        assert eventually(lambda: strangers.ended > strangers.many)
        for _ in range(3):
            answers = [in_background(pair.ask, f"{n}") for n in range(32)]
            texts = [re.sub(r"^\d+ ", "", each.result().text) for each in answers]
            assert texts == [str(n) for n in range(32)]
            assert eventually(lambda: proves(pair.address))
            assert pair.far.threads() <= threads + 32  # those of 32 requests
            assert pair.far.descriptors() <= descriptors + KEPT + 2 * 32
    assert eventually(lambda: pair.far.descriptors() <= descriptors + 2 * 32)
    assert eventually(lambda: pair.near.descriptors() <= near + 2 * 32)
    assert pair.gateway.calls == 0
    assert pair.ask("hello").text.endswith("hello")
    told = [line for line in pair.far.log.read_text().splitlines() if "refused" in line]
    page = pair.far.request("GET", "/metrics").text
    (refused,) = re.findall(r"^chiron_direct_refusals_total (\d+)$", page, re.MULTILINE)
    assert int(refused) >= strangers.ended
    assert len(told) * 50 < strangers.ended


@pytest.mark.slow
def test_of_few_descriptors_strangers_have_a_share(pair, strangers_at, in_background, eventually):
    """Where a process may have 64, strangers have 8, and those of requests are left."""
    pair.begin(descriptors=64)
    with strangers_at(pair.address) as strangers:
        assert eventually(lambda: strangers.ended > strangers.many)
        for _ in range(3):
            answers = [in_background(pair.ask, f"{n}") for n in range(4)]
            texts = [re.sub(r"^\d+ ", "", each.result().text) for each in answers]
            assert texts == [str(n) for n in range(4)]
    assert "Too many open files" not in pair.far.log.read_text()


def test_garbage_of_one_that_has_the_secret_ends_its_connection_alone(pair, eventually):
    pair.begin()
    for garbage in (b"\xff" * 8, b"\x00\x00\x00\x02{}", b"[1, 2]"):
        with socket.create_connection(pair.address) as peer:
            introduce(peer, PROOF, time.monotonic() + 60)
            peer.sendall(garbage)
            peer.shutdown(socket.SHUT_WR)
            assert not peer.recv(1)
    assert pair.ask("hello").text.endswith("hello")
    assert eventually(lambda: "the 3. so far" in pair.far.log.read_text())
