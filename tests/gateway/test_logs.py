"""Logs come as NDJSON: the latest lines, filtered, and followed while they grow."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
import requests

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
