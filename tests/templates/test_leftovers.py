"""Which of the things that a module opens two processes may share, and which functions are late."""

from __future__ import annotations

import _random
import gc
import mmap
import os
import stat
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from wrap.functions import leftovers, loader
from wrap.functions.leftovers import Descriptor, Open
from wrap.workers import randomness

from tests.rows import each_row

READS, WRITES, BOTH = os.O_RDONLY, os.O_WRONLY, os.O_RDWR
FILE, DEVICE, PIPE, SOCKET = stat.S_IFREG, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK


@each_row(
    ("descriptor", "can_be"),
    [
        (Descriptor("/dev/null", DEVICE, BOTH), True),
        (Descriptor("/dev/urandom", DEVICE, READS), True),
        (Descriptor("/var/log/own", FILE, WRITES | os.O_APPEND), True),
        (Descriptor("/var/log/own", FILE, WRITES), False),
        (Descriptor("/var/log/own", FILE, BOTH | os.O_APPEND), False),
        (Descriptor("/data", FILE, READS), False),
        (Descriptor("/data", FILE, READS, only_mapped=True), True),
        (Descriptor("/data", FILE, BOTH, only_mapped=True), False),
        (Descriptor("/memfd:x (deleted)", FILE, BOTH), False),
        (Descriptor("/data", stat.S_IFDIR, READS), False),
        (Descriptor("socket:[7]", SOCKET, BOTH), False),
        (Descriptor("pipe:[7]", PIPE, READS), False),
        (Descriptor("anon_inode:[eventpoll]", 0, BOTH), False),
    ],
)
def test_what_processes_may_share(descriptor: Descriptor, can_be: bool) -> None:
    assert descriptor.can_be_shared is can_be


def test_what_has_come_since_is_what_is_new_or_another_of_the_same_number() -> None:
    """Of that, threads that a fork ends and some descriptors cannot be shared."""
    null, data = Descriptor("/dev/null", DEVICE, BOTH), Descriptor("/data", FILE, READS)
    before = Open({3: null, 4: null, 5: data}, {1: "main", 2: "own"})
    after = Open({3: null, 4: data, 6: data, 7: null}, {1: "main", 7: "pool", 8: "own"})
    found = after.since(before)
    assert found == Open({4: data, 6: data, 7: null}, {7: "pool", 8: "own"})
    assert found.unshareable({8, 9}) == Open({4: data, 6: data}, {8: "own"})


def test_a_file_is_only_mapped_where_no_file_object_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"x")
    with path.open("rb") as file:
        number = file.fileno()
        memory = mmap.mmap(number, 0, access=mmap.ACCESS_READ)
        found = {
            n: each for n, each in leftovers.look().descriptors.items() if each.name == str(path)
        }
    assert {n: each.only_mapped for n, each in found.items() if n == number} == {number: False}
    assert [each.only_mapped for n, each in found.items() if n != number] == [True]
    memory.close()


def test_a_thread_outlasts_a_fork_unless_its_library_ends_it() -> None:
    goes_on, ends = threading.Event(), threading.Event()
    one, other = threading.Thread(target=goes_on.wait), threading.Thread(target=ends.wait)
    one.start()
    other.start()

    def before() -> None:
        ends.set()
        other.join()

    os.register_at_fork(before=before)
    try:
        assert one.native_id is not None and other.native_id is not None
        assert leftovers.outlasting([one.native_id, other.native_id]) == {one.native_id}
    finally:
        goes_on.set()
        one.join()


class _Function:
    def __init__(self, name: str, opens: list[Any]) -> None:
        self.name = name
        self._opens = opens

    def prepare(self) -> None:
        self._opens.extend(os.pipe() if self.name.startswith("pipes") else [])


def test_each_function_is_late_for_what_its_own_import_has_opened() -> None:
    opened: list[int] = []
    functions: Any = [_Function(name, opened) for name in ("first", "pipes", "last", "pipes-too")]
    try:
        late = loader.load_shared(functions, [])
        assert list(late) == ["pipes", "pipes-too"]
        assert all(name.startswith("pipe:[") for each in late.values() for name in each.opens)
    finally:
        for number in opened:
            os.close(number)


def test_the_libraries_of_late_functions_are_late_too_where_they_open_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    (tmp_path / "opens_own.py").write_text("import os\nENDS = os.pipe()\n")
    (tmp_path / "opens_not.py").write_text("")
    assert loader.load_shared([], ["opens_not", "not_there"]) == {}
    late = loader.load_shared([], ["opens_own"])
    assert list(late) == [loader.LIBRARIES]
    for number in sys.modules.pop("opens_own").ENDS:
        os.close(number)


def test_generators_of_torch_are_seeded_though_the_collector_does_not_track_them(monkeypatch):
    torch = ModuleType("torch")
    held = [_random.Random(1), _random.Random(2)]
    torch.__dict__.update(Generator=_random.Random, default_generator=held[0])
    monkeypatch.setitem(sys.modules, "torch", torch)
    before = [each.getstate() for each in held]
    assert not any(map(gc.is_tracked, held))
    for seed in randomness.generators():
        if getattr(seed, "__self__", None) in held:
            seed()
    assert all(each.getstate() != state for each, state in zip(held, before, strict=True))
