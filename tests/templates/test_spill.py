"""What goes to disk is bounded, and what has no room there is neither lost nor silent."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

PIECE = 1 << 16
#: The errno of a full disk.
FULL = 28


@given(*[st.integers(0, 1 << 40)] * 3)
def test_no_more_than_half_of_what_is_free_is_taken(taken: int, size: int, free: int) -> None:
    from wrap.core.spilling import has_room

    # What is free without ours is `taken + free`.
    assert has_room(taken, size, free) == (taken + size <= (taken + free) / 2)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 100))))
def test_a_backlog_gives_what_was_put_into_it_in_order(steps: list[tuple[bool, int]]) -> None:
    from wrap.values.disk import Backlog

    backlog, put, taken = Backlog(), b"", b""
    for puts, size in steps:
        if puts:
            pieces = [os.urandom(size), b"", memoryview(os.urandom(size))]
            backlog.put(pieces)
            put += b"".join(pieces)
        else:
            taken += backlog.take(size)
        assert len(backlog) == len(put) - len(taken)
    assert taken + backlog.take(len(put) + 1) == put
    backlog.close()


def test_objects_take_no_more_than_half_of_the_disk(tmp_path: Path) -> None:
    """What goes away makes room again."""
    from wrap.values.disk import Disk

    capacity, written = 1000, list[Any]()
    disk = Disk(tmp_path, lambda _: capacity - sum(map(len, written)))
    written += disk.write([b"a" * 200, b"b" * 100])
    written += disk.write([b"c" * 200])
    with pytest.raises(OSError, match="half of what is free") as error:
        disk.write([b"d"])
    assert error.value.errno == FULL
    assert [each.data() for each in written] == [b"a" * 200, b"b" * 100, b"c" * 200]
    del written[2]
    written += disk.write([b"d"])


class Disk:
    """The disk of streams, with so many bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from wrap.values import disk

        self.free = 1 << 30
        self.written = 0
        pwrite = os.pwrite

        def write(descriptor: int, content: Any, place: int) -> int:
            if self.free < len(content):
                raise OSError(FULL, "No space left on device")
            self.free -= len(content)
            self.written += len(content)
            return pwrite(descriptor, content, place)

        monkeypatch.setattr(disk.os, "pwrite", write)
        monkeypatch.setattr(disk, "free_bytes", lambda _: self.free)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


class Ways:
    """A writer with a reader that takes nothing, and another one that has taken all."""

    def __init__(self, stack: list[socket.socket]) -> None:
        from wrap.pipes.outlets import Outlet, Outlets

        self.outlets = Outlets()
        self.reads: list[socket.socket] = []
        self.all: list[Any] = []
        for name in ("slow", "quick"):
            ours, theirs = socket.socketpair()
            stack += [ours, theirs]
            theirs.settimeout(60)
            self.reads.append(theirs)
            self.all.append(Outlet(ours, name))
            self.outlets.add(self.all[-1])
        self.slow, self.quick = self.all

    def fill(self) -> int:
        """Have the slow one's way take no more; how many bytes it has."""
        sent = 0
        while not self.slow.held_up:
            self.slow.put([b"x" * PIECE])
            sent += PIECE
        return sent


@pytest.fixture
def ways() -> Iterator[Ways]:
    sockets: list[socket.socket] = []
    yield Ways(sockets)
    for each in sockets:
        each.close()


def test_above_the_bound_a_writer_waits_and_nothing_is_lost(
    ways: Ways, disk: Disk, in_background: Any, eventually: Callable[..., bool], capsys: Any
) -> None:
    sent = ways.fill()
    ways.slow.spill()
    disk.free = disk.written + 10 * PIECE
    number, expected = 0, b"x" * sent
    while not ways.slow.held_up:
        piece = bytes([number]) * PIECE
        ways.slow.put([piece])
        expected += piece
        number += 1
    assert disk.written <= disk.free + PIECE
    assert "their writer waits" in capsys.readouterr().out
    waits = in_background(ways.outlets.send, [ways.slow], [b"last"])
    assert not waits.done()
    expected += b"last"
    read = bytearray()
    while len(read) < len(expected):
        read += ways.reads[0].recv(PIECE)
    waits.result()
    assert bytes(read) == expected
    assert not ways.slow.sending


def test_on_a_full_disk_a_writer_fails_at_once_and_for_good(ways: Ways, disk: Disk) -> None:
    ways.fill()
    disk.free = 0
    for _ in range(2):
        with pytest.raises(OSError, match="No space left") as error:
            ways.outlets.send([ways.slow], [b"more"])
        assert error.value.errno == FULL


def test_a_circle_at_the_bound_fails_and_a_reader_that_goes_on_does_not(
    ways: Ways, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wrap.core import slow_readers
    from wrap.pipes import outlets

    now = [1000.0]
    monkeypatch.setattr(outlets.time, "monotonic", lambda: now[0])
    ways.fill()
    ways.slow.spill()
    ways.slow.put([b"y" * PIECE] * 100)
    disk.free = 0
    ways.slow.put([b"later"])
    assert ways.slow.held_up
    for _ in range(3):
        now[0] += slow_readers._CIRCLE_S - 1
        ways.slow.spill()
        ways.reads[0].recv(4 * PIECE)
        ways.slow.flush()
    now[0] += slow_readers._CIRCLE_S + 1
    with pytest.raises(OSError, match="reads nothing") as error:
        ways.slow.spill()
    assert error.value.errno == FULL


#: Writes to both readers, of which `last` reads all of `first`'s stream before the writer's.
WRITER = """
    from chiron_io import open_output

    def handle(req):
        with open_output() as out:
            for number in range(500):
                out.write(bytes(70_000))
"""
FIRST = """
    from chiron_io import open_input, open_output

    def handle(req):
        with open_input("writer") as stream, open_output() as out:
            out.write(str(len(stream.read())).encode())
"""
LAST = """
    from chiron_io import open_input

    def handle(req):
        with open_input("first") as first, open_input("writer") as stream:
            return first.read().decode() + f" {len(stream.read())}"
"""
HANDLERS = {"writer": WRITER, "first": FIRST, "last": LAST}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only who may mount has a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("size", [1000, 70_000])
def test_its_error_reaches_readers_whatever_is_on_the_full_disk(
    size: int, ways: Ways, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To close what cannot be written must not raise the disk's error in place of the writer's."""
    from wrap.core.errors import TaskError
    from wrap.pipes.reader import Reader

    monkeypatch.setattr(tempfile, "tempdir", str(small))
    while not ways.slow.held_up:
        ways.slow.put([b"x" * size])
    with contextlib.suppress(OSError):
        ways.slow.spill()
        while not ways.slow.held_up:
            ways.slow.put([b"1234", b"", b"x" * size])
    ways.outlets.close(TaskError("raised", "OSError: no space"))
    with pytest.raises(TaskError, match="no space"):
        Reader(ways.reads[1], "writer").read()


def test_an_error_of_the_disk_reaches_the_caller_from_another_wrap(
    small: Path, wrap_image: Any, start: Any, gateway: Any
) -> None:
    names = list(HANDLERS)
    secrets = small.parent / "secrets"
    secrets.mkdir()
    (secrets / "chiron-direct").write_text("a secret")
    wraps = {"test-home": [0, 2], "test-far": [1]}
    servers = {}
    for name, own in wraps.items():
        (other,) = wraps.keys() - {name}
        image = wrap_image(
            {names[task]: HANDLERS[names[task]] for task in own},
            tasks={task: names[task] for task in own},
            name=name,
            inputs={0: None, 1: [], 2: []},
            buckets=[([], [0]), ([0], [1]), ([0, 1], [2])],
            streams={1: {"writer": 0}, 2: {"writer": 0, "first": 1}},
            live={0: [1, 2], 1: [2]},
            passing=[0, 1],
            live_buckets=[([], [0, 1, 2])],
            remotes={other: {task: names[task] for task in wraps[other]}},
            entry={"output": 2} if name == "test-home" else None,
            timeout_s=60.0,
        )
        folders = {"secrets_dir": str(secrets), "TMPDIR": str(small)}
        servers[name] = start(image, gateway_url=gateway.url, **folders)
        gateway.ports[name] = servers[name].port
    answer = servers["test-home"].request()
    assert (answer.status, answer.json["code"], answer.json["function"]) == (
        500,
        "raised",
        "writer",
    )
    assert answer.json["message"].startswith(f"OSError: [Errno {FULL}]")
