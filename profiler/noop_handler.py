"""The function deployed by calibration: does the requested work, or measures its interpreter.

It is copied into its own workflow folder, so it imports only the standard library.
"""

import hashlib
import json
import os
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
#: How long the GIL is released, in milliseconds. The probe of a profile sees longer releases.
_RELEASES_MS = (0.05, 0.1, 0.2)
_HELD_S = 0.0003
_MILLISECOND_S = 0.001


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


def short_release_ms() -> float | None:
    """Return how short a release of the GIL is, in milliseconds, to have it back on a busy core.

    It is the longest of some releases in which a thread computes, and after which it mostly has the
    GIL before another thread on its core; 0 if none is. None if no thread may be bound to a core.
    """
    cores, over = os.sched_getaffinity(0), threading.Event()
    try:
        os.sched_setaffinity(0, {min(cores)})
    except OSError:
        return None
    rounds = 1000 / min(_time_s(1000) for _ in range(5)) * _MILLISECOND_S
    other = threading.Thread(target=_compute_until, args=(over,), daemon=True)  # on the same core
    other.start()
    shorter_ms = 0.0
    try:
        for release_ms in _RELEASES_MS:
            if not _is_kept(release_ms * rounds, release_ms * _MILLISECOND_S):
                break
            shorter_ms = release_ms
    finally:
        over.set()
        other.join()
        os.sched_setaffinity(0, cores)
    return shorter_ms


def _compute_until(over: threading.Event) -> None:
    while not over.is_set():
        pass


def _time_s(rounds: float) -> float:
    start = time.perf_counter()
    _hash(rounds)
    return time.perf_counter() - start


def _is_kept(rounds: float, release_s: float) -> bool:
    """Whether this thread mostly has the GIL back after hashing, which releases it."""
    over_s = []
    for _ in range(_REPEATS):
        held = time.perf_counter() + _HELD_S
        while time.perf_counter() < held:
            pass
        over_s.append(_time_s(rounds) - release_s)
    return median(over_s) < sys.getswitchinterval() / 2


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
            "short_release_ms": short_release_ms(),
            "python": sys.version_info[:2],
            "gil": vars(sys).get("_is_gil_enabled", lambda: True)(),
        }
    )
