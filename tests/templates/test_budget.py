"""Objects that wait are in memory up to the quota, then on disk, and never lost."""

from __future__ import annotations

import gc
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.net import framing
from wrap.values.budget import MemoryBudget
from wrap.values.disk import Disk
from wrap.values.shared_memory import Shared
from wrap.values.value import Object

QUOTA, TTL = 1000, 10.0


class Clock:
    """Time that passes when it is told to, and has what was asked for done when it is due."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[float] = []
        self.action: Any = None

    def __call__(self) -> float:
        return self.now

    def go_on(self, seconds: float) -> None:
        self.now += seconds
        while self.due and min(self.due) <= self.now:
            self.due.remove(min(self.due))
            self.action()


class Room:
    """A disk with as much room as it is given."""

    def __init__(self, disk: Any) -> None:
        self._disk = disk
        self.is_full = False

    def write(self, contents: Any) -> Any:
        if self.is_full:
            raise OSError(28, "no space left on device")
        return self._disk.write(contents)


def budget_of(folder: Path | None = None) -> tuple[Any, Clock, Room]:
    clock, room = Clock(), Room(Disk(folder))
    budget = MemoryBudget(QUOTA, TTL, room.write, clock.due.append, clock)
    clock.action = budget.tend
    return budget, clock, room


@pytest.fixture
def made(tmp_path: Path) -> tuple[Any, Clock, Room]:
    return budget_of(tmp_path)


def text(character: str, length: int) -> Any:
    return Object(character * length)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("hold"), st.integers(0, 3), st.integers(0, 5), st.integers(0, 800)),
        st.tuples(st.just("release"), st.integers(0, 3), st.integers(0, 5)),
        st.tuples(st.just("drop"), st.integers(0, 3)),
        st.tuples(st.just("pass"), st.floats(0, 2 * TTL)),
        st.tuples(st.just("disk"), st.booleans()),
    ),
    max_size=60,
)


@contextmanager
def no_collection() -> Iterator[None]:
    """Collecting garbage of other tests closes their descriptors."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@given(STEPS)
@no_collection()
def test_the_quota_is_kept_and_nothing_is_lost_whatever_happens(steps: list[Any]) -> None:
    """By whoever waits while the budget is full."""
    process = psutil.Process()
    budget, clock, room = budget_of()
    before = process.num_fds()
    expected: dict[tuple[int, int], tuple[str, Any]] = {}
    largest = 0
    for number, (what, *about) in enumerate(steps):
        if what == "hold" and budget.full:
            budget.when_room(lambda: None)
            clock.go_on(0)
        if what == "hold" and not budget.full:
            execution, key, size = about
            content = chr(97 + number % 26) * size
            expected[execution, key] = content, text(content[:1], size)
            budget.hold(execution, key, expected[execution, key][1])
            largest = max(largest, size)
        elif what == "release":
            execution, key = about
            expected.pop((execution, key), None)
            budget.release(execution, key)
        elif what == "drop":
            budget.drop(about[0])
            expected = {each: its for each, its in expected.items() if each[0] != about[0]}
        elif what == "pass":
            clock.go_on(about[0])
            is_tried = not room.is_full and clock.now >= budget._again
            assert not is_tried or budget._due(clock.now) == []
        elif what == "disk":
            room.is_full = about[0]
        assert budget.held <= QUOTA + largest
        assert budget.held + budget.spilled == sum(len(content) for content, _ in expected.values())
        assert all(held.text() == content for content, held in expected.values())
    for execution in range(4):
        budget.drop(execution)
    expected.clear()  # an object on disk has its file
    assert (budget.held, budget.spilled, budget.full) == (0, 0, False)
    assert process.num_fds() <= before


def test_what_waits_long_goes_to_disk_and_is_the_same_there(made: Any, tmp_path: Path) -> None:
    budget, clock, _ = made
    contents: list[Any] = ["text", "grüße" * 20, b"\xff" * 70, bytearray(b"x"), b"", "x" * 200]
    objects = [Object(content) for content in contents]
    for number, each in enumerate(objects):
        budget.hold("one", number, each)
    clock.go_on(TTL - 1)
    budget.hold("one", "late", text("y", 10))
    assert budget.spilled == 0
    clock.go_on(1)
    assert budget.held == 10
    assert clock.due == [2 * TTL - 1]
    for each, content in zip(objects, contents, strict=True):
        data = content.encode() if isinstance(content, str) else bytes(content)
        assert each.data() == bytes(each.view()) == bytes(each.unsent()) == data
        assert each.text() == data.decode(errors="replace")
        assert each.answer_type() == Object(content).answer_type()
    assert list(tmp_path.iterdir()) == []


def test_the_largest_go_first_and_of_these_the_oldest(made: Any) -> None:
    budget, clock, _ = made
    for number, size in enumerate([100, 300, 300, 200, 150]):
        budget.hold("one", number, text("x", size))
        clock.go_on(1)
    assert (budget.held, budget.spilled, budget.full) == (1050, 0, True)
    budget.when_room(lambda: None)
    clock.go_on(0)
    assert (budget.held, budget.spilled, budget.full) == (750, 300, False)
    budget.hold("two", 0, text("y", 260))
    budget.when_room(lambda: None)
    clock.go_on(0)
    assert (budget.held, budget.spilled) == (710, 600)


def test_an_object_above_the_quota_waits_in_memory_unless_there_is_another(made: Any) -> None:
    """Its consumer may well come before anybody needs the room."""
    budget, clock, _ = made
    budget.hold("one", 1, text("x", 5000))
    clock.go_on(0)
    assert (budget.held, budget.spilled) == (5000, 0)
    budget.hold("one", 2, text("y", 4000))
    clock.go_on(0)
    assert (budget.held, budget.spilled) == (4000, 5000)


def test_a_sink_without_room_on_disk_pushes_back_until_there_is_some(made: Any) -> None:
    budget, clock, room = made
    told: list[str] = []
    budget.when_room(lambda: told.append("at once"))
    room.is_full = True
    budget.hold("one", 1, text("x", 900))
    budget.hold("two", 1, text("y", 900))
    budget.when_room(lambda: told.append("when one has gone"))
    clock.go_on(0)
    assert (budget.full, budget.held, told) == (True, 1800, ["at once"])
    budget.release("one", 1)
    assert (budget.full, told[1:]) == (False, ["when one has gone"])
    budget.hold("one", 2, text("z", 900))
    budget.when_room(lambda: told.append("when the disk has room"))
    room.is_full = False
    budget.when_room(lambda: told.append("it is not asked again and again"))
    clock.go_on(0)
    assert budget.full
    clock.go_on(1)
    assert (budget.full, len(told)) == (False, 4)


@pytest.fixture
def blocked(tmp_path: Path) -> Iterator[Any]:
    """A budget whose disk writes when it may, and what says that it is to write."""
    writing, go_on, due = threading.Event(), threading.Event(), list[float]()

    def write(contents: Any) -> Any:
        writing.set()
        go_on.wait()
        return Disk(tmp_path).write(contents)

    yield MemoryBudget(QUOTA, TTL, write, due.append), writing, go_on, due
    go_on.set()


def test_nobody_waits_for_the_disk_but_who_writes(blocked: Any) -> None:
    """The event loop holds objects, under the lock of their execution."""
    budget, writing, go_on, due = blocked
    objects = [text("x", 900), text("y", 900), text("z", 10)]
    for key, each in enumerate(objects):
        budget.hold("one", key, each)
    assert due, "tend is to be called"
    thread = threading.Thread(target=budget.tend)
    thread.start()
    writing.wait()
    budget.hold("two", 1, text("n", 900))
    budget.release("one", 0)
    budget.drop("two")
    go_on.set()
    thread.join()
    assert [each.text() for each in objects[1:]] == ["y" * 900, "z" * 10]
    assert budget.held + budget.spilled == 910
    budget.drop("one")
    assert (budget.held, budget.spilled) == (0, 0)


def test_who_gives_more_waits_until_there_is_room(blocked: Any) -> None:
    budget, writing, go_on, _ = blocked
    gave = threading.Event()
    budget.make_room()
    for number in range(3):
        budget.hold("one", number, text("x", 900))
    threads = [threading.Thread(target=budget.tend)]
    threads.append(threading.Thread(target=lambda: (budget.make_room(), gave.set())))
    threads[0].start()
    writing.wait()
    threads[1].start()
    assert not gave.is_set()
    go_on.set()
    for thread in threads:
        thread.join()
    assert gave.is_set() and not budget.full
    budget.drop("one")  # and with it the files


def test_nobody_waits_to_give_where_the_disk_has_no_room(made: Any) -> None:
    budget, _, room = made
    room.is_full = True
    for number in range(3):
        budget.hold("one", number, text("x", 900))
    budget.make_room()
    budget.make_room()
    assert (budget.full, budget.held) == (True, 2700)


def test_a_spilled_object_is_sent_to_processes_and_wraps(tmp_path: Path) -> None:
    content = os.urandom(1000) * 300
    objects = [Object(b"before"), Object(content)]
    for each, place in zip(objects, Disk(tmp_path).write(map(Object.view, objects)), strict=True):
        each.spill(place)
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            framing.write(theirs, [each.unsent_within() for each in objects])
        first, second = framing.read(ours)
        assert isinstance(second, Shared)
    assert (first, Object(second).data()) == (b"before", content)
    assert bytes(objects[1].unsent()) == content


def test_a_folder_in_memory_is_no_disk() -> None:
    with pytest.raises(OSError, match="is in memory"):
        Disk(Path("/dev/shm")).write([b"x"])  # noqa: S108 (what is looked for)


@pytest.mark.each_once
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])  # noqa: S108 (what is on disk, and not)
@pytest.mark.parametrize("processes", [[[0, 1, 2, 3]], [[3], [0], [1, 2]]])
def test_a_wrap_whose_objects_are_above_its_quota_answers_as_ever(
    processes: list[list[int]], folder: str, start: Any, wrap_image: Any, eventually: Any
) -> None:
    """Also where there is no disk for them."""
    grown = "def handle(req):\n    return req[:1] * (int(req[1:]) if len(req) < 20 else len(req))\n"
    late = "import time\n" + grown.replace("    return", "    time.sleep(0.3)\n    return")
    image = wrap_image(
        {"first": grown, "left": grown, "right": late, "join": "def handle(req):\n    return req"},
        processes,
        inputs={0: None, 1: 0, 2: 0, 3: [0, 1, 2, None]},
        entry={"output": [3, 1]},
        mechanism="pool",
    )
    server = start(image, WRAP_OBJECTS_MIB="1", TMPDIR=folder)
    wrap = psutil.Process(server.process.pid)

    def answer(size: int) -> Any:
        return server.request(body=f"x{size}").json

    answer(1000)
    before = wrap.num_fds()
    for size in (5000, 700_000, 3_000_000, 40_000):
        text = "x" * size
        assert answer(size) == [[text, text, text, f"x{size}"], text]
    answer(1000)
    assert ("cannot go to disk" in server.log.read_text()) == (folder == "/dev/shm")  # noqa: S108
    assert eventually(lambda: wrap.num_fds() <= before + 2 * 16)
