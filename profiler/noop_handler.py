"""The function that calibration deploys: does nothing or what it is asked to, or measures its
interpreter.

It is copied into a workflow folder of its own, so it imports only the standard library.
"""

import hashlib
import json
import sys
import threading
import time
from functools import cache
from pathlib import Path
from statistics import median

#: The request that asks for the measurement.
QUESTION = "measure"
#: The kinds of steps that other requests ask for.
CPU, NATIVE, BLOCK = "cpu", "native", "block"
#: The request that has it answer a text of so many million bytes; to that it answers nothing.
LARGE = "large"
LARGE_MB = 16
#: A file beside the handler that does a request's second list of steps; others do the first. No
#: name of a folder would do: functions in a wrap see theirs as where they are alone.
SECOND = "second"
_TURN = int(Path(__file__).with_name(SECOND).exists())
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


def _loop(steps: float) -> None:
    total = 0
    for step in range(int(steps)):
        total += step * step


def _hash(rounds: float) -> None:
    hashlib.pbkdf2_hmac("sha256", b"", b"", int(rounds))


def _wait(milliseconds: float) -> None:
    time.sleep(milliseconds / 1000)


_DO = {CPU: _loop, NATIVE: _hash, BLOCK: _wait}


def handle(req: str) -> str:
    """Answer the request when its steps are done, or the interpreter's constants.

    A request has two lists of steps, each a kind and how much of it.
    """
    if req == LARGE:
        return _large()
    if len(req) >= LARGE_MB * 1_000_000:
        return ""
    if req != QUESTION:
        for kind, amount in json.loads(req)[_TURN]:
            _DO[kind](amount)
        return req
    return json.dumps(
        {"switch_interval_ms": sys.getswitchinterval() * 1000, "switch_cost_ms": switch_cost_ms()}
    )
