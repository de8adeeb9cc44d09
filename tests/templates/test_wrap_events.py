"""A wrap of buckets holds events, runs what they fire, and says what became of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chiron.workflow.buckets import parse_buckets

#: Appends what it gets to a file, and returns it; null where the text has "drop".
NOTE = """
from pathlib import Path

def handle(req):
    with Path("{file}").open("a") as file:
        file.write(req + "\\n")
    return "null" if "drop" in req else req
"""
FLAKY = """
from pathlib import Path

def handle(req):
    runs = Path("{file}")
    runs.open("a").write("run\\n")
    if runs.read_text().count("run") < {fails} + 1:
        raise ValueError("not yet")
    return req
"""


@pytest.fixture
def compose(wrap_image: Callable[..., Path]) -> Callable[..., Path]:
    """An image of the workflow that a document of buckets defines."""

    def compose(
        document: dict[str, Any], handlers: dict[str, str], triggers: str = "", **others: Any
    ) -> Path:
        workflow = parse_buckets(document, "test")
        numbers = {task.name: number for number, task in enumerate(workflow.tasks)}
        entry = {"output": None, "states": numbers, "buckets": workflow.buckets}
        tasks = {numbers[task.name]: task.function for task in workflow.tasks}
        image = wrap_image(handlers, tasks=tasks, entry=entry, **others)
        if triggers:
            (image / "function" / "triggers").mkdir()
            (image / "function" / "triggers" / "mine.py").write_text(triggers)
        return image

    return compose


def window(trigger: dict[str, Any], function: str = "last", **fields: Any) -> dict[str, Any]:
    """Events go through `first` to a bucket, of which a function gets what fires."""
    return {
        "entry": "events",
        "buckets": {
            "events": {"trigger": "immediate", "function": "first", **fields},
            "held": {**trigger, "function": function},
        },
        "functions": {"first": {"gives": "held"}},
    }


def noting(path: Path) -> str:
    return NOTE.format(file=path)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def metric(server: Any, name: str) -> float:
    text = server.request("GET", "/metrics").text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return float(values.get(name, 0))


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


def test_items_of_a_list_are_joined_as_they_stand_there(compose, start, tmp_path):
    document = {
        "entry": "events",
        "buckets": {
            "events": {"trigger": "immediate", "function": "first"},
            "held": {"trigger": "dynamic-join", "function": "last"},
        },
        "functions": {"first": {"gives": {"each": "held"}}},
    }
    last = tmp_path / "last"
    server = start(compose(document, {"first": "handle = str", "last": noting(last)}))
    answer = server.request(body='[[1.50, "\\u00e4 ä"], [{ "a" : null }]]', X_Chiron_Alone="1")
    assert last.read_text() == '[1.50,"\\u00e4 ä",{ "a" : null }]\n'
    assert answer.json == {"last": [[1.5, "ä ä", {"a": None}]]}


@pytest.mark.parametrize("mechanism", ["fork", "pool"])
def test_functions_run_in_further_processes_too(compose, start, tmp_path, eventually, mechanism):
    last = tmp_path / "last"
    handlers = {"first": "def handle(req):\n    return req\n", "last": noting(last)}
    document = window({"trigger": "by-batch-size", "size": 50})
    image = compose(document, handlers, processes=[[0], [1]], mechanism=mechanism)
    server = start(image)
    assert server.request(body=json.dumps([*range(100)])).status == 202
    assert eventually(lambda: sum(map(len, lines(last))) == 100)
    assert sorted(item for batch in lines(last) for item in batch) == [*range(100)]


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


LAYOUTS = [("fork", [[0, 1]]), ("fork", [[1], [0]]), ("pool", [[], [0], [1]])]
#: Emits the items of a list, and waits after the second until the consumer has seen that.
EMITTING = """
import json, os, time
from chiron_io import emit

def handle(req):
    for place, item in enumerate(json.loads(req)):
        emit("held", item)
        until = time.monotonic() + 20
        while place == 1 and not os.path.exists({file!r}):
            assert time.monotonic() < until
            time.sleep(0.001)
    {end}
    return ""
"""


@pytest.mark.parametrize(("mechanism", "processes"), LAYOUTS)
def test_what_is_emitted_is_in_its_bucket_while_the_function_goes_on(
    compose, start, tmp_path, mechanism, processes
):
    last = tmp_path / "last"
    first = EMITTING.format(file=str(last), end="")
    document = window({"trigger": "by-batch-size", "size": 2})
    handlers = {"first": first, "last": noting(last)}
    server = start(compose(document, handlers, processes=processes, mechanism=mechanism))
    answer = server.request(body='[[{"n": 1}, "two", "3", ""]]', X_Chiron_Alone="1")
    assert (answer.status, answer.json) == (200, {"last": [[{"n": 1}, "two"], [3]]})


@pytest.mark.parametrize(
    ("mechanism", "processes", "how"),
    [(*layout, "raise ValueError") for layout in LAYOUTS]
    + [(*layout, "os.kill(os.getpid(), 9)") for layout in LAYOUTS[1:]],
)
def test_what_a_run_that_begins_anew_emits_counts_once(
    compose, start, tmp_path, eventually, mechanism, processes, how
):
    last, failed = tmp_path / "last", tmp_path / "failed"
    last.touch()
    end = f"if not os.path.exists({str(failed)!r}): open({str(failed)!r}, 'w').close(); {how}"
    first = EMITTING.format(file=str(last), end=end)
    handlers = {"first": first, "last": noting(last)}
    document = window({"trigger": "immediate"}, attempts=2)
    server = start(compose(document, handlers, processes=processes, mechanism=mechanism))
    assert server.request(body='[["1", "2", "3"]]').status == 202
    assert eventually(lambda: failed.exists() and metric(server, "chiron_held_bytes") == 0)
    assert sorted(lines(last)) == [1, 2, 3]


@pytest.mark.parametrize("processes", [[[0, 1]], [[1], [0]]])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("emit('hled', '1')", "first emits hled, which is no bucket that it gives to"),
        ("emit('held', None)", "did not return a valid response"),
    ],
)
def test_what_is_wrong_with_what_is_emitted_is_the_functions_error(
    compose, start, processes, body, said
):
    handlers = {
        "first": f"from chiron_io import emit\ndef handle(req): {body}\n",
        "last": "handle = str",
    }
    document = window({"trigger": "immediate"}, attempts=1)
    answer = start(compose(document, handlers, processes=processes)).request(
        body="1", X_Chiron_Alone="1"
    )
    assert (answer.status, answer.json["function"]) == (500, "first")
    assert said in answer.json["message"]


def test_a_thread_that_is_left_behind_emits_nothing(compose, start, tmp_path, eventually):
    said = tmp_path / "said"
    first = f"""
        import contextvars, threading, time
        from chiron_io import emit

        def late():
            time.sleep(0.1)
            try:
                emit("held", "2")
            except ValueError as error:
                with open({str(said)!r}, "w") as file:
                    file.write(str(error))

        def handle(req):
            threading.Thread(target=contextvars.copy_context().run, args=(late,)).start()
            emit("held", "1")
            return ""
    """
    document = window({"trigger": "by-batch-size", "size": 2})
    server = start(compose(document, {"first": first, "last": "handle = str"}))
    answer = server.request(body="0", X_Chiron_Alone="1")
    assert answer.json == {"last": [[1]]}
    assert eventually(said.exists)
    assert eventually(lambda: "the handler has ended" in said.read_text())


def test_a_function_alone_answers_all_that_it_emits(wrap_image, start):
    """So it is profiled, in a wrap of its own, where no buckets are."""
    handler = """
        from chiron_io import emit

        def handle(req):
            emit("a", {"n": 1}, group="g")
            emit("a", bytes([255]))
            return req
    """
    number, whole = 1, "*"
    image = wrap_image(
        {"f": handler},
        [[0, number]],
        tasks={0: "f", number: "f"},
        inputs={0: None, number: None},
        emits={number: (0, whole)},
        entry={"output": 0, "emits": {whole: number}},
    )
    answer = start(image).request(body="x").json
    assert answer["output"] == "x"
    emitted = json.loads(answer["emitted"][whole])
    assert [each[:2] for each in emitted] == [["a", "g"], ["a", None]]
    assert json.loads(emitted[0][2]) == {"n": 1} and emitted[1][2] == {"base64": "/w=="}


#: Fires with what has come when nothing has for a moment; fails with "bad" ones.
CALM = """
import math
from chiron_triggers import Batch, StreamTrigger

class Calm(StreamTrigger):
    def __init__(self, quiet_ms):
        super().__init__()
        self.quiet_s, self.items = quiet_ms / 1000, []

    def on_object(self, item, now_s):
        if item.name == "bad":
            raise KeyError(item.name)
        self.items.append(item)
        self.size += item.size
        self.due_s = now_s + self.quiet_s
        return []

    def on_time(self, now_s):
        items, self.items, self.size, self.due_s = self.items, [], 0, math.inf
        return [Batch(items, now_s)]
"""
OWN = {"trigger": "mine.Calm", "options": {"quiet_ms": 300}, "name_from": "kind"}


def test_a_trigger_of_the_users_decides_when_a_bucket_fires(compose, start, tmp_path, eventually):
    last = tmp_path / "last"
    handlers = {"first": "handle = str", "last": noting(last)}
    server = start(compose(window(OWN), handlers, CALM))
    for n in range(3):
        assert server.request(body=str(n)).status == 202
    assert metric(server, "chiron_held_bytes") > 0
    assert eventually(lambda: lines(last))
    assert sum(map(len, lines(last))) == 3
    assert eventually(lambda: metric(server, "chiron_held_bytes") == 0)
    assert server.request(body="[3, 4]", X_Chiron_Alone="1").json == {"last": [[3, 4]]}
    assert server.request(body="[5]").status == 202
    assert server.terminate() == 0
    assert lines(last)[-1] == [5]


def test_where_a_users_trigger_fails_other_buckets_and_objects_go_on(
    compose, start, tmp_path, eventually
):
    last, other = tmp_path / "last", tmp_path / "other"
    document = window(OWN)
    document["buckets"]["others"] = {"trigger": "immediate", "function": "other"}
    document["functions"]["first"] = {"gives": ["held", "others"]}
    handlers = {"first": "handle = str", "last": noting(last), "other": noting(other)}
    server = start(compose(document, handlers, CALM))
    assert server.request(body='[{"kind": "bad"}, {"kind": "good"}]').status == 202
    assert eventually(lambda: lines(last) == [[{"kind": "good"}]] and len(lines(other)) == 2)
    said = "trigger-failed: bucket held: Calm.on_object: KeyError: 'bad' (mine.py:12)"
    assert said in server.log.read_text()
    assert metric(server, 'chiron_firing_failures_total{bucket="held"}') == 1
    answer = server.request(body='[{"kind": "bad"}]', X_Chiron_Alone="1")
    assert (answer.status, answer.json["code"]) == (500, "trigger-failed")
    assert "bucket held" in answer.json["message"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere\n", "bucket held: mine.py: ModuleNotFoundError"),
        (CALM.replace("quiet_ms", "calm_ms"), "bucket held: Calm: TypeError: Calm.__init__() got"),
    ],
)
def test_a_wrap_whose_users_trigger_cannot_be_made_says_so_and_ends(
    compose, run_to_end, text, said
):
    handlers = {"first": "handle = str", "last": "handle = str"}
    status, log = run_to_end(compose(window(OWN), handlers, text))
    assert status == 1 and f"trigger-failed: {said}" in log


@pytest.mark.parametrize(("fails", "comes"), [(0, True), (1, True), (2, False)])
def test_what_fails_is_run_again_up_to_its_attempts(
    compose, start, tmp_path, eventually, fails, comes
):
    last = tmp_path / "last"
    flaky = FLAKY.format(file=tmp_path / "runs", fails=fails)
    image = compose(
        window({"trigger": "immediate"}, attempts=2), {"first": flaky, "last": noting(last)}
    )
    server = start(image)
    assert server.request(body="7").status == 202
    name = 'chiron_firing_failures_total{bucket="events"}'
    assert eventually(lambda: metric(server, name) == fails and lines(last) == [7] * comes)
    name = 'chiron_function_failures_total{function="first",error="raised"}'
    assert metric(server, name) == fails
    runs = metric(server, 'chiron_function_duration_seconds_count{function="first"}')
    assert runs == fails + comes
    assert "ValueError: not yet" in server.log.read_text() or not fails


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
        window({"trigger": "immediate"}), {"first": sleeping, "last": noting(last)}, timeout_s=0.5
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


def test_a_request_that_is_alone_ends_with_its_time(compose, start):
    document = window({"trigger": "immediate"}, attempts=1)
    sleeping = "import time\n\ndef handle(req):\n    time.sleep(20)\n    return req\n"
    server = start(compose(document, {"first": sleeping, "last": "handle = str"}, timeout_s=0.5))
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


def test_a_request_that_is_alone_fails_with_the_first_error(compose, start, tmp_path):
    handlers = {"first": "def handle(req):\n    raise KeyError(req)\n", "last": "handle = str"}
    image = compose(window({"trigger": "by-time", "window_ms": 1000}, attempts=1), handlers)
    answer = start(image).request(body="1", X_Chiron_Alone="1")
    assert (answer.status, answer.json["code"]) == (500, "raised")


@pytest.mark.parametrize(
    ("answers", "status", "body"),
    [('""', 200, '{"last":[]}'), ("b'\\xff'", 500, "not-text"), ("b'[1]'", 200, '{"last":[[1]]}')],
)
def test_what_a_leaf_answers_becomes_valid_json_or_an_error(compose, start, answers, status, body):
    document = {
        "entry": "events",
        "buckets": {"events": {"trigger": "immediate", "function": "last"}},
    }
    server = start(compose(document, {"last": f"def handle(req):\n    return {answers}\n"}))
    answer = server.request(body="1", X_Chiron_Alone="1")
    assert answer.status == status, answer.text
    assert answer.text == body if status == 200 else answer.json["code"] == body


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


@pytest.mark.parametrize("processes", [[[0, 1]], [[1], [0]]])
def test_a_handler_that_imports_emit_in_its_first_run_emits_all(compose, start, processes):
    handlers = {
        "first": "def handle(req):\n    from chiron_io import emit\n    emit('held', req)\n"
        "    return ''\n",
        "last": "def handle(req):\n    return req\n",
    }
    image = compose(window({"trigger": "dynamic-join"}), handlers, processes=processes)
    answer = start(image).request(body="[1, 2, 3, 4]", X_Chiron_Alone="1")
    assert (answer.status, sorted(answer.json["last"][0])) == (200, [1, 2, 3, 4])
