"""Times that are far away, and those that are cancelled: in the loop, and in a state machine."""

from __future__ import annotations

import math
import time
from queue import SimpleQueue
from random import Random
from typing import Any

import pytest
from wrap.core.statemachine.errors import StatesError
from wrap.core.statemachine.machine import Machine
from wrap.event_loop.loop import CPU, WAIT, Loop
from wrap.values.jsonata import Jsonata

from tests.rows import each_row

#: Longest wait for what takes a moment, in seconds.
BOUND_S = 180.0
YEAR_S = 365 * 24 * 3600.0


@each_row("far_s", [25 * 24 * 3600.0, 8000 * YEAR_S, 1e300, math.inf])
def test_a_far_time_keeps_no_other_from_coming(far_s: float) -> None:
    loop, done = Loop(), SimpleQueue[str]()
    loop.call_at(time.monotonic() + far_s, lambda: done.put("far"))
    loop.call_at(time.monotonic() + 0.05, lambda: done.put("near"))
    assert done.get(timeout=BOUND_S) == "near"
    loop.call_at(time.monotonic(), lambda: done.put("now"))
    assert done.get(timeout=BOUND_S) == "now"
    assert done.empty()


def test_a_time_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        Loop().call_at(math.nan, lambda: None)


@each_row("pending", [0, 1000])
def test_cancelled_times_leave_the_heap(pending: int) -> None:
    loop = Loop()
    for _ in range(pending):
        loop.call_at(math.inf, lambda: None)
    most = 0
    for _ in range(3_000):
        loop.call_at(time.monotonic() + YEAR_S, lambda: None).cancel()
        most = max(most, len(loop._times))
    assert most <= 2 * (pending + 100) + 1


def test_an_idle_loop_turns(eventually: Any) -> None:
    loop = Loop()
    loop.call_at(math.inf, lambda: None)
    turns = loop.turns
    assert eventually(lambda: loop.turns > turns + 1)


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.parametrize(
    ("action", "cause"), [(lambda: compute(0.02), CPU), (lambda: time.sleep(0.02), WAIT)]
)
def test_an_event_that_holds_up_all_others_is_counted_by_its_cause(action, cause):
    loop, done = Loop(), SimpleQueue[None]()
    loop.call_at(time.monotonic(), action)
    loop.call_at(time.monotonic() + 0.001, lambda: done.put(None))
    done.get(timeout=BOUND_S)
    assert loop.stalls[cause] >= 1
    assert loop.stalls[CPU] == (cause == CPU)


def test_a_backoff_that_is_no_number_any_more_is_the_longest_delay() -> None:
    retry = {"ErrorEquals": ["States.ALL"], "BackoffRate": 1e300, "MaxAttempts": 4}
    task = {"Type": "Task", "Resource": "f", "End": True, "Retry": [retry | {"MaxDelaySeconds": 2}]}
    machine = Machine({"StartAt": "f", "States": {"f": task}}, lambda *_: {}, Random(1), Jsonata())
    step, delays = machine.start("{}", 0.0), list[float]()
    for _ in range(4):
        waits = machine.failed(step.begins[0].number, StatesError("E", ""), 0.0)
        delays.append(waits.delays[0].seconds)
        step = machine.due(waits.delays[0].number, 0.0)
    assert delays == [1, 2, 2, 2]
