"""The function deployed by calibration: does the requested work, or measures its interpreter.

It is copied into its own workflow folder, so it imports only the standard library.
"""

import hashlib
import json
import sys
import threading
import time
from functools import cache
from pathlib import Path
from statistics import median

#: The request for the measurement.
QUESTION = "measure"
#: The kinds of steps in other requests.
CPU, NATIVE, BLOCK = "cpu", "native", "block"
#: The request for a text of this many million bytes; a request of that size gets an empty answer.
LARGE = "large"
LARGE_MB = 16
#: A file beside the handler that does a request's second list of steps; other handlers do the
#: first. Folder names cannot distinguish them: functions see the same path in a wrap and alone.
SECOND = "second"
_TURN = int(Path(__file__).with_name(SECOND).exists())
_ROUND_TRIPS = 500
_REPEATS = 15


def _pass_on(mine: threading.Lock, others: threading.Lock) -> None:
    """Repeatedly wait for this thread's turn and pass it to the other thread."""
    for _ in range(_ROUND_TRIPS):
        mine.acquire()
        others.release()


def _hand_over_ms() -> float:
    """Return the mean time of switching from one thread to a waiting thread."""
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
    """Return the cost of one change of the GIL's holder, in milliseconds.

    Two threads take turns. In theory, timing two computing threads that are forced to switch shows
    the same. But the cost of some hundred changes is less than the variation between runs.
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
    """Answer the request when its steps are done, or return the interpreter's constants.

    A request has two lists of steps, each a kind and its amount.
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
        {
            "switch_interval_ms": sys.getswitchinterval() * 1000,
            "switch_cost_ms": switch_cost_ms(),
            "python": sys.version_info[:2],
            "gil": vars(sys).get("_is_gil_enabled", lambda: True)(),
        }
    )
