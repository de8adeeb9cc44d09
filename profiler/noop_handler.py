"""The function that calibration deploys: does nothing, waits, works, or measures its interpreter.

It is copied into a workflow folder of its own, so it imports only the standard library.
"""

import json
import sys
import threading
import time
from functools import cache
from statistics import median

#: The request that asks for the measurement.
QUESTION = "measure"
#: The request that has it wait, as functions do: what has been idle for a while, be it a client, a
#: gateway or a core, takes longer for the same (a request 2.6 ms instead of 1.7 after 10 ms).
PAUSE = "pause"
_PAUSE_S = 0.01
#: The request that has it compute for some milliseconds, wait, and compute as long again.
WORK = "work"
WORK_PAUSE_MS = 10.0
#: The request that has it answer a text of so many million bytes; to that it answers nothing.
LARGE = "large"
LARGE_MB = 16
_STEPS = 60_000
_ROUND_TRIPS = 500
_REPEATS = 15


def _pass_on(mine: threading.Lock, others: threading.Lock) -> None:
    """Wait for one's turn and give it to the other thread, again and again."""
    for _ in range(_ROUND_TRIPS):
        mine.acquire()
        others.release()


def _hand_over_ms() -> float:
    """How long it takes on average until a thread that waits runs instead of the one that ran."""
    first, second = threading.Lock(), threading.Lock()
    first.acquire()
    second.acquire()
    threads = [
        threading.Thread(target=_pass_on, args=locks)
        for locks in ((first, second), (second, first))
    ]
    for thread in threads:
        thread.start()
    start = time.perf_counter()
    first.release()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - start) * 1000 / (2 * _ROUND_TRIPS)


def switch_cost_ms() -> float:
    """What one change of the GIL's holder costs, in milliseconds.

    Two threads take turns. Timing two that compute and are forced to switch shows the same only
    in theory: what some hundred changes cost is less than how much one run differs from the next.
    """
    return median(_hand_over_ms() for _ in range(_REPEATS))


@cache
def _large() -> str:
    return "x" * (LARGE_MB * 1_000_000)


def _compute() -> None:
    total = 0
    for step in range(_STEPS):
        total += step * step


def handle(req: str) -> str:
    """Answer the request, at once, after a pause or some work, or the interpreter's constants."""
    if req == WORK:
        _compute()
        time.sleep(WORK_PAUSE_MS / 1000)
        _compute()
    if req == PAUSE:
        time.sleep(_PAUSE_S)
    if req == LARGE:
        return _large()
    if req != QUESTION:
        return req if len(req) < LARGE_MB * 1_000_000 else ""
    return json.dumps(
        {
            "switch_interval_ms": sys.getswitchinterval() * 1000,
            "switch_cost_ms": switch_cost_ms(),
        }
    )
