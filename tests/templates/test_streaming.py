"""Streams that are read while they are written: between threads, processes and wraps."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

WRITER, READER, SLOW = range(3)
#: All of a workflow's tasks but the slow reader, or with it.
TASKS = {WRITER: "writer", READER: "reader", SLOW: "slow"}
LAYOUTS = {
    "threads": [[WRITER, READER]],
    "together": [[], [WRITER, READER]],
    "apart": [[READER], [WRITER]],
    "further": [[], [WRITER], [READER]],
}
in_each_layout = pytest.mark.parametrize("layout", LAYOUTS)
MEGABYTE = 1 << 20

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

    def handle(event, context):
        with open_input("writer") as stream:
            first = stream.read(6)
            pathlib.Path(PATH).touch()
            return first + stream.read()
"""
LARGE_WRITER = """
    from chiron_io import open_output

    def handle(req):
        with open_output() as out:
            for number in range(int(req)):
                out.write(bytes([number % 251]) * (1 << 20))
"""
LARGE_READER = """
    import zlib
    from chiron_io import open_input

    def handle(req):
        found = 0
        with open_input() as stream:
            while data := stream.read(1 << 16):
                found = zlib.crc32(data, found)
        return str(found)
"""


def declared(readers: list[int] = [READER], **fields: Any) -> dict[str, Any]:  # noqa: B006
    return {
        "tasks": {task: TASKS[task] for task in (WRITER, *readers)},
        "inputs": {WRITER: None} | {reader: [] for reader in readers},
        "buckets": [([], [WRITER]), ([WRITER], readers)],
        "streams": {reader: {"writer": WRITER} for reader in readers},
        "live": {WRITER: readers},
        "passing": [WRITER],
        "live_buckets": [([], [WRITER, *readers])],
        "entry": {"output": readers if len(readers) > 1 else readers[0]},
    } | fields


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


def of(megabytes: int) -> str:
    """What the large reader answers."""
    found = 0
    for number in range(megabytes):
        found = zlib.crc32(bytes([number % 251]) * MEGABYTE, found)
    return str(found)


@pytest.mark.parametrize("mechanism", ["fork", "pool"])
@in_each_layout
def test_it_is_read_while_it_is_written(
    mechanism: str, layout: str, serve: Any, tmp_path: Path, eventually: Callable[..., bool]
) -> None:
    seen = tmp_path / "seen"
    reader = CHECKED_READER.replace("PATH", repr(str(seen)))
    server = serve(CHECKED_WRITER, reader, LAYOUTS[layout], mechanism, styles={"reader": "http"})
    descriptors = []
    for _ in range(20):
        answer = server.request(body=str(seen))
        assert (answer.status, answer.text) == (200, "first second")
        seen.unlink()
        descriptors.append(server.descriptors())
    assert eventually(lambda: server.descriptors() <= descriptors[2])


@in_each_layout
def test_a_large_one_takes_no_more_memory_than_its_buffers(layout: str, serve: Any) -> None:
    server = serve(LARGE_WRITER, LARGE_READER, LAYOUTS[layout], "pool")
    assert server.request(body="4").text == of(4)
    processes = [psutil.Process(server.process.pid), *server.family()]
    before = {each.pid: each.memory_full_info().uss for each in processes}
    assert server.request(body="256").text == of(256)
    grown = [each.memory_full_info().uss - before[each.pid] for each in processes]
    assert max(grown) < 4 * MEGABYTE


@in_each_layout
@pytest.mark.parametrize("body", ["raise KeyError('no luck')", "import os; os._exit(3)"])
def test_a_writer_that_fails_fails_its_reader_at_once(layout: str, body: str, serve: Any) -> None:
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
    server = serve(writer, LARGE_READER, LAYOUTS[layout], attempts=1)
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
    layout: str, serve: Any, eventually: Callable[..., bool]
) -> None:
    reader = """
        from chiron_io import open_input

        def handle(req):
            open_input().read(10)
            raise KeyError("no luck")
    """
    server = serve(LARGE_WRITER, reader, LAYOUTS[layout])
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
def test_what_is_not_read_to_its_end_holds_nobody_up(layout: str, serve: Any) -> None:
    for number, body in enumerate(("return open_input().read(3)", "return 'none'")):
        reader = f"""
            from chiron_io import open_input

            def handle(req):
                {body}
        """
        name = f"test-wrap{number}"
        server = serve(LARGE_WRITER, reader, LAYOUTS[layout], name=name)
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


@pytest.mark.parametrize("style", ["flask", "http"])
def test_what_it_yields_is_its_answer_where_nothing_reads_it(
    style: str, start: Any, wrap_image: Any
) -> None:
    handler = """
        def handle(*given):
            yield "some "
            yield b"and more"
    """
    server = start(wrap_image({"a": handler}, styles={"a": style}, entry={"output": 0}))
    assert server.request().text == "some and more"


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


class TwoWraps:
    """The writer in one wrap and the reader in another; either is the entry."""

    def __init__(self, image: Any, start: Any, gateway: Any, folder: Path) -> None:
        self._image, self._start, self._gateway, self._folder = image, start, gateway, folder
        self.servers: dict[str, Any] = {}
        self._images: dict[str, Path] = {}
        (folder / "secrets").mkdir()
        (folder / "secrets" / "chiron-direct").write_text("a secret")

    def begin(self, home: str, further: bool, secret: bool = True, **fields: Any) -> None:
        self._settings = {"secrets_dir": str(self._folder / "secrets")} if secret else {}
        self._settings["pool_concurrency"] = "1"
        handlers = {"writer": LARGE_WRITER, "reader": LARGE_READER}
        for task, name in ((WRITER, "writer"), (READER, "reader")):
            other = {WRITER: READER, READER: WRITER}[task]
            remotes = {f"test-{TASKS[other]}": {other: TASKS[other]}}
            its = declared(tasks={task: name}, remotes=remotes) | fields
            if name != home:
                its["entry"] = None
            self._images[name] = self._image(
                {name: handlers[name]},
                [[], [task]] if further else [[task]],
                name=f"test-{name}",
                attempts=2,
                **its,
            )
            self.start(name)

    def start(self, name: str) -> None:
        server = self._start(
            self._images[name],
            gateway_url=self._gateway.url,
            chiron_trace_key="key",
            **self._settings,
        )
        self.servers[name] = server
        self._gateway.ports[f"test-{name}"] = server.port


@pytest.fixture
def two_wraps(wrap_image: Any, start: Any, gateway: Any, tmp_path: Path) -> TwoWraps:
    folder = tmp_path / "two"
    folder.mkdir()
    return TwoWraps(wrap_image, start, gateway, folder)


@pytest.mark.parametrize("further", [False, True])
@pytest.mark.parametrize("home", ["writer", "reader"])
def test_between_wraps_it_goes_over_a_connection_of_its_own(
    home: str,
    further: bool,
    two_wraps: TwoWraps,
    gateway: Any,
    eventually: Callable[..., bool],
) -> None:
    two_wraps.begin(home, further)
    for megabytes in (0, 1, 64):
        assert two_wraps.servers[home].request(body=str(megabytes)).text == of(megabytes)
    assert gateway.calls == 0
    before = {name: server.descriptors() for name, server in two_wraps.servers.items()}
    for _ in range(20):
        assert two_wraps.servers[home].request(body="1").text == of(1)
    for name, server in two_wraps.servers.items():
        assert eventually(lambda s=server, n=name: s.descriptors() <= before[n])


@pytest.mark.parametrize("home", ["writer", "reader"])
def test_executions_do_not_wait_for_ends_of_each_other(
    home: str, two_wraps: TwoWraps, in_background: Any
) -> None:
    """A wrap has a worker for one, and it need not be the same one that the other wrap runs."""
    two_wraps.begin(home, further=True, mechanism="pool")
    answers = [in_background(two_wraps.servers[home].request, body="8") for _ in range(12)]
    assert [answer.result().text for answer in answers] == [of(8)] * 12


def test_without_connections_it_is_written_before_it_is_read(
    two_wraps: TwoWraps, gateway: Any
) -> None:
    two_wraps.begin("reader", further=True, secret=False)
    for megabytes in (0, 8):
        assert two_wraps.servers["reader"].request(body=str(megabytes)).text == of(megabytes)
    assert gateway.calls > 0
    traced = two_wraps.servers["reader"].request(body="0", X_Chiron_Trace="key").json
    ((begun_ms, ended_ms),) = (
        span["reads_ms"] for span in traced["timeline"]["spans"] if "reads_ms" in span
    )
    assert 0 < begun_ms <= ended_ms


@pytest.mark.parametrize(("home", "killed"), [("writer", "reader"), ("reader", "writer")])
def test_a_wrap_that_is_killed_in_the_middle_costs_no_answer(
    home: str, killed: str, two_wraps: TwoWraps, in_background: Any
) -> None:
    two_wraps.begin(home, further=True)
    assert two_wraps.servers[home].request(body="1").text == of(1)
    for _ in range(2):
        answer = in_background(two_wraps.servers[home].request, body="400")
        time.sleep(0.1)
        assert not answer.done()
        two_wraps.servers[killed].process.kill()
        two_wraps.servers[killed].process.wait()
        two_wraps.start(killed)
        assert answer.result().text == of(400)


@pytest.mark.parametrize(("home", "killed"), [("writer", "reader"), ("reader", "writer")])
def test_a_wrap_that_does_not_come_back_is_named(
    home: str, killed: str, two_wraps: TwoWraps
) -> None:
    two_wraps.begin(home, further=True)
    assert two_wraps.servers[home].request(body="1").text == of(1)
    two_wraps.servers[killed].process.kill()
    two_wraps.servers[killed].process.wait()
    answer = two_wraps.servers[home].request(body="1", X_Chiron_Timeout="2")
    assert answer.status == 504
    assert f"test-{killed} ended, and was not there again" in answer.text


ALONE = {
    "takes all and answers": """
        import time
        from chiron_io import open_input

        def handle(req):
            time.sleep(0.1)
            found = open_input().read()
            time.sleep(0.1)
            return found
    """,
    "takes and gives piece by piece": """
        import time
        from chiron_io import open_input

        def handle(req):
            time.sleep(0.1)
            with open_input() as stream:
                while data := stream.read(1 << 16):
                    time.sleep(0.1)
                    yield data
    """,
    "takes and writes": """
        import time
        from chiron_io import open_input, open_output

        def handle(req):
            time.sleep(0.1)
            with open_input() as stream, open_output() as out:
                while data := stream.read(1 << 16):
                    time.sleep(0.1)
                    out.write(data)
    """,
}


@pytest.mark.parametrize(
    ("reader", "reads_ms", "writes_ms"),
    [
        ("takes all and answers", [100, 100], None),
        ("takes and gives piece by piece", [100, 200], 200),
        ("takes and writes", [100, 200], 200),
    ],
)
def test_of_a_task_alone_the_timeline_says_when_it_reads_and_writes(
    reader: str, reads_ms: list[float], writes_ms: float | None, start: Any, wrap_image: Any
) -> None:
    image = wrap_image(
        {"reader": ALONE[reader]},
        [[READER]],
        tasks={READER: "reader"},
        inputs={READER: None},
        streams={READER: {"writer": -1}},
        entry={"output": READER},
    )
    stream = "x" * 100_000  # of two pieces
    answer = start(image, chiron_trace_key="key").request(
        body=json.dumps({"input": "", "streams": {"writer": stream}}), X_Chiron_Trace="key"
    )
    assert answer.json["output"] == stream
    (row,) = answer.json["timeline"]["spans"]
    slept_ms = 200 if writes_ms is None else 300
    for moment, expected_ms in zip(row["reads_ms"], reads_ms, strict=True):
        assert_between_sleeps(row, moment, expected_ms, slept_ms)
    if writes_ms is None:
        assert "writes_ms" not in row
    else:
        assert_between_sleeps(row, row["writes_ms"], writes_ms, slept_ms)


def assert_between_sleeps(
    row: dict[str, Any], moment: float, before_ms: float, slept_ms: float
) -> None:
    """A run sleeps for `before_ms` until a moment, and for the rest of `slept_ms` after it.

    A busy machine makes both longer, and neither shorter.
    """
    assert moment - row["start_ms"] > before_ms - 1
    assert row["end_ms"] - moment > slept_ms - before_ms - 1


def test_of_a_command_alone_the_timeline_says_when_it_reads_and_writes(
    start: Any, wrap_image: Any
) -> None:
    """It takes all but what fits into the pipe after 0.1 s, and answers 0.1 s later."""
    image = wrap_image(
        {"reader": {"run.sh": "#!/bin/sh\nsleep 0.1\nwc -c\nsleep 0.1\n"}},
        [[READER]],
        tasks={READER: "reader"},
        inputs={READER: []},
        streams={READER: {"writer": -1}},
        styles={"reader": "command"},
        commands={"reader": ["./run.sh"]},
        entry={"output": READER},
    )
    (image / "function" / "functions" / "reader" / "function" / "run.sh").chmod(0o755)
    stream = "x" * 300_000
    answer = start(image, chiron_trace_key="key").request(
        body=json.dumps({"input": "", "streams": {"writer": stream}}), X_Chiron_Trace="key"
    )
    assert answer.json["output"] == "300000\n"
    (row,) = answer.json["timeline"]["spans"]
    moments = [*row["reads_ms"], row["writes_ms"]]
    # The wrap sees from outside what the command does, and may see it late.
    for moment, before_ms in zip(moments, [0, 100, 100], strict=True):
        assert row["start_ms"] + before_ms - 1 < moment < row["end_ms"]
