"""A connection between wraps notices that the other side's network is gone, which says nothing."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import cast

import pytest
from wrap.connection import greet, introduce
from wrap.line import Line, Message, Received
from wrap.loop import Loop
from wrap.sink import Sink

KEY = b"key"
_SO_ATTACH_FILTER = 26


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def cut_off(channel: socket.socket) -> None:
    """Have nothing arrive that is sent to `channel`, by a filter of one instruction, `ret 0`."""
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0)  # its kernel says nothing either
    code = ctypes.create_string_buffer(b"\x06" + bytes(7))
    attached = bytes(_Filter(1, ctypes.addressof(code)))
    channel.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, attached)


class Ends:
    """Both ends of a connection that was made as wraps make it; ours is a line."""

    def __init__(self, sink: Sink | None = None) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            ours = socket.create_connection(listener.getsockname())
            self.theirs, _ = listener.accept()
        other = threading.Thread(target=greet, args=(self.theirs, KEY))
        other.start()
        introduce(ours, KEY)
        other.join()
        self.why: list[Exception | None] = []
        self._ended = threading.Event()
        self.line = Line(ours, Loop(), 1 << 30, self._got, self._gone, sink)

    def _got(self, line: Line, message: Received) -> None:
        """Nothing comes."""

    def _gone(self, line: Line, why: Exception | None) -> None:
        self.why.append(why)
        self._ended.set()

    def ends_within(self, seconds: float) -> bool:
        return self._ended.wait(seconds)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    with closing(made.theirs), closing(made.line):
        yield made


@pytest.mark.parametrize("size", [None, 10, 50_000_000], ids=["nothing", "little", "much"])
def test_a_network_that_is_gone_is_noticed_whatever_was_sent(ends: Ends, size: int | None) -> None:
    time.sleep(0.2)  # all that was said until now is confirmed
    cut_off(ends.theirs)
    begun = time.monotonic()
    if size is not None:
        assert ends.line.send(Message("object", content=[b"x" * size]))
    assert ends.ends_within(6)
    assert time.monotonic() - begun > 1.5  # a short disturbance ends nothing
    assert isinstance(ends.why[0], OSError)


def test_an_other_side_that_reads_nothing_for_long_is_waited_for(ends: Ends) -> None:
    assert ends.line.send(Message("object", content=[b"x" * 50_000_000]))
    assert not ends.ends_within(6)
    left = 50_000_000
    ends.theirs.settimeout(5)
    while left > 0:
        left -= len(ends.theirs.recv(1 << 20))


def test_a_connection_on_which_nothing_is_said_stays(ends: Ends) -> None:
    assert not ends.ends_within(5)


class FullSink:
    """Has no room for as long as the test lasts."""

    full = True

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def when_room(self, action: Callable[[], None]) -> None:
        self.waiting.append(action)


def test_that_the_other_side_has_gone_is_noticed_without_room_for_more() -> None:
    sink = FullSink()
    ends = Ends(cast(Sink, sink))
    with closing(ends.theirs), closing(ends.line):
        ends.theirs.sendall(b"there is no room for that")
        assert not ends.ends_within(0.2)
        ends.theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        ends.theirs.close()  # resets the connection
        assert ends.ends_within(5)
    assert len(sink.waiting) == 1
