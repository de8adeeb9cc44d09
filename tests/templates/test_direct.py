"""Calls of other wraps over connections of their own: what goes over them, and what may not."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

OTHER = "test-wrap2"
KEY, SECRET = "the build's key", "a secret of the deployment"
#: What the other wrap runs: where it is told to, it fails, or says so and waits for a file.
HANDLER = """
import os, pathlib, time

def handle(req):
    text = req if isinstance(req, str) else req.decode("latin-1")
    if text.startswith("fail"):
        raise ValueError(text)
    if text.startswith("wait "):
        pathlib.Path(text[5:] + " waits").touch()
        while not pathlib.Path(text[5:]).exists():
            time.sleep(0.01)
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


def test_an_error_is_told_as_by_the_gateway(pair: Pair) -> None:
    pair.begin()
    directly = pair.ask("fail")
    pair.far.terminate()
    pair.start_far(secret="")
    by_gateway = pair.ask("fail")
    assert pair.gateway.calls == 1
    assert directly.status == by_gateway.status == 500
    assert directly.json == by_gateway.json


@pytest.mark.parametrize("far", [{"secret": ""}, {"secret": "another"}])
def test_what_is_not_of_the_deployment_is_called_by_the_gateway(
    pair: Pair, far: dict[str, str]
) -> None:
    pair.begin(**far)
    assert pair.ask("hello").text.endswith("hello")
    assert pair.gateway.calls == 1
    assert ("was refused, the 1." in pair.far.log.read_text()) == (far != {"secret": ""})


def test_strangers_are_refused_and_counted_and_nothing_is_disturbed(
    pair: Pair, eventually: Callable[..., bool]
) -> None:
    pair.begin()
    silent = [socket.create_connection(pair.address) for _ in range(20)]
    with socket.create_connection(pair.address) as replayed:
        # A proof is of one connection's nonces, and so of no use on another one.
        key = hmac.digest(SECRET.encode(), KEY.encode(), "sha256")
        nonce = bytes(16)
        replayed.sendall(nonce + hmac.digest(key, b"call" + nonce + nonce, hashlib.sha256))
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
    from wrap.net.handshake import introduce

    key = hmac.digest(SECRET.encode(), KEY.encode(), "sha256")
    with socket.create_connection(address) as peer:
        try:
            introduce(peer, key, time.monotonic() + 60)
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
    assert pair.ask("hello").text.endswith("hello")
    told = [line for line in pair.far.log.read_text().splitlines() if "refused" in line]
    page = pair.far.request("GET", "/metrics").text
    (refused,) = re.findall(r"^chiron_direct_refusals_total (\d+)$", page, re.MULTILINE)
    assert int(refused) >= strangers.ended
    assert len(told) * 50 < strangers.ended


@pytest.mark.slow
def test_of_few_descriptors_strangers_have_a_share(
    pair: Pair, strangers_at: Any, in_background: Any, eventually: Callable[..., bool]
) -> None:
    """Where a process may have 64, strangers have 8, and those of requests are left."""
    pair.begin(descriptors=64)
    with strangers_at(pair.address) as strangers:
        assert eventually(lambda: strangers.ended > strangers.many)
        for _ in range(3):
            answers = [in_background(pair.ask, f"{n}") for n in range(4)]
            texts = [re.sub(r"^\d+ ", "", each.result().text) for each in answers]
            assert texts == [str(n) for n in range(4)]
    assert "Too many open files" not in pair.far.log.read_text()


def test_garbage_of_one_that_has_the_secret_ends_its_connection_alone(
    pair: Pair, eventually: Callable[..., bool]
) -> None:
    pair.begin()
    for garbage in (b"\xff" * 8, b"\x00\x00\x00\x02{}", json.dumps([1, 2]).encode()):
        with socket.create_connection(pair.address) as peer:
            theirs = peer.recv(16)
            key = hmac.digest(SECRET.encode(), KEY.encode(), "sha256")
            peer.sendall(bytes(16) + hmac.digest(key, b"call" + theirs + bytes(16), "sha256"))
            assert len(peer.recv(32, socket.MSG_WAITALL)) == 32
            peer.sendall(garbage)
            peer.shutdown(socket.SHUT_WR)
            assert not peer.recv(1)
    assert pair.ask("hello").text.endswith("hello")
    assert eventually(lambda: "the 3. so far" in pair.far.log.read_text())


def test_a_wrap_that_was_killed_is_found_again(pair: Pair) -> None:
    pair.begin()
    before = pair.ask("hello").text.split()[0]
    pair.far.process.kill()
    pair.far.process.wait()
    pair.far = pair.start_far()
    after = {pair.ask("hello").text.split()[0] for _ in range(3)}
    assert after == {str(pair.far.process.pid)} != {before}
    assert pair.gateway.calls == 0


def test_what_a_wrap_did_that_was_killed_is_done_by_another(
    pair: Pair, in_background: Any, tmp_path: Path, eventually: Callable[..., bool]
) -> None:
    pair.begin(attempts=2)
    go_on = tmp_path / "go on"
    answer = in_background(pair.ask, f"wait {go_on}")
    assert eventually((tmp_path / "go on waits").exists)
    far = pair.far
    pair.ask("hello")
    pair.far = pair.start_far()
    far.process.kill()
    go_on.touch()
    assert answer.result().text == f"{pair.far.process.pid} wait {go_on}"
    assert pair.gateway.calls == 0


def test_a_wrap_that_ends_answers_what_it_has_in_hand(
    pair: Pair, in_background: Any, tmp_path: Path, eventually: Callable[..., bool]
) -> None:
    pair.begin()
    go_on = tmp_path / "go on"
    answer = in_background(pair.ask, f"wait {go_on}")
    assert eventually((tmp_path / "go on waits").exists)
    far = pair.far
    far.process.send_signal(signal.SIGTERM)
    for _ in range(3):  # rounds of its loop, which has heard it then
        far.request("GET", "/_/health")
    go_on.touch()
    assert answer.result().text == f"{far.process.pid} wait {go_on}"
    assert far.process.wait(60) == 0
    assert pair.gateway.calls == 0


def test_many_at_once_leave_nothing(
    pair: Pair, in_background: Any, eventually: Callable[..., bool]
) -> None:
    pair.begin()

    def burst(count: int) -> None:
        answers = [in_background(pair.ask, f"{number}") for number in range(count)]
        texts = [each.result().text for each in answers]
        assert [re.sub(r"^\d+ ", "", text) for text in texts] == [str(n) for n in range(count)]

    burst(32)
    before = pair.near.descriptors() + pair.far.descriptors()
    for _ in range(5):
        burst(32)
    most = before + 2 * 32
    assert eventually(lambda: pair.near.descriptors() + pair.far.descriptors() <= most)
    assert pair.gateway.calls == 0
