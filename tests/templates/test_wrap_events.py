"""A wrap of buckets holds events, runs what they fire, and says what became of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.templates.bucket_workflows import composing, lines, metric, noting, window

FLAKY = """
from pathlib import Path

def handle(req):
    runs = Path("{folder}/runs-" + req)
    runs.open("a").write("run\\n")
    if runs.read_text().count("run") <= int(req):
        raise ValueError("not yet")
    return req
"""


@pytest.fixture
def compose(wrap_image: Callable[..., Path]) -> Callable[..., Path]:
    return composing(wrap_image)


def test_events_are_acknowledged_and_their_window_fires_once(compose, start, tmp_path, eventually):
    first, last = tmp_path / "first", tmp_path / "last"
    image = compose(
        window({"trigger": "by-time", "window_ms": 300}),
        {"first": noting(first), "last": noting(last)},
    )
    server = start(image)
    answer = server.request(body='[1, "drop", {"n": 2}]')
    assert (answer.status, answer.json) == (202, {"held": 3})
    assert eventually(lambda: lines(last))
    for n in range(3, 6):
        assert server.request(body=str(n)).json == {"held": 1}
    events = [1, {"n": 2}, 3, 4, 5]
    assert eventually(lambda: sum(map(len, lines(last))) == len(events))
    found = [item for batch in lines(last) for item in batch]
    assert sorted(found, key=str) == sorted(events, key=str)
    assert metric(server, "chiron_events_total") == 6
    fired = metric(server, 'chiron_firing_delay_seconds_count{bucket="held"}')
    assert fired == len(lines(last)) >= 2
    assert metric(server, "chiron_held_bytes") == 0


def test_a_window_does_not_wait_for_all_events_before_it(compose, start, tmp_path, eventually):
    done, last = tmp_path / "done", tmp_path / "last"
    first = f"""
import time

def handle(req):
    time.sleep(0.02)
    open({str(done)!r}, "a").write("x")
    return req
"""
    looks = f"""
from pathlib import Path

def handle(req):
    Path({str(last)!r}).open("a").write(f"{{len(Path({str(done)!r}).read_text())}}\\n")
    return "null"
"""
    image = compose(
        window({"trigger": "by-time", "window_ms": 100}), {"first": first, "last": looks}
    )
    assert start(image).request(body=json.dumps([*range(2000)])).status == 202
    assert eventually(lambda: len(lines(last)) > 1)
    assert lines(last)[0] < 1000


def test_a_long_list_is_made_when_there_is_a_process_for_it(compose, start, tmp_path, eventually):
    last = tmp_path / "last"
    length = (
        f"def handle(req):\n    open({str(last)!r}, 'a').write(f'{{len(req)}}\\n')\n    return ''\n"
    )
    handlers = {"first": "def handle(req):\n    return req\n", "last": length}
    document = window({"trigger": "by-batch-size", "size": 3})
    server = start(compose(document, handlers, processes=[[0], [1]], mechanism="pool"))
    text = "x" * 300_000
    assert server.request(body=json.dumps([text] * 60)).status == 202
    assert eventually(lambda: len(lines(last)) == 20)
    assert lines(last) == [len(json.dumps([text] * 3, separators=(",", ":")))] * 20


@pytest.mark.parametrize(("settings", "status"), [({}, 0), ({"WRAP_LINGER_MS": "1"}, 1)])
def test_what_is_held_fires_when_the_wrap_is_told_to_end(
    compose, start, tmp_path, settings, status
):
    """Behind a watchdog, which sleeps on after a status of 0, it ends with another one."""
    last = tmp_path / "last"
    image = compose(
        window({"trigger": "by-batch-size", "size": 1000}),
        {"first": "def handle(req):\n    return req\n", "last": noting(last)},
    )
    server = start(image, **settings)
    assert server.request(body="[1, 2, 3]").status == 202
    assert server.terminate() == status
    assert [sorted(batch) for batch in lines(last)] == [[1, 2, 3]]


def test_what_fails_is_run_again_up_to_its_attempts(compose, start, tmp_path, eventually):
    """The event 0 never fails, 1 fails once, 2 twice."""
    last = tmp_path / "last"
    flaky = FLAKY.format(folder=tmp_path)
    image = compose(
        window({"trigger": "immediate"}, attempts=2), {"first": flaky, "last": noting(last)}
    )
    server = start(image)
    assert server.request(body="[0, 1, 2]").status == 202
    name = 'chiron_firing_failures_total{bucket="events"}'
    assert eventually(lambda: metric(server, name) == 3 and sorted(lines(last)) == [0, 1])
    name = 'chiron_function_failures_total{function="first",error="raised"}'
    assert metric(server, name) == 3
    assert metric(server, 'chiron_function_duration_seconds_count{function="first"}') == 5
    assert "ValueError: not yet" in server.log.read_text()


def test_what_takes_too_long_is_given_up_and_run_again(compose, start, tmp_path, eventually):
    last, asleep = tmp_path / "last", tmp_path / "asleep"
    sleeping = f"""
import time
from pathlib import Path

def handle(req):
    if req == "1" and not Path({str(asleep)!r}).exists():
        Path({str(asleep)!r}).touch()
        while True:
            time.sleep(0.01)
    return req
"""
    image = compose(
        window({"trigger": "immediate"}), {"first": sleeping, "last": noting(last)}, timeout_s=3.0
    )
    server = start(image)
    assert server.request(body="[1, 2]").status == 202
    assert eventually(lambda: sorted(lines(last)) == [1, 2])
    name = 'chiron_firing_failures_total{bucket="events"}'
    assert metric(server, name) == 1
    late = 'chiron_function_failures_total{function="first",error="timeout"}'
    assert metric(server, late) == 1
    assert "first: timeout: first did not answer in time: another run" in server.log.read_text()
    assert server.request(body=json.dumps([*range(3, 200)])).status == 202
    assert eventually(lambda: sorted(lines(last)) == [*range(1, 200)])
    assert metric(server, name) == 1


def test_a_request_that_is_alone_ends_with_its_first_error_or_its_time(compose, start):
    document = window({"trigger": "immediate"}, attempts=1)
    sleeping = "import time\n\ndef handle(req):\n    time.sleep(20 // int(req))\n    return req\n"
    server = start(compose(document, {"first": sleeping, "last": "handle = str"}, timeout_s=0.5))
    answer = server.request(body="0", X_Chiron_Alone="1")
    assert (answer.status, answer.json["code"]) == (500, "raised")
    answer = server.request(body="1", X_Chiron_Alone="1")
    assert (answer.status, answer.json["code"]) == (504, "timeout")
    assert answer.json["function"] == "first"


def test_a_request_can_have_buckets_of_its_own_and_what_comes_of_them(compose, start, tmp_path):
    image = compose(
        window({"trigger": "by-time", "window_ms": 3_600_000}),
        {"first": noting(tmp_path / "first"), "last": noting(tmp_path / "last")},
        timeout_s=10.0,
    )
    server = start(image, chiron_trace_key="k")
    assert server.request(body="[0]").status == 202
    answer = server.request(body='[3, 1, "drop", 2]', X_Chiron_Alone="1")
    assert (answer.status, answer.json) == (200, {"last": [[3, 1, 2]]})
    traced = server.request(body="[5, 6]", X_Chiron_Trace="k").json
    assert json.loads(traced["output"]) == {"last": [[5, 6]]}
    functions = sorted(row["function"] for row in traced["timeline"]["spans"])
    assert functions == ["first", "first", "last"]


def test_two_of_three_do_not_wait_for_the_third(compose, start):
    asks = {f"ask-{n}": {"function": "ask", "gives": "answers"} for n in range(3)}
    document = {
        "entry": "questions",
        "buckets": {
            "questions": {"trigger": "immediate", "functions": list(asks)},
            "answers": {"trigger": "redundant", "k": 2, "n": 3, "function": "merge"},
        },
        "functions": asks,
    }
    ask = """
        import threading, time
        slow = threading.Lock()

        def handle(req):
            if slow.acquire(blocking=False):
                time.sleep(600)
            return req
    """
    handlers = {"ask": ask, "merge": "def handle(req):\n    return req\n"}
    server = start(compose(document, handlers))
    answer = server.request(body="7", X_Chiron_Alone="1")
    assert (answer.status, answer.json) == (200, {"merge": [[7, 7]]})


def test_more_than_there_is_room_for_is_refused_and_nothing_of_it_is_held(compose, start, tmp_path):
    last = tmp_path / "last"
    image = compose(
        {
            "entry": "held",
            "buckets": {"held": {"trigger": "by-batch-size", "size": 1000, "function": "last"}},
        },
        {"last": noting(last)},
    )
    server = start(image, WRAP_OBJECTS_MIB="1")
    large = json.dumps("x" * 400_000)
    assert server.request(body=large).status == 202
    answer = server.request(body=large)
    assert (answer.status, answer.json["code"]) == (503, "full")
    assert answer.headers["Retry-After"] == "1"
    for never in (json.dumps("x" * 1_000_000), json.dumps([1] * 70_000)):
        for how in ({}, {"X_Chiron_Alone": "1"}):
            answer = server.request(body=never, **how)
            assert (answer.status, answer.json["code"]) == (413, "too-large")
    assert server.terminate() == 0
    assert [len(batch) for batch in lines(last)] == [1]
