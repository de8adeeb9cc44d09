"""What functions emit into buckets while they run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chiron.templates import TEMPLATES
from tests.templates.bucket_workflows import composing, lines, metric, noting, window

LAYOUTS = [("fork", [[0, 1]]), ("pool", [[], [0], [1]])]
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


@pytest.fixture
def compose(wrap_image: Callable[..., Path]) -> Callable[..., Path]:
    return composing(wrap_image)


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
    [(*LAYOUTS[0], "raise ValueError"), (*LAYOUTS[1], "os.kill(os.getpid(), 9)")],
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


def test_what_is_wrong_with_what_is_emitted_is_the_functions_error(compose, start):
    wrong = {
        "hled": "first emits hled, which is no bucket that it gives to",
        "held": "did not return a valid response",
    }
    emits = "emit(req.strip(chr(34)), None if 'held' in req else '1')"
    handlers = {
        "first": f"from chiron_io import emit\ndef handle(req): {emits}\n",
        "last": "handle = str",
    }
    document = window({"trigger": "immediate"}, attempts=1)
    server = start(compose(document, handlers, processes=[[1], [0]]))
    for bucket, said in wrong.items():
        answer = server.request(body=json.dumps(bucket), X_Chiron_Alone="1")
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


def test_a_handler_that_imports_emit_in_its_first_run_emits_all(compose, start):
    handlers = {
        "first": "def handle(req):\n    from chiron_io import emit\n    emit('held', req)\n"
        "    return ''\n",
        "last": "def handle(req):\n    return req\n",
    }
    image = compose(window({"trigger": "dynamic-join"}), handlers, processes=[[1], [0]])
    answer = start(image).request(body="[1, 2, 3, 4]", X_Chiron_Alone="1")
    assert (answer.status, sorted(answer.json["last"][0])) == (200, [1, 2, 3, 4])


@pytest.mark.parametrize("module", ["chiron_io", ".chiron_io", "function.chiron_io"])
def test_a_copy_of_chiron_io_beside_the_handler_emits_too(compose, start, module):
    """The copy is for the function alone."""
    handler = f"from {module} import emit\ndef handle(req):\n    emit('held', '1')\n    return ''\n"
    copy = (TEMPLATES / "python3-wrap" / "chiron_io.py").read_text()
    handlers = {"first": {"handler.py": handler, "chiron_io.py": copy}, "last": "handle = str"}
    document = window({"trigger": "by-batch-size", "size": 2})
    answer = start(compose(document, handlers)).request(body="0", X_Chiron_Alone="1")
    assert answer.json == {"last": [[1]]}


@pytest.mark.parametrize("how", ["import_module", "__import__"])
def test_a_handler_that_imports_emit_by_a_call_emits_too(compose, start, how):
    call = f"{how}('chiron_io').emit('held', '1')"
    handler = f"from importlib import import_module\ndef handle(req):\n    {call}\n    return ''\n"
    document = window({"trigger": "by-batch-size", "size": 2})
    server = start(compose(document, {"first": handler, "last": "handle = str"}))
    assert server.request(body="0", X_Chiron_Alone="1").json == {"last": [[1]]}
