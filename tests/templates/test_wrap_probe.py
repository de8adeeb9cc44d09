"""A probed request tells what its handler did with the GIL; another, how fast its core was."""

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
#: Answers what its own thread and its pool, or else its processes, computed, in milliseconds.
OTHERS = """
import hashlib, json, os, resource, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor

POOL = ThreadPoolExecutor(2)
CHILD = "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 300_000)"

def derive(_):
    hashlib.pbkdf2_hmac("sha256", b"", b"", 300_000)

def computed():
    mine = (t for t in threading.enumerate() if t.name.startswith("ThreadPoolExecutor"))
    clocks = [time.pthread_getcpuclockid(t.ident) for t in (threading.current_thread(), *mine)]
    return 1000 * sum(map(time.clock_gettime, clocks))

def ended():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (usage.ru_utime + usage.ru_stime)

def handle(req):
    if req == "pool":
        before = computed()
        list(POOL.map(derive, range(2)))
        return json.dumps(computed() - before)
    before = ended()
    if req == "processes":
        started = [subprocess.Popen([sys.executable, "-SIc", CHILD]) for _ in range(2)]
        for process in started:
            process.wait()
    else:
        os.system(f'{sys.executable} -SIc "{CHILD}"; true')
    return json.dumps(ended() - before)
"""
KEY = "0123456789abcdef"
TRACED = {"X_Chiron_Trace": KEY}
PROBED = {"X_Chiron_Trace": f"{KEY} probe"}
WEIGHED = {"X_Chiron_Trace": f"{KEY} memory"}
#: Has as many MiB as its module, which it only reads; what it is asked to, it writes to or takes.
MEMORY = """
KEPT = bytearray(b"1") * (64 << 20)
def handle(req):
    what, _, mib = req.partition(" ")
    if what == "write":
        for place in range(0, int(mib) << 20, 4096):
            KEPT[place] = 1
    elif what == "take":
        taken = b"1" * (int(mib) << 20)
    return str(sum(KEPT[:: 1 << 20]))
"""
CPU_PROBED = {"X_Chiron_Trace": f"{KEY} cpu-speed"}

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def serve(shared_start: Any, shared_image: Any) -> Callable[..., Ask]:
    """Serves one function in a process of the wrap, once; asks it with headers."""
    servers = dict[tuple[str, int], Any]()

    def serve(code: str, processes: list[list[int]]) -> Ask:
        which = code, len(processes)
        if which not in servers:
            entry = {"output": 7}
            image = shared_image({"one": code}, processes, tasks={7: "one"}, entry=entry)
            servers[which] = shared_start(image, chiron_trace_key=KEY)

        def ask(body: str, **headers: str) -> Any:
            return servers[which].request(body=body, **headers)

        return ask

    return serve


def ticks(answer: Any) -> list[list[Any]]:
    (found,) = (row["ticks"] for row in answer.json["timeline"]["spans"] if row["kind"] == "task")
    assert (found[0][4], found[-1][4]) == ("begin", "end")
    return list(found)


@pytest.mark.parametrize("processes", [[[7]], [[], [7]]], ids=["main", "further"])
def test_the_probe_waits_for_the_gil_only_while_the_handler_computes_with_it(
    serve: Callable[..., Ask], processes: list[list[int]]
) -> None:
    ask = serve(PARTS, processes)
    asleep = ticks(ask("sleep", **PROBED))[1:-1]
    assert asleep
    assert sum(1 for tick in asleep if tick[4].isdecimal()) > 0.5 * len(asleep)
    assert asleep[-1][1] - asleep[0][1] < 10_000  # microseconds of CPU time
    native = ticks(ask("native", **PROBED))[1:-1]
    assert native
    assert sum(1 for tick in native if tick[4] == "running") > 0.5 * len(native)
    assert len(ticks(ask("compute", **PROBED))) < 8


@pytest.mark.each_once
@pytest.mark.parametrize(("others", "column"), [("pool", 1), ("processes", 7), ("shell", 7)])
@pytest.mark.parametrize("processes", [[[7]], [[], [7]]], ids=["main", "further"])
def test_what_others_compute_for_the_handler_is_seen(
    serve: Callable[..., Ask], processes: list[list[int]], others: str, column: int
) -> None:
    """Also by a thread that was there before, and by the process of a process."""
    ask = serve(OTHERS, processes)
    for _ in range(2):  # the second time, the pool has its threads already
        answer = ask(others, **PROBED)
        seen = ticks(answer)
        computed_ms = float(answer.json["output"])
        so_far_ms = [(tick[column] - seen[0][column]) / 1000 for tick in seen]
        assert computed_ms - 0.5 <= so_far_ms[-1] <= 1.5 * computed_ms + 8
        assert any(0.2 * computed_ms < each < 0.8 * computed_ms for each in so_far_ms)


def test_a_traced_run_tells_what_its_threads_and_processes_computed(
    serve: Callable[..., Ask],
) -> None:
    ask = serve(OTHERS, [[7]])
    for others in ("pool", "processes", "shell"):
        answer = ask(others, **TRACED)
        (row,) = (row for row in answer.json["timeline"]["spans"] if row["kind"] == "task")
        assert row["cpu_ms"] >= float(answer.json["output"]) - 0.5, others


def test_the_switch_interval_is_long_only_while_probed(serve: Callable[..., Ask]) -> None:
    ask = serve(SWITCH_INTERVAL, [[7]])
    assert ask("").text == "0.005"
    assert ask("", **PROBED).json["output"] == "1.0"
    assert ask("").text == "0.005"
    (row,) = ask("", **TRACED).json["timeline"]["spans"]
    assert "ticks" not in row


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


def test_a_request_for_it_has_the_cpu_speed_probe_beside_its_handler(
    serve: Callable[..., Ask],
) -> None:
    ask = serve(PARTS, [[], [7]])
    rows = ask("sleep", **CPU_PROBED).json["timeline"]["spans"]
    (row,) = (row for row in rows if row["kind"] == "task")
    before_ms, after_ms = row["cpu_probe_ms"]
    assert before_ms > 0
    assert after_ms > 0
    assert row["end_ms"] - row["start_ms"] >= 30
    plain = ask("sleep", **TRACED).json["timeline"]["spans"]
    assert [row for row in plain if "cpu_probe_ms" in row] == []


@pytest.mark.parametrize(("what", "mib"), [("read", 0), ("write 40", 40), ("take 40", 40)])
def test_a_request_for_it_tells_what_memory_its_process_shares_with_no_other(
    serve: Callable[..., Ask], what: str, mib: int
) -> None:
    """Also what it has given back when it ends; not what it was forked with, and has only read."""
    ask = serve(MEMORY, [[], [7]])
    rows = ask(what, **WEIGHED).json["timeline"]["spans"]
    (row,) = (row for row in rows if row["kind"] == "task")
    assert mib <= row["own_mib"] < mib + 10
    plain = ask(what, **TRACED).json["timeline"]["spans"]
    assert [row for row in plain if "own_mib" in row] == []
