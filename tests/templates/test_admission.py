"""What is let in, and where an execution begins that needs workers; no thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import RLock
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core.admission import (
    Limiter,
    check_memory,
    check_size,
    check_time,
    deadline_of,
    freest,
)
from wrap.core.errors import TaskError
from wrap.dispatch.admission import Admission

from tests.rows import each_row


def refusal(check: Callable[..., None], *arguments: object) -> tuple[str, int] | None:
    try:
        check(*arguments)
    except TaskError as error:
        return error.code, error.status
    return None


@each_row(
    ("timeout_s", "asked_s", "deadline"),
    [(30.0, float("inf"), 130.0), (30.0, 5.0, 105.0), (30.0, 60.0, 130.0)],
)
def test_a_caller_can_ask_for_less_time_and_not_for_more(timeout_s, asked_s, deadline):
    assert deadline_of(100.0, timeout_s, asked_s) == deadline


@each_row(
    ("check", "arguments", "refused"),
    [
        (check_time, (9.9, 10.0), None),
        (check_time, (10.0, 10.0), ("timeout", 504)),
        (check_size, (10, None), None),
        (check_size, (10, 10), None),
        (check_size, (11, 10), ("too-large", 413)),
        (check_memory, (10, 0, 10, "it"), None),
        (check_memory, (11, 0, 10, "it"), ("too-large", 413)),
        (check_memory, (11, 5, 10, "it"), ("too-large", 413)),  # it never fits
        (check_memory, (6, 5, 10, "it"), ("full", 503)),
        (check_memory, (5, 5, 10, "it"), None),
    ],
)
def test_what_is_refused_and_with_which_code(check, arguments, refused):
    assert refusal(check, *arguments) == refused


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.sampled_from(["ask", "leave", "exceed"]), st.integers(0, 7))),
)
def test_executions_are_admitted_once_in_their_order_and_no_more_than_the_limit(limit, steps):
    limiter, waiting, admitted, extra = Limiter[int](limit), list[int](), set[int](), 0
    for step, number in steps:
        following = None
        if step == "ask" and number not in admitted:
            may = len(admitted) < limit
            assert limiter.admit_or_queue(number) == may
            if may:
                admitted.add(number)
            elif number not in waiting:
                waiting.append(number)
        elif step == "leave" and number in admitted:
            admitted.remove(number)
            following = limiter.leave(number)
            assert (following is not None) == (bool(waiting) and len(admitted) < limit)
        elif step == "exceed":
            following = limiter.exceed(lambda each: each % 2 == 0)
            blocked = all(each % 2 == 0 for each in admitted)
            assert (following is not None) == (blocked and bool(waiting))
            extra += following is not None
        if following is not None:
            assert following == waiting.pop(0)
            admitted.add(following)
        assert limiter.admitted == admitted
        assert limiter.waiting == len(waiting)
        assert limiter.free == max(0, limit - len(admitted))
        assert len(admitted) <= limit + extra
        assert not waiting or not limiter.free, "an execution waits though there are workers"


def test_an_execution_that_comes_back_waits_once_and_takes_no_other_ones_workers() -> None:
    limiter = Limiter[str](2)
    assert limiter.admit_or_queue("first") and limiter.admit_or_queue("second")
    assert not limiter.admit_or_queue("offloaded")
    assert not limiter.admit_or_queue("offloaded")  # its replica was lost
    assert limiter.waiting == 1
    assert limiter.leave("first") == "offloaded"
    # It was offloaded again before it took these workers, and comes back before it leaves them.
    assert not limiter.admit_or_queue("offloaded")
    assert limiter.leave("second") is None
    assert limiter.leave("offloaded") == "offloaded"
    assert limiter.leave("offloaded") is None
    assert limiter.free == 2


class Waiting:
    """An execution that waits, in a replica whose loop and mechanism do nothing by themselves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: list[Admission] = []
        self.asked: list[Any] = []
        #: When the loop is to look whether all wait, and what it calls then.
        self.looks: list[tuple[float, Callable[[], None]]] = []
        mechanism = SimpleNamespace(
            admit=lambda _: None, admit_more=lambda: None, leave=self.left.append
        )
        offload = SimpleNamespace(after_s=1.0, send=lambda *of: self.asked.append(of))
        loop = SimpleNamespace(is_here=False, call_at=self._call_at)
        execution: Any = SimpleNamespace(
            runtime=SimpleNamespace(mechanism=mechanism, offload=offload, loop=loop),
            **{"lock": RLock(), "over": False, "live": False, "into_buckets": None, "data": {}},
            **{"ident": None, "deadline": 9.0, "begin": None, "event": lambda send: send()},
            part=SimpleNamespace(is_whole=True, place_of={}, gives=()),
            event_of=lambda *_: None,
        )
        monkeypatch.setattr(time, "monotonic", lambda: 0.0)
        self.admission = Admission(execution)
        self.admission.wait()
        ((_, _, self.wanted, self.returned),) = self.asked

    def _call_at(self, when: float, action: Callable[[], None]) -> None:
        if when == 1.0:  # it has waited long enough for other replicas to be asked
            action()
        else:
            self.looks.append((when, action))


@given(st.lists(st.sampled_from(["admit", "offload", "return"])))
def test_an_execution_begins_in_one_place_at_a_time(steps: list[str]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        waiting, place = Waiting(monkeypatch), ""
    for step in steps:
        if step == "return":
            if place == "offload":  # nobody else returns it
                waiting.returned(None)
                place = ""
            continue
        begin = waiting.admission.admit if step == "admit" else waiting.wanted
        assert begin() == (place == "")
        place = place or step
    waiting.admission.leave()
    assert bool(waiting.left) == (place == "admit")


def test_it_is_looked_less_and_less_often_whether_all_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch)
    for _ in range(3):
        waiting.looks[-1][1]()
    assert [when for when, _ in waiting.looks] == [0.02, 0.04, 0.08, 0.16]
    assert waiting.wanted()
    waiting.returned(None)
    assert waiting.looks[-1][0] == 0.02


@each_row(
    ("free", "replica"),
    [
        ({}, None),
        ({"a": 0, "b": 0}, None),
        ({"a": 1, "b": 3, "c": 2}, "b"),
        ({"a": 0, "b": 1}, "b"),
    ],
)
def test_the_replica_with_the_most_free_workers_is_asked_if_any_has_some(free, replica):
    assert freest(free) == replica
