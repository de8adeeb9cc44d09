"""Objects are what handlers gave, wherever their bytes are, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core.errors import TaskError
from wrap.net import framing
from wrap.net.framing import Inflow
from wrap.net.messages import Result
from wrap.values.inputs import Inputs
from wrap.values.shared_memory import Shared
from wrap.values.value import Object, received

from chiron.workflow.data import resolve
from tests.rows import each_row

PAGE = os.sysconf("SC_PAGE_SIZE")
SIZES = (1, 2, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE)
LARGE = 1 << 18


def shared(value: Any) -> Any:
    return Shared.of(value)


@each_row("size", SIZES)
def test_shared_bytes_are_bytes(size: int) -> None:
    content = bytes(index % 251 for index in range(size))
    memory = shared(content)
    value = memory.data()
    assert type(value) is bytes
    assert (len(memory), len(value), value) == (size, size, content)
    assert hash(value) == hash(content)
    assert {value: 1}[content] == 1
    assert value + b"x" == content + b"x"
    assert bytes(memory.view()) == content
    assert memory.data() is value


@each_row("size", SIZES)
def test_shared_ascii_is_a_text(size: int) -> None:
    text = "".join(chr(32 + index % 90) for index in range(size))
    value = shared(text).text()
    assert type(value) is str
    assert (len(value), value, value.isascii()) == (size, text, True)
    assert hash(value) == hash(text)
    assert (value + "ü", value.encode(), value[-1]) == (text + "ü", text.encode(), text[-1])
    assert json.loads(json.dumps({value: value})) == {text: text}


def test_a_text_that_is_not_ascii_is_shared_as_utf8() -> None:
    memory = shared("grüße" * 1000)
    assert memory.text() == "grüße" * 1000
    assert memory.data() == ("grüße" * 1000).encode()
    with pytest.raises(UnicodeDecodeError):
        shared(b"\xff").text()


def test_what_is_still_referred_to_stays_and_what_is_not_goes() -> None:
    """Also by a view of it, and by a view of nothing else than a part."""
    process = psutil.Process()
    shared(b"one")  # at the end of one is looked what others still have to stay
    before = process.num_fds(), mapped(process)
    memory = shared(b"0123456789" * PAGE)
    view = memoryview(memory.data())[10:20]
    del memory
    assert mapped(process) > before[1]
    assert bytes(view) == b"0123456789"
    del view
    shared(b"another")
    # Tests before this one may close theirs meanwhile.
    assert process.num_fds() <= before[0]
    assert mapped(process) <= before[1]


def mapped(process: psutil.Process) -> int:
    return sum("memfd:object" in each.path for each in process.memory_maps(grouped=False))


def test_threads_let_values_go_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of which others still refer to; and each memory is taken away once."""
    faults: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", faults.append)
    monkeypatch.setattr(threading, "excepthook", faults.append)
    shared(b"one")
    before = mapped(psutil.Process())
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def make() -> None:
        kept: list[bytes] = []
        for number in range(200):
            content = bytes([number % 251]) * PAGE
            kept = [*kept[-3:], shared(content).data()]
            assert kept[-1] == content

    threads = [threading.Thread(target=make) for _ in range(4)]
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
    shared(b"another")
    assert faults == []
    assert mapped(psutil.Process()) == before


def test_nobody_changes_what_is_shared() -> None:
    """By no descriptor that can be had of it either."""
    memory = shared(b"x" * PAGE)
    writes = os.open(f"/proc/self/fd/{memory.fileno()}", os.O_RDWR)
    for descriptor in (memory.fileno(), writes):
        with pytest.raises(OSError, match=r"Bad file descriptor|Operation not permitted"):
            os.pwrite(descriptor, b"y", 0)
        with pytest.raises(OSError, match=r"Invalid argument|Operation not permitted"):
            os.ftruncate(descriptor, 0)
    os.close(writes)
    assert memory.data() == b"x" * PAGE


def test_memory_that_others_could_change_is_refused() -> None:
    for descriptor in (os.memfd_create("open", os.MFD_ALLOW_SEALING), os.open("/", os.O_RDONLY)):
        with pytest.raises(ValueError, match="no sealed memory"):
            Shared(descriptor, is_ascii=False)


@given(
    st.lists(st.sampled_from([b"", b"small", b"\xff" * LARGE, "text", "x" * LARGE, "ü" * LARGE]))
)
def test_frames_of_every_kind_arrive_in_order(values: list[Any]) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.setblocking(True)
            sent = [Object(value) for value in values]
            for each in sent:
                framing.write(theirs, [each.unsent_within(), "after"])
        found = [Object(frame) for frame in framing.read(ours)]
    assert [each.data() for each in found[::2]] == [each.data() for each in sent]
    assert {each.text() for each in found[1::2]} <= {"after"}


def test_descriptors_that_cannot_be_had_are_an_error_and_not_a_wrong_object() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\xff\xff\xff\xfe")
        with pytest.raises(ValueError, match="no descriptor"):
            Inflow().receive(ours)


@pytest.mark.parametrize(
    ("value", "content_type"),
    [
        ("{}", "application/json"),
        (b"[1]", "application/json"),
        ("text", "text/plain; charset=utf-8"),
        (b"\xff", "application/octet-stream"),
        (b"\x00" + b"\xff" * 100_000, "application/octet-stream"),
        ("ü" * 100_000, "text/plain; charset=utf-8"),
        (("x" + "ü" * 100_000).encode(), "text/plain; charset=utf-8"),
    ],
)
def test_an_answer_is_called_what_it_is(value: Any, content_type: str) -> None:
    assert Object(value).answer_type() == content_type
    assert Object(value, "image/png").answer_type() == "image/png"


MAKE = """
    import os
    def handle(event, context):
        return os.urandom(1024) * (int(event.body) // 1024)
"""
LENGTH = """
    kept = []
    def handle(event, context):
        del kept[:]
        kept.append(event.body)
        return {"body": str(len(event.body))}
"""
HTTP = {"styles": {"make": "http", "one": "http", "two": "http"}}


def test_consumers_share_the_memory_of_a_large_object_of_which_nothing_is_left(
    start: Any, wrap_image: Any, eventually: Any
) -> None:
    """A handler may keep it, until it has another."""
    declared = {"inputs": {0: None, 1: 0, 2: 0}, "entry": {"output": [1, 2]}} | HTTP
    handlers = {"make": MAKE, "one": LENGTH, "two": LENGTH}
    server = start(wrap_image(handlers, [[2], [0], [1]], mechanism="pool", **declared))
    megabytes = 64
    server.request(body="1000")
    before = server.descriptors()
    for _ in range(4):
        assert server.request(body=str(megabytes << 20)).json == [megabytes << 20] * 2
    wrap = psutil.Process(server.process.pid)
    used, most = 0, 0
    for each in [wrap, *wrap.children(recursive=True)]:
        used += each.memory_full_info().pss >> 20
        most = max(most, mapped(each))
    # What handlers have kept from the last two executions, and the last one's.
    assert used < 3.75 * megabytes
    assert most <= 3
    for size in (300_000, 1000, 1000):
        server.request(body=str(size))
    assert eventually(lambda: server.descriptors() <= before)


@pytest.mark.parametrize(("size", "far"), [(1000, [[1], []]), (3_000_000, [[], [1]])])
def test_bytes_go_to_another_wrap_and_back(size, far, start, wrap_image, gateway):
    """With the content type, which the next handler and the client see."""
    turn = """
        def handle(event, context):
            kind = event.headers["Content-Type"]
            return event.body[::-1], {"Content-Type": kind + "+turned"}
    """
    entry = {"output": 1, "remotes": {"test-wrap2": {1: "turn"}}}
    http = {"styles": {"turn": "http"}}
    image = wrap_image({"turn": turn}, [[], [0]], inputs={0: None, 1: 0}, entry=entry, **http)
    called = {"tasks": {1: "turn"}, "inputs": {1: 0}, "buckets": [([], [1])]}
    remote = wrap_image({"turn": turn}, far, name="test-wrap2", **called, **http)
    server = start(image, gateway_url=gateway.url)
    gateway.ports["test-wrap2"] = start(remote).port
    content = os.urandom(size)
    answer = server.request(body=content, Content_Type="image/x")
    assert answer.body == content
    assert answer.headers["Content-Type"] == "image/x+turned+turned"


@pytest.mark.parametrize("text", ["x" * LARGE, "x" * LARGE + "ü", "x"])
def test_another_wrap_learns_of_a_large_text_whether_it_is_ascii(text: str) -> None:
    """Else it would have to read all of it, to see whether it can be used as it is."""
    described, frame = Object(text, "text/plain").described()
    content = shared(frame) if len(text) > 1 else text.encode()
    got = received(content, json.loads(json.dumps(described)))
    assert (got.content_type, got.text()) == ("text/plain", text)
    assert described[1:] == (["", "ascii"] if text == "x" * LARGE else [])


def texts() -> st.SearchStrategy[str]:
    """JSON, what is nearly that, and others."""
    parts = [*'[]{},:"\\u019-+.eE \t\n\x00\x1f\x7fü', '"a"', "null", "NaN", "\\ud800", "\\ude00"]
    near = st.lists(st.sampled_from(parts), max_size=8).map("".join)
    whole = st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=4)
    return st.one_of(near, st.text(), whole.map(json.dumps))


@given(st.lists(texts(), min_size=1, max_size=4))
def test_outputs_are_joined_as_the_reference_joins_them(outputs: list[str]) -> None:
    data = Inputs({number: Object(text) for number, text in enumerate(outputs)})
    names = tuple(map(str, range(len(outputs))))
    expected = resolve(names, "", dict(zip(names, outputs, strict=True)))
    assert data.resolve([*range(len(outputs))]).text() == expected


def test_json_that_is_nested_too_deep_to_be_read_is_an_error_and_no_string() -> None:
    data = Inputs({0: Object("1"), 1: Object("[" * 5000 + "]" * 5000)})
    with pytest.raises(TaskError, match="output 2 of 2") as caught:
        data.resolve([0, 1])
    assert caught.value.code == "too-deep"


def test_tasks_that_begin_at_once_share_their_joined_input() -> None:
    class Slow(Object):
        def text(self, errors: str = "replace") -> str:
            threading.Event().wait(0.01)
            return super().text(errors)

    data = Inputs({0: Slow("a"), 1: Slow("b")})
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda _: data.resolve([0, 1]), range(8)))
    assert len(set(map(id, taken))) == 1


def memory_mib(processes: list[psutil.Process]) -> int:
    """What they have for themselves, and what is in shared memory that one of them can open."""
    own, shared = 0, dict[int, int]()
    for each in processes:
        for file in Path(f"/proc/{each.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(file.readlink()).startswith("/memfd:"):
                    shared[file.stat().st_ino] = 512 * file.stat().st_blocks
        lines = Path(f"/proc/{each.pid}/smaps_rollup").read_text().splitlines()
        own += next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:"))
    return (own + sum(shared.values())) >> 20


def test_a_large_object_is_gone_when_its_last_consumer_has_ended(
    start: Any, wrap_image: Any, tmp_path: Path, eventually: Any
) -> None:
    """The memory of six in a row never has more than those that are in use."""
    megabytes, seen = 64, tmp_path / "seen"
    source = f"""
        import os, time

        def handle(req):
            if req[:1] == "4":
                open({str(tmp_path / "there")!r}, "w").close()
                while not os.path.exists({str(seen)!r}):
                    time.sleep(0.01)
                return "done"
            return chr(ord(req[0]) + 1) * ({megabytes} << 20)
    """
    wrap = start(
        wrap_image(
            {"step": source},
            [[], [*range(6)]],
            inputs={0: None} | {number: number - 1 for number in range(1, 6)},
            tasks=dict.fromkeys(range(6), "step"),
            entry={"output": 5},
            mechanism="pool",
        )
    )

    def used_mib() -> int:
        try:
            assert eventually((tmp_path / "there").exists)
            process = psutil.Process(wrap.process.pid)
            return memory_mib([process, *process.children(recursive=True)])
        finally:
            seen.touch()

    with ThreadPoolExecutor(1) as thread:
        used = thread.submit(used_mib)
        assert wrap.request(body="/").text == "done"
    assert used.result() < 3.5 * megabytes


@pytest.mark.parametrize("message", ["ü", "half of a pair: \ud800"])
def test_a_result_crosses_with_whatever_text_its_error_has(message: str) -> None:
    sent = Result(1 << 57, 0, "f", "w", 1, 1.0, 2.5, error={"code": "raised", "message": message})
    frames = [each if isinstance(each, bytes) else each.encode() for each in sent.frames_within()]
    assert Result.read([bytearray(each) for each in frames]) == [sent]
