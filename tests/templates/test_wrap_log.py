"""What functions print is in the log, line by line, each line with its function's name."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from wrap.observe.log import Log

TWO: dict[str, Any] = {"output": [0, 1]}
ONE: dict[str, Any] = {"output": 0}
PLACES = {"main": [[0, 1]], "further": [[], [0, 1]], "apart": [[0], [1]]}


@pytest.mark.parametrize(("place", "mechanism"), [("main", "fork"), ("apart", "pool")])
def test_every_line_names_its_function(
    place: str, mechanism: str, start: Any, wrap_image: Any, eventually: Any
) -> None:
    handler = """
        import sys, time
        def handle(req):
            for number in range(50):
                print("line", number, "of", "{name}", end=" ")
                time.sleep(0.0001)
                print("!", file=sys.stdout)
            return "1"
    """
    handlers = {name: handler.replace("{name}", name) for name in ("one", "the-other")}
    image = wrap_image(handlers, PLACES[place], mechanism=mechanism, entry=TWO)
    server = start(image)
    assert server.request().status == 200
    expected = {f"[{name}] line {n} of {name} !" for name in handlers for n in range(50)}

    def is_complete() -> bool:
        lines = [line for line in server.log.read_text().splitlines() if line.startswith("[")]
        return len(lines) == 100 and set(lines) == expected

    assert eventually(is_complete), server.log.read_text()


#: How a handler prints -> the lines of the log. The last one leaves its process without stdout.
PRINTED = {
    "print('a', end='')": ["[one] a"],
    "print('a\\nb\\n\\nc')": ["[one] a", "[one] b", "[one] ", "[one] c"],
    "print('grüße \\udc80')": ["[one] grüße \\udc80"],
    "print('x' * 40_000)": ["[one] " + "x" * 32_768, "[one] " + "x" * 7_232],
    "sys.stderr.write('a')": ["[one] a"],
    "sys.stdout.buffer.write('grü'.encode()); print('ße')": ["[one] grüße"],
    "logging.getLogger('x').warning('a')": ["[one] a"],
    "t = threading.Thread(target=say); t.start(); t.join()": ["[one] said"],
    "t = threading.Thread(target=begin); t.start(); t.join()": ["[one] begun"],
    "begin(); os.fork() or (print('b'), os._exit(0)); os.wait(); print()": [
        *("[one] b", "[one] begun"),
    ],
    "subprocess.run(['echo', 'a'], stdout=sys.stdout.buffer)": ["a"],
    "print(sys.stdout.name, sys.stderr.name)": ["[one] <stdout> <stderr>"],
    "os.write(1, b'raw\\n')": ["raw"],
    "sys.stdout.reconfigure(line_buffering=True); print('a')": ["[one] a"],
    "sys.stdout.reconfigure(encoding='ascii', errors='replace'); print('ü')": ["[one] ?"],
    "sys.stdout.reconfigure(encoding='utf-8'); print('ü', sys.stdout.errors)": ["[one] ü strict"],
    "io.TextIOWrapper(sys.stdout.detach(), 'utf-8').write('ü\\n')": ["[one] ü"],
    "sys.stdout.close(); sys.stderr.close(); print('a')": ["[one] a"],
    "turn == 'first' and os.close(1); print('a')": ["[one] a"],
}


@pytest.mark.parametrize("processes", [[[0]], [[], [0]]], ids=["main", "further"])
def test_however_it_is_printed(
    processes: Any, start: Any, wrap_image: Any, eventually: Any
) -> None:
    handler = """
        import io, logging, os, subprocess, sys, threading
        def say():
            print("said")
        def begin():
            print("begun", end="")
        def handle(req):
            turn, _, code = req.partition(" ")
            exec(code)
            return "ok"
    """
    server = start(wrap_image({"one": handler}, processes, entry=ONE))
    said: list[str] = []
    for code, lines in PRINTED.items():
        for turn in ("first", "second"):
            assert server.request(body=f"{turn} {code}").text == "ok"
        said.extend(lines * 2)
        assert eventually(lambda: server.log.read_text().splitlines() == said), code


def test_each_function_says_for_itself_what_becomes_of_its_text(
    start: Any, wrap_image: Any
) -> None:
    handler = """
        import json, sys
        {}
        def handle(req):
            try:
                print("\\ud800")
            except UnicodeEncodeError:
                return json.dumps([sys.stdout.encoding, sys.stdout.errors, "refused"])
            return json.dumps([sys.stdout.encoding, sys.stdout.errors])
    """
    sets = ("sys.stdout.reconfigure(encoding='latin-1', errors='ignore')", "")
    handlers = {f"f{number}": handler.format(each) for number, each in enumerate(sets)}
    server = start(wrap_image(handlers, entry=TWO))
    answers = [["latin-1", "ignore"], ["utf-8", "surrogateescape", "refused"]]
    assert [server.request().json for _ in range(2)] == [answers] * 2


def test_no_line_is_lost_in_a_full_pipe_that_does_not_block() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with ThreadPoolExecutor(1) as thread, os.fdopen(reader, "rb") as log:
        written = thread.submit(Log(writer, "<stdout>").emit, "one", b"x" * 1_000_000)
        lines = [log.readline() for _ in range(31)]
        written.result()
    os.close(writer)
    assert sum(line.count(b"x") for line in lines) == 1_000_000


def test_a_carriage_return_within_a_line_begins_no_new_one() -> None:

    reader, writer = os.pipe()
    Log(writer, "<stdout>").emit("one", b"10 %\r20 %\r\n\nend\rof it")
    os.close(writer)
    with os.fdopen(reader, "rb") as log:
        assert log.read() == b"[one] 10 %\r20 %\n[one] \n[one] end\rof it\n"


def test_what_a_function_prints_while_it_is_imported_has_its_name(
    start: Any, wrap_image: Any
) -> None:
    files = {"handler.py": "import util\ndef handle(req): return req\n", "util.py": "print('hi')\n"}
    server = start(wrap_image({"one": files}, entry=ONE))
    assert server.log.read_text() == "[one] hi\n"


def test_a_line_that_an_import_has_begun_is_no_part_of_a_request(
    start: Any, wrap_image: Any, eventually: Any
) -> None:
    handler = "print('loading', end='')\ndef handle(req):\n    print('ran')\n    return '1'\n"
    server = start(wrap_image(dict.fromkeys(("one", "two"), handler), [[0], [1]], entry=TWO))
    assert [server.request().status for _ in range(2)] == [200, 200]
    lines = [f"[{name}] {text}" for name in ("one", "two") for text in ("loading", "ran", "ran")]
    assert eventually(lambda: sorted(server.log.read_text().splitlines()) == lines)


def test_a_line_that_was_begun_is_there_though_its_process_ends(
    start: Any, wrap_image: Any
) -> None:
    handler = "import os\ndef handle(req):\n    print(req, end='')\n    eval(req)\n"
    server = start(wrap_image({"one": handler}, [[], [0]], entry=ONE))
    for ends in ("os._exit(3)", "os.kill(os.getpid(), 9)", "os.abort()"):
        assert server.request(body=ends).json["code"] == "process-died"
        assert f"[one] {ends}\n" in server.log.read_text()


def test_what_a_log_handler_holds_back_is_there_when_its_process_ends(
    start: Any, wrap_image: Any, eventually: Any
) -> None:
    handler = """
        import logging.handlers, sys
        TARGET = logging.StreamHandler(sys.stdout)
        logging.getLogger().addHandler(logging.handlers.MemoryHandler(100, target=TARGET))
        logging.warning("imported")
        def handle(req):
            logging.warning("ran")
            return "ok"
    """
    image = wrap_image({"one": handler}, [[], [0]], mechanism="pool", entry=ONE)
    server = start(image, pool_requests="1")
    assert server.request().text == "ok"
    assert eventually(lambda: server.log.read_text().split("\n")[:2] == ["imported", "ran"])


def test_bytes_are_in_the_log_as_they_were_written() -> None:
    read, write = os.pipe()
    log = Log(write, "<stdout>")
    for octets in (b"gr\xc3", b"\xbc \xff", b"\n"):
        log.buffer.write(octets)
    assert os.read(read, 100) == b"gr\xc3\xbc \xff\n"


def test_what_is_no_text_is_refused_and_leaves_nothing_behind() -> None:
    read, write = os.pipe()
    log = Log(write, "<stdout>")
    log.write("a")
    with pytest.raises(TypeError, match="must be str, not bytes"):
        log.write(b"b\n")  # type: ignore[arg-type]
    log.write("c\n")
    assert os.read(read, 100) == b"ac\n"


def test_the_traceback_of_an_exception_is_in_the_log(
    start: Any, wrap_image: Any, eventually: Any
) -> None:
    handler = """
        def handle(req):
            error = ValueError(req)
            error.add_note("ask again")
            raise error
    """
    server = start(wrap_image({"one": handler}, [[], [0]], entry=ONE))
    told = server.request(body="\nno data is there\nfetch some").json["message"]
    assert told == "ValueError: no data is there (handler.py:5)"
    told = server.request(body="no such share\nnor that").json["message"]
    assert told == "ValueError: no such share (handler.py:5)"
    assert eventually(lambda: "[one] ask again\n" in server.log.read_text())
    assert "[one] ValueError: no such share\n[one] nor that\n" in server.log.read_text()
    assert all(line.startswith("[one] ") for line in server.log.read_text().splitlines())


@pytest.mark.parametrize(("place", "mechanism"), [("main", "fork"), ("further", "pool")])
def test_lines_say_which_execution_they_are_of_and_why_it_has_no_answer(
    place: str, mechanism: str, start: Any, wrap_image: Any, eventually: Any
) -> None:
    prints = "def handle(req):\n    print(req)\n    return req\n"
    fails = "def handle(req):\n    print(req)\n    return req if req != '0' else str(1 / 0)\n"
    image = wrap_image({"one": prints, "two": fails}, PLACES[place], mechanism=mechanism, entry=TWO)
    server = start(image)
    idents = {"1a2b3c4d-5e6f-7081": " 1a2b3c4d", "of_7": " of_7", "] forged": "", "": ""}
    for ident in idents:
        headers = {"X_Call_Id": ident} if ident else {}
        assert server.request(body=f'"{ident}"', **headers).status == 200
    expected = {
        f'[{name}{mark}] "{ident}"' for name in ("one", "two") for ident, mark in idents.items()
    }
    assert eventually(lambda: set(server.log.read_text().splitlines()) == expected)
    assert server.request(body="0", X_Call_Id="1a2b3c4d-5e6f").status == 500
    assert server.request(body="0", X_Call_Id="bbbb", X_Chiron_Timeout="never").status == 400
    line = "[two 1a2b3c4d] failed with raised: ZeroDivisionError: division by zero (handler.py:3)"

    def failures() -> list[str]:
        return [each for each in server.log.read_text().splitlines() if "failed with" in each]

    assert eventually(failures)
    assert failures() == [line]


def test_a_line_says_why_an_execution_has_failed_wherever_stderr_leads(
    start: Any, wrap_image: Any, eventually: Any
) -> None:
    handler = """
        import io, sys
        sys.stderr = io.StringIO()
        def handle(req):
            raise ValueError("x")
    """
    server = start(wrap_image({"one": handler}, entry=ONE))
    assert server.request().status == 500
    assert eventually(lambda: "[one] failed with raised" in server.log.read_text())
