"""Streams that are read while they are written: between threads, processes and wraps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import psutil
import pytest

from tests.templates.streams import (
    LARGE_READER,
    LARGE_WRITER,
    MEGABYTE,
    READER,
    SLOW,
    TASKS,
    WRITER,
    declared,
    of,
)

LAYOUTS = {
    "threads": [[WRITER, READER]],
    "together": [[], [WRITER, READER]],
    "apart": [[READER], [WRITER]],
    "further": [[], [WRITER], [READER]],
}
MECHANISMS = {"threads": "fork", "together": "fork", "apart": "pool", "further": "pool"}
in_each_layout = pytest.mark.parametrize("layout", LAYOUTS)

#: Goes on when what it has written has been read.
CHECKED_WRITER = """
    import os, time
    from chiron_io import open_output

    def handle(req):
        with open_output() as out:
            out.write(b"first ")
            out.flush()
            until = time.monotonic() + 20
            while not os.path.exists(req):
                assert time.monotonic() < until
                time.sleep(0.001)
            out.write(b"second")
"""
CHECKED_READER = """
    import pathlib
    from chiron_io import open_input

    def handle(req):
        with open_input("writer") as stream:
            first = stream.read(6)
            pathlib.Path(PATH).touch()
            return first + stream.read()
"""


@pytest.fixture
def serve(start: Any, wrap_image: Any) -> Any:
    """Starts a wrap with a writer and readers."""

    def serve(
        writer: str,
        reader: str,
        processes: list[list[int]],
        mechanism: str = "fork",
        styles: dict[str, str] | None = None,
        slow: str = "",
        settings: dict[str, str] | None = None,
        **fields: Any,
    ) -> Any:
        handlers = {"writer": writer, "reader": reader} | ({"slow": slow} if slow else {})
        readers = [READER, SLOW] if slow else [READER]
        image = wrap_image(
            handlers, processes, mechanism=mechanism, styles=styles, **declared(readers, **fields)
        )
        return start(image, **settings or {})

    return serve


#: Is the handler in a file.
IS_IN = """
    from pathlib import Path
    from chiron_io import open_input, open_output

    def handle(req):
        names = {{}}
        exec(Path({file!r}).read_text(), names)
        return names["handle"](req)
"""


@pytest.fixture(scope="module")
def shared(shared_start: Any, shared_image: Any, tmp_path_factory: Any) -> Any:
    """Has the writer and the reader of a layout be these: its server, which others have too."""
    servers = dict[str, Any]()
    folder = tmp_path_factory.mktemp("handlers")

    def shared(writer: str, reader: str, layout: str) -> Any:
        for name, source in (("writer", writer), ("reader", reader)):
            (folder / name).write_text(dedent(source))
        if layout not in servers:
            handlers = {
                name: IS_IN.format(file=str(folder / name)) for name in ("writer", "reader")
            }
            fields = declared([READER], attempts=1, mechanism=MECHANISMS[layout])
            servers[layout] = shared_start(shared_image(handlers, LAYOUTS[layout], **fields))
        return servers[layout]

    return shared


@in_each_layout
def test_it_is_read_while_it_is_written(
    layout: str, shared: Any, tmp_path: Path, eventually: Callable[..., bool]
) -> None:
    seen = tmp_path / "seen"
    reader = CHECKED_READER.replace("PATH", repr(str(seen)))
    server = shared(CHECKED_WRITER, reader, layout)
    descriptors = []
    for _ in range(20):
        answer = server.request(body=str(seen))
        assert (answer.status, answer.text) == (200, "first second")
        seen.unlink()
        descriptors.append(server.descriptors())
    assert eventually(lambda: server.descriptors() <= descriptors[2])


#: Writes which sockets a program has that it starts.
STARTING_WRITER = """
    import subprocess
    from chiron_io import open_output

    def handle(req):
        with open_output() as out:
            out.write(b"begun ")
            out.flush()
            listed = subprocess.check_output(["ls", "-l", "/proc/self/fd"], close_fds=False)
            out.write(b" ".join(word for word in listed.split() if word.startswith(b"socket")))
"""
READING = """
    from chiron_io import open_input

    def handle(req):
        with open_input("writer") as stream:
            return stream.read()
"""


@in_each_layout
def test_a_program_that_its_writer_starts_has_no_end_of_it(layout: str, shared: Any) -> None:
    assert shared(STARTING_WRITER, READING, layout).request().text == "begun "


def peak_bytes(process: psutil.Process) -> int:
    """The most memory that a process has taken so far; of one that has ended, 0."""
    with contextlib.suppress(OSError, IndexError):
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) << 10
    return 0


@in_each_layout
def test_a_large_one_takes_no_more_memory_than_its_buffers(layout: str, shared: Any) -> None:
    server = shared(LARGE_WRITER, LARGE_READER, layout)
    assert server.request(body="4").text == of(4)
    processes = [psutil.Process(server.process.pid), *server.family()]
    before = {each.pid: peak_bytes(each) for each in processes}
    assert server.request(body="96").text == of(96)
    grown = [peak_bytes(each) - before[each.pid] for each in processes]
    assert max(grown) < 32 * MEGABYTE


@in_each_layout
@pytest.mark.parametrize("body", ["raise KeyError('no luck')", "import os; os._exit(3)"])
def test_a_writer_that_fails_fails_its_reader_at_once(layout: str, body: str, shared: Any) -> None:
    """And its error is the answer, whichever is known first."""
    writer = f"""
        from chiron_io import open_output

        def handle(req):
            with open_output() as out:
                out.write(b"some of it")
                out.flush()
                {body}
    """
    if "_exit" in body and layout == "threads":
        pytest.skip("what ends the server ends all of it")
    server = shared(writer, LARGE_READER, layout)
    answer = server.request(body="1")
    assert answer.status == 500
    assert answer.json["function"] == ("writer" if "raise" in body else answer.json["function"])
    assert answer.json["code"] == ("raised" if "raise" in body else "process-died")


def has_computed(process: psutil.Process) -> bool:
    """Whether a process is there that has computed for long."""
    try:
        return bool(process.cpu_times().user > 5)
    except psutil.NoSuchProcess:  # it has ended since it was listed
        return False


@in_each_layout
def test_a_reader_that_fails_ends_its_writer_at_once(
    layout: str, shared: Any, eventually: Callable[..., bool]
) -> None:
    reader = """
        from chiron_io import open_input

        def handle(req):
            open_input().read(10)
            raise KeyError("no luck")
    """
    server = shared(LARGE_WRITER, reader, layout)
    before = server.threads()
    answer = server.request(body="100000")
    assert (answer.status, answer.json["code"], answer.json["function"]) == (
        500,
        "raised",
        "reader",
    )
    assert eventually(lambda: not any(map(has_computed, server.family())))
    assert eventually(lambda: server.threads() <= before + 4)
    assert server.request(body="1").json["code"] == "raised"


@in_each_layout
def test_what_is_not_read_to_its_end_holds_nobody_up(layout: str, shared: Any) -> None:
    for number, body in enumerate(("return open_input().read(3)", "return 'none'")):
        reader = f"""
            from chiron_io import open_input

            def handle(req):
                {body}
        """
        server = shared(LARGE_WRITER, reader, layout)
        assert server.request(body="8").text == ("\0\0\0", "none")[number]


def test_a_slow_reader_holds_back_the_writer_and_a_fast_one(serve: Any, tmp_path: Path) -> None:
    """Nothing goes to disk, as what is slow goes on."""
    slow = """
        import time
        from chiron_io import open_input

        def handle(req):
            stream, found = open_input(), 0
            while data := stream.read(1 << 16):
                found += len(data)
                time.sleep(0.001)
            return str(found)
    """
    layout = [[READER], [WRITER], [SLOW]]
    settings = {"TMPDIR": str(tmp_path / "nothing-can-be-written-here")}
    server = serve(LARGE_WRITER, LARGE_READER, layout, slow=slow, settings=settings)
    assert server.request(body="8").json == [int(of(8)), 8 * MEGABYTE]


def test_one_that_takes_nothing_for_long_gets_it_from_disk(serve: Any, tmp_path: Path) -> None:
    """The other one has got all of it before."""
    slow = """
        import os, time
        from chiron_io import open_input

        def handle(req):
            until = time.monotonic() + 20
            while not os.path.exists(PATH):
                assert time.monotonic() < until
                time.sleep(0.001)
            return str(len(open_input().read()))
    """
    fast = LARGE_READER.replace("return str(found)", "open(PATH, 'w').close(); return str(found)")
    path = repr(str(tmp_path / "seen"))
    server = serve(
        LARGE_WRITER,
        fast.replace("PATH", path),
        [[READER], [WRITER], [SLOW]],
        slow=slow.replace("PATH", path),
    )
    assert server.request(body="8").json == [int(of(8)), 8 * MEGABYTE]


@pytest.mark.each_once
@pytest.mark.parametrize("layout", ["apart", "further"])
@pytest.mark.parametrize("who", ["writer", "reader"])
def test_what_was_lost_with_a_process_runs_again(
    layout: str, who: str, serve: Any, tmp_path: Path
) -> None:
    died = tmp_path / "died"
    path = repr(str(died))
    dies = (
        f"import os; os.path.exists({path}) or [open({path}, 'w').close(), os.kill(os.getpid(), 9)]"
    )
    if who == "reader" and layout == "apart":
        pytest.skip("the reader is in the server")
    handlers = {"writer": LARGE_WRITER, "reader": LARGE_READER}
    head = "def handle(req):\n"
    handlers[who] = handlers[who].replace(head, f"{head}        {dies}\n")
    server = serve(handlers["writer"], handlers["reader"], LAYOUTS[layout], attempts=2)
    assert server.request(body="8").text == of(8)
    assert died.exists()


def test_a_handler_that_yields_writes_what_it_yields(serve: Any, tmp_path: Path) -> None:
    """The writer goes on when the reader has had the first piece."""
    writer = """
        import os, time

        def handle(event, context):
            path = event.body.decode()
            yield path
            while not os.path.exists(path):
                time.sleep(0.005)
            yield " is there"
    """
    reader = """
        from chiron_io import open_input

        def handle(req):
            stream = open_input()
            path = stream.read1()
            open(path, "w").close()
            return path + stream.read()
    """
    server = serve(writer, reader, LAYOUTS["further"], styles={"writer": "http"})
    answer = server.request(body=str(tmp_path / "had"))
    assert answer.body == f"{tmp_path}/had is there".encode()


def test_a_stream_that_there_is_not_is_named_with_those_that_there_are(serve: Any) -> None:
    reader = """
        from chiron_io import open_input

        def handle(req):
            return open_input("writter").read()
    """
    answer = serve(LARGE_WRITER, reader, LAYOUTS["threads"]).request(body="1")
    assert "no stream is called writter: writer" in answer.json["message"]
    words = {"reader": ["cat", "{in:writter}"]}
    answer = serve(
        *(LARGE_WRITER, {"data.txt": ""}, LAYOUTS["threads"]),
        styles={"reader": "command"},
        commands=words,
        name="test-wrap2",
    ).request(body="1")
    assert answer.json["code"] == "no-stream"
    assert "no stream is called writter: writer" in answer.json["message"]


def test_a_command_reads_and_writes_streams(serve: Any) -> None:
    """Its stdin is the stream that it does not name, and another of its outputs is a file."""
    rest = 3
    server = serve(
        LARGE_WRITER,
        {"data.txt": ""},
        [[], [WRITER], [READER, rest], [SLOW]],
        slow="def handle(req): return str(len(req))",
        styles={"reader": "command"},
        commands={"reader": ["sh", "-c", "head -c 5; cat > {out:rest}"]},
        tasks=TASKS | {rest: "reader"},
        emits={rest: (READER, "rest")},
        inputs={WRITER: None, READER: [], rest: [], SLOW: rest},
        streams={READER: {"writer": WRITER}},
        live={WRITER: [READER]},
        buckets=[([], [WRITER]), ([WRITER], [READER, rest]), ([rest], [SLOW])],
        live_buckets=[([], [WRITER, READER, rest]), ([rest], [SLOW])],
    )
    assert server.request(body="8").json == ["\0" * 5, 8 * MEGABYTE - 5]
