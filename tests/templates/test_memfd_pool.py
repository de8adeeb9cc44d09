"""Memory of large objects is written again as soon as no process can read it, and no earlier."""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.net import framing
from wrap.net.framing import Inflow, pieces
from wrap.values import shared_memory
from wrap.values.memfd_pool import SEALS, MemfdPool
from wrap.values.shared_memory import Shared
from wrap.values.value import Object

SIZE = 1 << 20


@pytest.fixture
def memfds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    kept = MemfdPool()
    kept.keep(256 << 20)
    monkeypatch.setattr(shared_memory, "MEMFDS", kept)
    monkeypatch.setattr(framing, "MEMFDS", kept)
    yield kept
    kept.keep(0)


def shared(content: bytes | str) -> Any:
    return Shared.of(content)


def place(memory: Any) -> int:
    """Which memory it is."""
    return os.fstat(memory.fileno()).st_ino


def test_the_next_object_is_written_where_nobody_has_one_any_more(memfds: Any) -> None:
    first = shared(b"1" * SIZE)
    where = {place(first)}
    value = first.data()
    del first
    second = shared(b"2" * SIZE)
    assert place(second) not in where
    assert value == b"1" * SIZE
    where.add(place(second))
    del value, second
    for content in (b"4" * SIZE, b"5" * (SIZE - 1), "text" * (SIZE // 5)):
        shared(b"x" * 10).data()  # at the end of one is looked what others still have
        memory = shared(content)
        assert place(memory) in where
        assert (memory.text() if isinstance(content, str) else memory.data()) == content
        del memory


def test_other_processes_that_can_read_it_are_waited_for(memfds: Any) -> None:
    """Also where they have only mapped it, and where the descriptor is still under way."""
    memory = shared(b"1" * SIZE)
    where = place(memory)
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        del memory
        ours.close()
        _, (descriptor,), _, _ = socket.recv_fds(theirs, 1, 1)
        view = mmap.mmap(descriptor, SIZE, prot=mmap.PROT_READ)
        os.close(descriptor)
        theirs.send(b"mapped")
        theirs.recv(1)
        os._exit(0 if view[:] == b"1" * SIZE else 1)
    socket.send_fds(ours, [b"x"], [memory.fileno()])
    del memory
    assert place(shared(b"2" * SIZE)) != where
    assert ours.recv(6) == b"mapped"
    assert place(shared(b"3" * SIZE)) != where
    ours.send(b"x")
    assert os.waitpid(child, 0)[1] == 0
    theirs.close()
    ours.close()
    assert where in {place(each) for each in [shared(b"4" * SIZE) for _ in range(3)]}


def test_a_forked_process_writes_into_none_of_its_parents(memfds: Any) -> None:
    memory = shared(b"1" * SIZE)
    where = place(memory)
    del memory
    child = os.fork()
    if child == 0:
        os._exit(int(place(shared(b"2" * SIZE)) == where))
    assert os.waitpid(child, 0)[1] == 0


def test_what_is_kept_has_a_bound(memfds: Any) -> None:
    process = psutil.Process()
    before = process.num_fds()
    objects = [shared(b"x" * SIZE) for _ in range(100)]
    objects.clear()
    assert process.num_fds() - before <= 2 * 16
    memfds.keep(SIZE // 4)
    shared(b"x" * SIZE)
    assert process.num_fds() <= before


def test_memory_that_is_shorter_than_it_says_is_refused() -> None:
    for content in (b"", b"\xff" * 8, b"\x00" * 5, b"x" * 90 + (91).to_bytes(8, "big")):
        descriptor = os.memfd_create("short", os.MFD_ALLOW_SEALING)
        os.write(descriptor, content)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
        with pytest.raises(ValueError, match="shorter than its content"):
            Shared(descriptor)


@given(
    st.lists(st.sampled_from([b"", b"head", b"a" * 70_000, b"b" * 200_000, b"c" * 131_072])),
    st.sampled_from([1000, 65_536, 300_000]),
)
def test_large_frames_are_received_into_memory_that_is_shared(contents, size):
    """Whatever pieces they come in."""
    body = b"".join(pieces(contents))
    inflow, found = Inflow(1 << 20, share_from=1 << 17), []
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        for start in range(0, len(body), size):
            theirs.sendall(body[start : start + size])
            try:
                while True:
                    found += inflow.receive(ours)
            except BlockingIOError:
                continue
    assert not inflow.begun
    assert [isinstance(each, Shared) for each in found] == [
        len(each) >= 1 << 17 for each in contents
    ]
    assert [each.data() if isinstance(each, Shared) else each for each in found] == contents


@pytest.mark.parametrize("missing", ["memfd_create", "open"])
def test_a_large_frame_comes_also_where_no_descriptor_can_be_had(missing, memfds, monkeypatch):
    def fail(*_: object) -> int:
        raise OSError(24, "too many open files")

    content = b"x" * 200_000
    inflow = Inflow(1 << 20, share_from=1 << 17)
    assert inflow._feed(b"".join(pieces([content]))[:100_000]) == []
    monkeypatch.setattr(os, missing, fail)
    (found,) = inflow._feed(b"".join(pieces([content]))[100_000:])
    (again,) = inflow._feed(b"".join(pieces([content])))
    monkeypatch.undo()
    assert [bytes(each.view() if hasattr(each, "view") else each) for each in (found, again)] == [
        content
    ] * 2


def test_text_from_elsewhere_is_found_to_be_ascii(memfds: Any) -> None:
    """And then it is as little copied as one that is known to be."""
    for text in ("x" * SIZE, "x" * SIZE + "ü"):
        memory = shared(text.encode())
        assert Object(memory).text() == text
        assert (memory.text() is memory.text()) == text.isascii()
