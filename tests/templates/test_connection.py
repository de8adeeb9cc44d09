"""The handshake of two wraps, as bytes: who proves what, and what is refused."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from wrap.net import handshake
from wrap.net.handshake import Handshake

KEY, OTHER = b"the deployment's key", b"another key"
#: The most that one side ever waits for: a nonce and a proof.
LONGEST = 48


def meet(called: Any, calling: Any, at_once: int = LONGEST) -> None:
    """Carry what each side says to the other one, so many bytes at once."""
    for_called, for_calling = calling.first, called.first
    while for_called or for_calling:
        piece = for_calling[: min(at_once, calling.wanted)]
        for_calling = for_calling[len(piece) :]
        for_called += calling.hear(piece) if piece else b""
        piece = for_called[: min(at_once, called.wanted)]
        for_called = for_called[len(piece) :]
        for_calling += called.hear(piece) if piece else b""


def sides(called: bytes = KEY, calling: bytes = KEY) -> tuple[Any, Any]:
    return Handshake.called(called), Handshake.calling(calling)


@pytest.mark.parametrize("at_once", [1, 7, LONGEST])
def test_both_prove_themselves_however_the_bytes_come(at_once: int) -> None:
    called, calling = sides()
    meet(called, calling, at_once)
    assert called.wanted == calling.wanted == 0


def test_another_key_and_a_proof_of_another_connection_or_side_are_refused() -> None:
    called, calling = sides(calling=OTHER)
    with pytest.raises(ValueError, match="secret"):
        called.hear(calling.hear(called.first))
    called, calling = sides()
    said = calling.hear(called.first)
    for proof in (said, said[:16] + called.hear(said)):
        another, _ = sides()
        with pytest.raises(ValueError, match="secret"):
            another.hear(proof)
    with pytest.raises(ValueError, match="secret"):
        calling.hear(bytes(calling.wanted))


def test_no_side_waits_for_more_than_a_nonce_and_a_proof() -> None:
    called, calling = sides()
    assert max(called.wanted, calling.wanted) <= LONGEST
    said = calling.hear(called.first)
    assert calling.wanted <= LONGEST
    for left in range(called.wanted, 1, -1):
        assert called.wanted == left
        assert called.hear(said[-left:][:1]) == b""


def test_what_ends_before_its_proof_is_refused() -> None:
    for side in sides():
        with pytest.raises(ConnectionError):
            side.hear(b"")


def test_who_connects_waits_no_longer_as_a_whole_for_a_peer_that_trickles(monkeypatch):
    """Each byte comes in time; all of them do not."""

    class Trickling:
        received = 0

        def setsockopt(self, *_: int) -> None:
            pass

        def settimeout(self, seconds: float) -> None:
            assert 0 < seconds <= handshake.CONNECT_S

        def recv(self, _: int) -> bytes:
            self.received += 1
            return b"x"

    times = itertools.count(0.0, 0.4)
    monkeypatch.setattr(handshake.time, "monotonic", lambda: next(times))
    channel: Any = Trickling()
    with pytest.raises(TimeoutError):
        handshake.introduce(channel, KEY, until=handshake.CONNECT_S)
    assert channel.received == 3


#: In a network of its own, of which nothing arrives any more once the connection stands.
_CUT_OFF = """
import socket, subprocess
from wrap.net.handshake import prepare
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
with socket.create_server(("127.0.0.1", 0)) as listener:
    channel = socket.create_connection(listener.getsockname())
    peer, _ = listener.accept()
    prepare(channel)
    subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
    channel.recv(1)
"""


@pytest.mark.slow
def test_a_connection_to_a_host_that_is_gone_ends() -> None:
    if (
        not shutil.which("ip")
        or subprocess.run(["unshare", "--net", "true"], check=False).returncode
    ):
        pytest.skip("has no network of its own: needs root, unshare and ip")
    command = ["unshare", "--net", sys.executable, "-c", _CUT_OFF]
    image = Path(handshake.__file__).parents[2]
    done = subprocess.run(
        command, cwd=image, capture_output=True, text=True, timeout=120, check=False
    )
    assert "TimeoutError: [Errno 110]" in done.stderr, done.stderr
