"""What a task emits reaches its consumers before the task ends, wherever they are."""

from __future__ import annotations

from typing import Any

import pytest

A, B, C, X, Y = range(5)
#: B takes what A emits as x, C what A emits as y.
INPUTS = {A: None, B: X, C: Y, X: None, Y: None}
EMITS = {X: (A, "x"), Y: (A, "y")}
#: The consumer of x takes part before y is emitted, which the producer waits for.
HANDLERS = {
    "a": """
        import os, time
        from chiron_io import emit

        def handle(req):
            emit("x", req + "x")
            emit("unknown", "goes nowhere")
            until = time.monotonic() + 20
            while not os.path.exists(req):
                assert time.monotonic() < until
                time.sleep(0.001)
            emit("y", {"y": [1]})
            return "a"
    """,
    "b": """
        def handle(req):
            open(req[:-1], "w").close()
            return "b"
    """,
    "c": "def handle(req): return req.strip()",
}
TASKS = {A: "a", B: "b", C: "c", X: "a", Y: "a"}
LAYOUTS = {
    "main": [[A, X, Y, B, C]],
    "together": [[], [A, X, Y, B, C]],
    "apart": [[C], [A, X, Y], [B]],
}


def declared(**fields: Any) -> dict[str, Any]:
    entry = {"output": [A, B, C]}
    return {"tasks": TASKS, "inputs": INPUTS, "emits": EMITS, "entry": entry} | fields


@pytest.mark.each_once
@pytest.mark.parametrize("mechanism", ["fork", "pool"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_consumers_run_beside_the_producer_and_the_timeline_says_when(
    mechanism, layout, start, wrap_image, tmp_path
):
    image = wrap_image(HANDLERS, LAYOUTS[layout], mechanism=mechanism, **declared())
    server = start(image, chiron_trace_key="key")
    for number in range(2):
        answer = server.request(body=str(tmp_path / f"seen{number}"))
        assert answer.json == ["a", "b", {"y": [1]}]
    answer = server.request(body=str(tmp_path / "seen"), X_Chiron_Trace="key")
    spans = answer.json["timeline"]["spans"]
    rows = {row["function"]: row for row in spans if row["kind"] == "task"}
    emitted = [row for row in spans if row["kind"] == "emit"]
    assert [row["output"] for row in emitted] == ["x", "y"]
    x, y = (row["start_ms"] for row in emitted)
    assert rows["a"]["start_ms"] <= x <= rows["b"]["start_ms"] <= y <= rows["a"]["end_ms"]


#: What a producer does -> the error's code and a part of its message.
WRONG = {
    "return 'a'": ("not-emitted", "x, y"),
    "emit('x', '1'); return 'a'": ("not-emitted", "without emitting y: in threads"),
    "emit('x', '1'); emit('z', '2'); return 'a'": ("not-emitted", "y: it has emitted z"),
    "emit('x', '1'); raise KeyError('no luck')": ("raised", "no luck"),
    "emit('x', '1'); emit('x', '2'); return 'a'": ("raised", "x was emitted before"),
    "emit('x', None); return 'a'": ("bad-output", "None"),
}


@pytest.mark.parametrize("layout", ["main", "apart"])
def test_what_goes_wrong_is_named(layout: str, start: Any, wrap_image: Any) -> None:
    ways = "".join(f"    if req == {body!r}: {body}\n" for body in WRONG)
    producer = f"from chiron_io import emit\ndef handle(req):\n{ways}"
    pass_on = dict.fromkeys("bc", "def handle(req): return req")
    server = start(wrap_image({"a": producer} | pass_on, LAYOUTS[layout], **declared()))
    for body, (code, said) in WRONG.items():
        answer = server.request(body=body)
        assert (answer.status, answer.json["code"]) == (500, code)
        assert said in answer.json["message"]
        assert answer.json["function"] == "a"


def test_a_producer_that_is_lost_emits_once_more_and_nobody_notices(start, wrap_image, tmp_path):
    producer = """
        import os
        from chiron_io import emit

        def handle(req):
            emit("x", "x")
            if not os.path.exists(req):
                open(req, "w").close()
                os.kill(os.getpid(), 9)
            emit("y", "y")
            return "a"
    """
    count = f"""
        def handle(req):
            with open({str(tmp_path / "ran")!r}, "a") as file:
                file.write(req)
            return req
    """
    handlers = {"a": producer, "b": count, "c": count}
    server = start(wrap_image(handlers, LAYOUTS["apart"], **declared(attempts=2)))
    answer = server.request(body=str(tmp_path / "died"))
    assert answer.json == ["a", "x", "y"]
    assert sorted((tmp_path / "ran").read_text()) == ["x", "y"]  # b need not run again


def test_a_client_that_calls_the_task_alone_gets_all_of_it(start: Any, wrap_image: Any) -> None:
    producer = """
        from chiron_io import emit

        def handle(event, context):
            emit("x", event.body[:1])
            emit("y", bytes([255]))
            return event.body[1:]
    """
    image = wrap_image(
        {"a": producer},
        [[A, X, Y]],
        styles={"a": "http"},
        tasks={A: "a", X: "a", Y: "a"},
        inputs=dict.fromkeys([A, X, Y]),
        emits=EMITS,
        entry={"output": A, "emits": {"x": X, "y": Y}},
    )
    answer = start(image).request(body="123")
    assert answer.json == {"output": "23", "emitted": {"x": "1", "y": {"base64": "/w=="}}}


def test_in_an_ordinary_function_it_goes_nowhere_and_says_nothing() -> None:
    import chiron_io

    for _ in range(2):
        chiron_io.emit("x", "1", group="g")
