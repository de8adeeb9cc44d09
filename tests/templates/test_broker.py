"""Who may ask a wrap for the ends of streams, and for how long."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest
from wrap.core.streams import StreamId
from wrap.pipes import broker
from wrap.pipes.broker import Broker

#: A user that owns nothing.
NOBODY = 65534


def ended_for(user: int, place: str, many: int) -> int:
    """How many connections of a user's process were ended without an answer."""
    stranger = os.fork()
    if stranger:
        return os.waitstatus_to_exitcode(os.waitpid(stranger, 0)[1])
    ended = 0
    try:
        os.setuid(user)
        for _ in range(many):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
                channel.settimeout(60)
                channel.connect(f"\0{place}")
                with contextlib.suppress(ConnectionError):
                    ended += channel.recv(1) == b""
    finally:
        os._exit(ended)


class Threads:
    """Runs nothing, and counts what was to run."""

    def __init__(self) -> None:
        self.works: list[Callable[[], None]] = []

    def start(self, work: Callable[[], None]) -> None:
        self.works.append(work)


class Timers:
    """Keeps what is to be called."""

    def call_at(self, _: float, forget: Callable[[], None]) -> None:
        self.forget = forget


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"chiron-test-{os.urandom(8).hex()}"
    monkeypatch.setattr(broker, "_address", name)
    return name


@pytest.fixture
def threads(place: str) -> Threads:
    unused: Any = None
    threads: Any = Threads()
    Broker(unused, threads, unused, None).serve()
    return threads


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_refused_and_takes_no_thread(place, threads, capfd):
    assert ended_for(NOBODY, place, 100) == 100
    assert threads.works == []
    said = [line for line in capfd.readouterr().out.splitlines() if "was refused streams" in line]
    assert said[-1] == f"user {NOBODY} was refused streams, the 64. so far"
    assert len(said) == 7


def test_a_stream_for_an_execution_that_may_begin_is_in_hand_for_a_while(place: str) -> None:
    unused: Any = None
    timers: Any = Timers()
    held = Broker(unused, unused, timers, unused)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not held.in_hand
        held.arrived(StreamId(execution=7, output=0, reader=1), ours)
        assert held.in_hand
        timers.forget()
        assert not held.in_hand


@pytest.mark.parametrize("said", [b"", b"nonsense", b"[]", json.dumps([1, True]).encode()])
def test_what_asks_nothing_is_let_go(said, place, threads, eventually, monkeypatch):
    monkeypatch.setattr(broker, "_ASK_S", 0.01)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        channel.settimeout(60)
        channel.connect(f"\0{place}")
        if said:
            channel.send(said)
        assert eventually(lambda: bool(threads.works))
        threads.works.pop()()
        assert channel.recv(1) == b""
