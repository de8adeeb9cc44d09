"""Tasks of a process that begin together begin in the order of the plan."""

from __future__ import annotations

from typing import Any

import pytest

#: Handlers of both kinds answer when they began.
WAITS = """
    import time

    def handle(req):
        began = time.monotonic()
        time.sleep(0.005)
        return str(began)
"""
COMPUTES = """
    import time

    def handle(req):
        began = time.monotonic()
        for _ in range(20_000):
            pass
        return str(began)
"""
#: It computes for less than a switch interval, and releases the GIL again and again meanwhile.
BRIEFLY_RELEASES = """
    import hashlib
    import time

    def handle(req):
        for _ in range(20):
            hashlib.pbkdf2_hmac("sha256", b"", b"", 50)
        waits = time.monotonic()
        time.sleep(0.005)
        return str(waits)
"""
HANDLERS = {"e": WAITS, "d": COMPUTES, "c": WAITS, "b": COMPUTES, "a": WAITS}
ORDER = [2, 0, 4, 3, 1]
PLACES: dict[str, dict[str, Any]] = {
    "main": {"processes": [ORDER]},
    "fork": {"processes": [[], ORDER]},
    "pool": {"processes": [[], ORDER], "mechanism": "pool"},
}
REQUESTS = 50


@pytest.mark.slow
@pytest.mark.quiet
@pytest.mark.parametrize("place", PLACES)
def test_tasks_begin_in_the_order_of_the_plan(place: str, start: Any, wrap_image: Any) -> None:
    server = start(wrap_image(HANDLERS, entry={"output": ORDER}, **PLACES[place]))
    answers = [server.request().json for _ in range(REQUESTS)]
    # A thread that the kernel keeps from its core with the GIL in its hands loses it after 5 ms.
    assert sum(began == sorted(began) for began in answers) > 0.9 * REQUESTS


@pytest.mark.slow
@pytest.mark.quiet
@pytest.mark.parametrize("place", ["main", "pool"])  # the first call in a fork is not brief
def test_a_task_begins_when_the_task_before_waits(place: str, start: Any, wrap_image: Any) -> None:
    processes = [[0, 1] if tasks else [] for tasks in PLACES[place]["processes"]]
    settings = PLACES[place] | {"processes": processes}
    handlers = {"first": BRIEFLY_RELEASES, "next": WAITS}
    server = start(wrap_image(handlers, entry={"output": [0, 1]}, **settings))
    answers = [server.request().json for _ in range(REQUESTS)]
    assert sum(waits < began for waits, began in answers) > 0.9 * REQUESTS
