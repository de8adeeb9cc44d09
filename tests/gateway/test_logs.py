"""Logs come as NDJSON: the latest lines, filtered, and followed while they grow."""

from __future__ import annotations

import json
import time
from datetime import datetime
from itertools import pairwise

import pytest
import requests

from chiron.gateway.docker_backend import unframed
from chiron.gateway.logs import LineReader, Log

TIMEOUT_S = 60
PRINTER = """
    def handle(request):
        print(request.body.decode())
        return ""
"""


def read(function, **query):
    url = f"{function.gateway}/system/logs"
    answer = requests.get(url, params={"name": function.name, **query}, timeout=TIMEOUT_S)
    assert answer.headers["Transfer-Encoding"] == "chunked"
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_line_says_who_wrote_it_and_when(deploy, wait_until):
    function = deploy(PRINTER)
    function.post("one\ntwo")
    wait_until(lambda: len(read(function)) == 2)
    first, second = read(function)
    assert set(first) == {"name", "namespace", "instance", "timestamp", "text"}
    assert (first["name"], first["namespace"]) == (function.name, "openfaas-fn")
    assert (first["text"], second["text"]) == ("one", "two")
    assert datetime.fromisoformat(first["timestamp"]).tzinfo is not None


def test_tail_since_and_instance_select_lines(deploy, wait_until):
    function = deploy(PRINTER)
    for text in ("one", "two", "three"):
        function.post(text)
    wait_until(lambda: len(read(function)) == 3)
    lines = read(function)
    assert [line["text"] for line in read(function, tail=2)] == ["two", "three"]
    assert read(function, tail=-1) == lines
    assert read(function, tail=0) == []
    assert read(function, since=lines[2]["timestamp"]) == lines[2:]
    nanoseconds = lines[2]["timestamp"].replace("Z", "000Z")
    assert read(function, since=nanoseconds) == lines[2:]
    assert read(function, instance=lines[0]["instance"]) == lines
    assert read(function, instance="other") == []


def test_following_sees_new_lines_and_ends_with_the_function(deploy, wait_until):
    function = deploy(PRINTER)
    function.post("before")
    wait_until(lambda: len(read(function)) == 1)
    url = f"{function.gateway}/system/logs"
    query = {"name": function.name, "follow": "true"}
    with requests.get(url, params=query, stream=True, timeout=TIMEOUT_S) as answer:
        lines = (json.loads(line)["text"] for line in answer.iter_lines())
        assert next(lines) == "before"
        function.post("after")
        assert next(lines) == "after"
        body = {"functionName": function.name}
        requests.delete(f"{function.gateway}/system/functions", json=body, timeout=TIMEOUT_S)
        assert list(lines) == []


def test_only_the_latest_lines_are_kept_and_long_ones_are_broken_up(deploy, wait_until):
    function = deploy(PRINTER)
    function.post("\n".join(f"line {n}" for n in range(5000)))
    wait_until(lambda: [line["text"] for line in read(function, tail=1)] == ["line 4999"])
    assert len(read(function)) == 2000
    function.post("x" * 40_000)
    wait_until(lambda: "".join(line["text"] for line in read(function, tail=3)) == "x" * 40_000)


@pytest.mark.parametrize("query", [{"since": "yesterday"}, {"tail": "all"}, {"name": ""}])
def test_a_bad_query_is_400(deploy, query):
    function = deploy(PRINTER)
    url = f"{function.gateway}/system/logs"
    answer = requests.get(url, params={"name": function.name, **query}, timeout=TIMEOUT_S)
    assert answer.status_code == 400


#: Writes the request's text again and again until it is removed.
FLOOD = """
    import os, threading

    def flood(data):
        while True:
            os.write(1, data)

    def handle(request):
        threading.Thread(target=flood, args=(request.body,), daemon=True).start()
        return ""
"""


@pytest.mark.parametrize("text", ["a line\n", "\n" * 65536], ids=["lines", "line ends"])
def test_a_function_that_prints_all_the_time_does_not_hold_up_others(text, deploy, wait_until):
    other, busy = deploy(), deploy(FLOOD)
    other.post("ready")

    def fastest_s() -> float:
        taken = []
        for _ in range(30):
            start = time.perf_counter()
            assert other.post("request").text == "request"
            taken.append(time.perf_counter() - start)
        return min(taken)

    busy.post("")  # as busy, but writes nothing
    beside_busy_s = fastest_s()
    busy.scale(0)
    printer = deploy(FLOOD)
    printer.post(text)
    wait_until(lambda: len(read(printer)) == 2000)
    # About the same; it was 18 times as much beside lines, and 350 times beside their ends.
    assert fastest_s() < 5 * beside_busy_s


def test_a_function_that_closes_its_output_goes_on(deploy, wait_until):
    function = deploy("""
        import os

        def handle(request):
            if request.path != "/again":
                os.write(1, b"the last line, without an end")
                os.close(1)
                os.close(2)
            return str(os.getpid())
    """)
    pid = function.post().text
    wait_until(lambda: "the last line, without an end" in function.logs())
    assert function.post(path="/again").text == pid


def test_lines_that_come_together_are_one_piece_of_work():
    log = Log()
    LineReader(log, "one").feed(b"line\n" * 1000)
    assert log.written == 1
    assert len(log.read(None, None, None)) == 1000


@pytest.mark.parametrize("size", [1, 3, 100, 16 * 1024, 50_000])
def test_lines_are_the_same_however_they_come(size):
    text = "\n".join(["first", "", "x" * 40_000, "a\r", "y" * 16_384, "z" * 16_385, "", "no end"])
    log = Log()
    reader = LineReader(log, "one")
    data = text.encode()
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    reader.end()
    lines = [line.text for line in log.read(None, None, None)]
    assert "".join(lines) == text.replace("\n", "").replace("\r", "")
    assert max(map(len, lines)) == 16_384
    assert [lines[0], lines[1], lines[-2], lines[-1]] == ["first", "", "", "no end"]
    assert len(lines) == 7 + 3 + 1


def test_what_is_kept_is_bounded_by_lines_and_by_bytes():
    log = Log()
    reader = LineReader(log, "one")
    for number in range(3000):
        reader.feed(b"%d\n" % number)
    assert [int(line.text) for line in log.read(None, None, None)] == list(range(1000, 3000))
    for _ in range(1000):
        reader.feed(b"x" * (1 << 16))  # no end
    assert {len(line.text) for line in log.read(None, None, None)} == {16 * 1024}
    assert sum(len(piece.data) for piece in log._pieces) < 2010 * 16 * 1024


def test_a_follower_sees_a_fast_printer_s_lines_in_order(deploy):
    function = deploy(PRINTER)
    url = f"{function.gateway}/system/logs"
    query = {"name": function.name, "follow": "true"}
    with requests.get(url, params=query, stream=True, timeout=TIMEOUT_S) as answer:
        for _ in range(3):
            function.post("\n".join(f"{time.monotonic_ns()}" for _ in range(5000)))
        function.post("end")
        seen = []
        for line in answer.iter_lines():
            if (text := json.loads(line)["text"]) == "end":
                break
            seen.append(int(text))
    assert len(seen) >= 2000
    assert all(before < after for before, after in pairwise(seen))


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100])
def test_the_engine_s_frames_are_put_together_again(size):
    contents = [b"", b"one", b"two" * 100, b"3"]
    stream = b"".join(b"\1\0\0\0" + len(each).to_bytes(4) + each for each in contents)
    rest, found = b"", b""
    for start in range(0, len(stream), size):
        text, rest = unframed(rest + stream[start : start + size])
        found += text
    assert (found, rest) == (b"".join(contents), b"")
