"""What a caller that does not know the key of the build can have a wrap do: answer, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

KEY = "0123456789abcdef"
#: Says whether the probe runs beside it.
HANDLER = """
    import os, sys

    def handle(req):
        if req == "key":
            return str([name for name in os.environ if "chiron" in name.lower()])
        return f"{req} {sys.getswitchinterval():g}"
"""
ONE: dict[str, Any] = {"output": 0}
USUAL = "x 0.005"
PLACES = {"main": [[0]], "further": [[], [0]]}


WITHOUT_THE_KEY = [
    {"X_Chiron_Trace": "1"},
    {"X_Chiron_Trace": "1", "X_Chiron_Probe": "1", "X_Chiron_Pace": "1"},
    {"X_Chiron_Trace": ""},
    {"X_Chiron_Trace": " probe"},
    {"X_Chiron_Trace": KEY[:-1]},
    {"X_Chiron_Trace": f"{KEY}0 probe"},
    {"X_Chiron_Trace": f"probe {KEY}"},
    {"X_Chiron_Trace": "ü"},
]


@pytest.mark.parametrize(("key", "place"), [(KEY, "further"), ("", "main")])
def test_without_the_key_nothing_is_traced_and_nothing_is_told(
    key: str, place: str, start: Any, wrap_image: Any
) -> None:
    image = wrap_image({"one": HANDLER}, PLACES[place], entry=ONE)
    server = start(image, chiron_trace_key=key)
    usual = server.request(body="x").headers.keys()
    for headers in WITHOUT_THE_KEY:
        answer = server.request(body="x", **headers)
        assert (answer.status, answer.text) == (200, USUAL), headers
        assert answer.headers.keys() == usual, headers
    assert server.request(body="key").text == "[]"  # functions do not find it


def call(**changes: Any) -> bytes:
    """The body of another wrap's call, which asks for everything that can be watched."""
    from wrap.net.framing import pieces

    ident = {"watch": [True, True, True], "mark": "", "number": 1, "trace": None}
    fields = {"tasks": [0], "objects": [[None, ""]], "gives": [0], "rest": 0, "alone": True}
    header = ident | fields | {"process": 0, "live": False, "piecewise": False} | changes
    return b"".join(pieces([json.dumps(list(header.values())), "x"]))


def told(server: Any, body: bytes | None = None, **headers: str) -> Any:
    """What a wrap answers of its one task to a call."""
    from wrap.net.framing import split
    from wrap.net.messages import Result

    answer = server.request(body=body or call(), X_Chiron_Call="1", **headers)
    assert answer.status == 200
    _, result, text = split(answer.body)
    (found,) = Result.read([result, text])
    return found


def test_a_call_is_traced_for_who_knows_the_key_alone(start: Any, wrap_image: Any) -> None:
    server = start(wrap_image({"one": HANDLER}, PLACES["further"]), chiron_trace_key=KEY)
    for headers in ({}, {"X_Chiron_Trace": "1"}):
        result = told(server, **headers)
        assert result.output.text() == USUAL
        assert (result.delayed, result.ticks, result.cpu_probe) == (None, None, None)
    result = told(server, X_Chiron_Trace=KEY)
    assert result.output.text() == "x 1"
    assert None not in (result.delayed, result.ticks, result.cpu_probe)


def test_a_call_marks_lines_with_an_id_and_nothing_else(start: Any, wrap_image: Any) -> None:
    code = "def handle(req):\n    print('said', flush=True)\n    return req\n"
    server = start(wrap_image({"one": code}, PLACES["further"]))
    told(server, call(mark="1a2b-3c4d-5e6f"))
    none = ["x]\n[other", "x] y", "\x1b[2J", "ü" * 8, "-" * 8]
    for mark in none:
        told(server, call(mark=mark))
    said = [line for line in server.log.read_text().splitlines() if "said" in line]
    assert said == ["[one 1a2b-3c4] said", *["[one] said"] * len(none)]


TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_call_tells_handlers_of_a_trace_that_headers_could_and_of_no_other(
    start: Any, wrap_image: Any
) -> None:
    code = (
        "def handle(event, context):\n    return {'body': str(event.headers.get('traceparent'))}\n"
    )
    server = start(wrap_image({"one": code}, styles={"one": "http"}))
    for state in ("", "a\nb"):
        told_of = told(server, call(trace=[TRACE, SPAN, 0, state, False])).output.text()
        assert told_of == f"00-{TRACE}-{SPAN}-00"
    for trace in ([TRACE + "\n", SPAN, 0], ["x", "", 0], [TRACE, SPAN, 1 << 70]):
        assert told(server, call(trace=[*trace, "", False])).output.text() == "None"


def test_an_entry_wrap_runs_no_single_task(start: Any, wrap_image: Any) -> None:
    """Who may send a workflow's requests does not thereby choose what its later tasks get."""
    handlers = {"check": "def handle(req):\n    return 'checked'\n", "pay": HANDLER}
    server = start(wrap_image(handlers, inputs={0: None, 1: 0}, entry={"output": 1}))
    body = call(tasks=[1], objects=[[0, ""]], mark="x" * 128)  # which is UTF-8, as its length is
    answer = server.request(body=body, X_Chiron_Call="1")
    assert answer.text == "checked 0.005"


NONSENSE: list[dict[str, Any]] = [
    {"tasks": 0},
    {"tasks": [float("inf")]},
    {"gives": [[]]},
    {"rest": float("inf")},
    {"number": {}},
    {"watch": [1] * 99},
    {"process": None},
    {"trace": 7},
    {"trace": [TRACE]},
    {"trace": [TRACE, SPAN, "many", "", False]},
    {"objects": 10**9},
    {"objects": ["many"]},
    {"objects": [["many", ""]]},
]
OF_ANOTHER_PLAN: list[dict[str, Any]] = [
    {"tasks": []},
    {"tasks": [7]},
    {"tasks": [0, 7]},
    {"tasks": [0], "objects": [[3, ""]]},
    {"tasks": [1], "objects": [[None, ""]]},
]


def test_a_call_of_nonsense_or_for_what_a_wrap_cannot_run_is_refused(
    start: Any, wrap_image: Any
) -> None:
    from wrap.net.framing import pieces

    tasks = {"tasks": {0: "one", 1: "one"}, "inputs": {0: None, 1: 0}}
    server = start(wrap_image({"one": HANDLER}, **tasks))
    nonsense = [*(call(**changes) for changes in NONSENSE), b"".join(pieces(["[" * 100_000]))]
    for code, bodies in {
        "bad-frames": nonsense,
        "other-plan": [call(**changes) for changes in OF_ANOTHER_PLAN],
    }.items():
        for body in bodies:
            answer = server.request(body=body, X_Chiron_Call="1")
            assert (answer.status, answer.json["code"]) == (400, code), body[:200]
    assert told(server).output.text() == USUAL


#: What is asked for -> status, code.
SECONDS = {
    **dict.fromkeys(("soon", "nan", "-1", "-inf", "0"), (400, "bad-timeout")),
    **dict.fromkeys(("inf", "1e400", "9" * 5000, "30"), (504, "timeout")),
}


def test_nobody_gets_more_time_than_the_wrap_has(start: Any, wrap_image: Any) -> None:
    handler = "import time\ndef handle(req):\n    time.sleep(3)\n    return req\n"
    server = start(wrap_image({"one": handler}, entry=ONE, timeout_s=0.3))
    for seconds, refused in SECONDS.items():
        answer = server.request(X_Chiron_Timeout=seconds)
        assert (answer.status, answer.json["code"]) == refused, seconds
