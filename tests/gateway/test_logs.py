"""Logs come as NDJSON: the latest lines, filtered, and followed while they grow."""

from __future__ import annotations

import json
import time
from datetime import datetime
from itertools import pairwise

import pytest
import requests

from chiron.gateway.docker_backend import unframed
from chiron.gateway.logs import LineReader, Log, Pauses
from tests.rows import each_row

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


def test_tail_since_and_instance_select_lines(deploy, wait_until):
    function = deploy(PRINTER)
    for text in ("one", "two", "three"):
        function.post(text)
    wait_until(lambda: len(read(function)) == 3)
    lines = read(function)
    assert {*lines[0]} == {"name", "namespace", "instance", "timestamp", "text"}
    assert {(line["name"], line["namespace"]) for line in lines} == {(function.name, "openfaas-fn")}
    assert datetime.fromisoformat(lines[0]["timestamp"]).tzinfo is not None
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


@each_row("query", [{"since": "yesterday"}, {"tail": "all"}, {"name": ""}])
def test_a_bad_query_is_400(echo, query):
    url = f"{echo.gateway}/system/logs"
    answer = requests.get(url, params={"name": echo.name, **query}, timeout=TIMEOUT_S)
    assert answer.status_code == 400


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
    reader = LineReader(log, "one")
    reader.feed(b"line\n" * 1000)
    assert log.written == 1
    assert len(log.read(None, None, None)) == 1000
    reader.feed(b"\n" * 65536)
    assert log.written == 2


def test_who_prints_at_once_again_and_again_has_to_wait(monkeypatch):
    """Else it would hold up all others."""
    times = iter([0.0, 1.0, *(2.0 + n / 10_000 for n in range(6)), 3.0])
    monkeypatch.setattr("chiron.gateway.logs.time.monotonic", times.__next__)
    pauses = Pauses()
    waited = [pauses.after_reading_s() > 0 for _ in range(9)]
    assert waited == [False] * 6 + [True, True, False]


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
