"""A probed request tells what its handler did with the GIL; a paced one how fast its core was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SWITCH_INTERVAL = """
import sys
def handle(req):
    return str(round(sys.getswitchinterval(), 3))
"""
PARTS = """
import hashlib, time
def handle(req):
    if req == "sleep":
        time.sleep(0.03)
    elif req == "native":
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 100_000)
    else:
        for _ in range(300_000):
            pass
    return req
"""
KEY = "0123456789abcdef"
TRACED = {"X_Chiron_Trace": KEY}
PROBED = {"X_Chiron_Trace": f"{KEY} probe"}
PACED = {"X_Chiron_Trace": f"{KEY} pace"}

Ask = Callable[..., Any]


@pytest.fixture
def serve(start: Any, wrap_image: Any) -> Callable[..., Ask]:
    """Serves one function in a process of the wrap; asks it with headers."""

    def serve(code: str, processes: list[list[int]]) -> Ask:
        entry = {"inputs": {7: None}, "output": 7, "stages": [{}]}
        image = wrap_image({"one": code}, {0: processes}, tasks={7: "one"}, entry=entry)
        server = start(image, chiron_trace_key=KEY)

        def ask(body: str, **headers: str) -> Any:
            return server.request(body=body, **headers)

        return ask

    return serve


def ticks(answer: Any) -> list[list[Any]]:
    (found,) = (row["ticks"] for row in answer.json["timeline"] if row["kind"] == "run")
    assert (found[0][4], found[-1][4]) == ("begin", "end")
    return list(found)


@pytest.mark.parametrize("processes", [[[7]], [[], [7]]], ids=["main", "further"])
def test_the_probe_waits_for_the_gil_only_while_the_handler_computes_with_it(
    serve: Callable[..., Ask], processes: list[list[int]]
) -> None:
    ask = serve(PARTS, processes)
    asleep = ticks(ask("sleep", **PROBED))[1:-1]
    assert len(asleep) > 5
    assert sum(1 for tick in asleep if tick[4].isdecimal()) > 0.5 * len(asleep)
    assert asleep[-1][1] - asleep[0][1] < 10_000  # microseconds of CPU time
    native = ticks(ask("native", **PROBED))[1:-1]
    assert len(native) > 5
    assert sum(1 for tick in native if tick[4] == "running") > 0.5 * len(native)
    assert len(ticks(ask("compute", **PROBED))) < 8


def test_the_switch_interval_is_long_only_while_probed(serve: Callable[..., Ask]) -> None:
    ask = serve(SWITCH_INTERVAL, [[7]])
    assert ask("").text == "0.005"
    assert ask("", **PROBED).json["output"] == "1.0"
    assert ask("").text == "0.005"


def test_it_ends_when_the_handler_fails(serve: Callable[..., Ask]) -> None:
    code = (
        "import sys, threading\ndef handle(req):\n"
        "    if req == 'fail':\n        raise ValueError('no')\n"
        "    probes = [t.name for t in threading.enumerate() if 'probe' in t.name]\n"
        "    return f'{sys.getswitchinterval():g} {probes}'\n"
    )
    ask = serve(code, [[7]])
    assert ask("fail", **PROBED).status == 500
    assert ask("").text == "0.005 []"
    assert "probe" in ask("", **PROBED).json["output"]


def test_a_traced_request_is_not_probed_unless_it_asks(serve: Callable[..., Ask]) -> None:
    ask = serve(SWITCH_INTERVAL, [[7]])
    (row,) = ask("", **TRACED).json["timeline"]
    assert "ticks" not in row


@pytest.mark.parametrize("processes", [[[7]], [[], [7]]], ids=["main", "further"])
def test_a_paced_request_has_the_reference_loop_beside_its_handler(
    serve: Callable[..., Ask], processes: list[list[int]]
) -> None:
    ask = serve(PARTS, processes)
    rows = ask("sleep", **PACED).json["timeline"]
    (row,) = (row for row in rows if row["kind"] == "run")
    before_ms, after_ms = row["reference_ms"]
    assert before_ms > 0
    assert after_ms > 0
    assert row["end_ms"] - row["start_ms"] >= 30
    plain = ask("sleep", **TRACED).json["timeline"]
    assert [row for row in plain if "reference_ms" in row] == []
