"""The next task of a process begins when the handler before it first waits."""

from __future__ import annotations

import threading
import time

import pytest
from wrap.core.start_queue import Look, Step, next_step
from wrap.functions.last_begun import LastBegun

NOW = Look(0.001, "running")


@pytest.mark.parametrize("call", ["0", "7", "230", "-1", ""])
def test_a_handler_in_a_system_call_waits(call: str) -> None:
    assert next_step(NOW._replace(call=call)) is Step.BEGIN


def test_one_that_runs_may_be_in_a_short_call_and_one_in_a_futex_may_want_the_gil() -> None:
    assert next_step(NOW) is Step.KEEP
    assert next_step(NOW._replace(call="202")) is Step.LEAVE


@pytest.mark.parametrize(
    ("last", "used_s", "call", "step"),
    [
        pytest.param(Step.LEAVE, 0.0, "202", Step.BEGIN, id="in a lock"),
        pytest.param(Step.LEAVE, 0.0001, "202", Step.LEAVE, id="wanted the GIL, and does again"),
        pytest.param(Step.LEAVE, 0.0001, "running", Step.KEEP, id="wanted the GIL, and computes"),
        pytest.param(Step.KEEP, 0.0001, "running", Step.BEGIN, id="computes without the GIL"),
        pytest.param(Step.KEEP, 0.00003, "202", Step.LEAVE, id="wants the GIL after a short call"),
        pytest.param(Step.KEEP, 0.0, "running", Step.LEAVE, id="has no core"),
    ],
)
def test_two_looks_tell_what_a_handler_does(
    last: Step, used_s: float, call: str, step: Step
) -> None:
    assert next_step(Look(0.001, call, 0.0001, used_s), last) is step


def test_on_one_core_a_handler_that_computes_is_left_alone() -> None:
    look = Look(0.001, "running", 0.0001, 0.0001)
    assert next_step(look, Step.KEEP, one_core=True) is Step.LEAVE


def test_no_handler_is_alone_for_longer_than_a_switch_interval() -> None:
    assert next_step(NOW._replace(since_s=0.0051)) is Step.BEGIN


class Handler(threading.Thread):
    """A handler that begins, and waits until it is let go; it may end by `ends`."""

    def __init__(self, last: LastBegun, *, ends: bool = False) -> None:
        super().__init__(daemon=True)
        self.waits, self.go_on = threading.Event(), threading.Event()
        self._last, self._ends = last, ends
        self.start()
        self.waits.wait()

    def run(self) -> None:
        self._last.begins()
        if self._ends:
            self._last.ends()
        self.waits.set()
        self.go_on.wait()


@pytest.mark.parametrize("ends", [True, False])
def test_a_handler_that_waits_or_has_ended_is_not_waited_for(ends: bool) -> None:
    last = LastBegun()
    handler = Handler(last, ends=ends)
    last.await_wait()
    assert handler.is_alive()
    handler.go_on.set()
    handler.join()
    last.await_wait()  # its thread is gone


def test_only_the_thread_that_began_last_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    last, calls = LastBegun(), ["running", "running", "0"]
    handler = Handler(last)
    last.ends()  # another thread's handler
    monkeypatch.setattr("wrap.functions.last_begun._call", lambda _: calls.pop(0))
    last.await_wait()
    assert not calls
    handler.go_on.set()


def test_nothing_is_waited_for_if_the_kernel_tells_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    last = LastBegun()
    last.begins()
    monkeypatch.setattr("os.read", lambda *_: b"")
    monkeypatch.setattr(time, "sleep", pytest.fail)
    last.await_wait()


def test_nothing_is_waited_for_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise FileNotFoundError

    last = LastBegun()
    last.begins()
    monkeypatch.setattr("os.open", refused)
    monkeypatch.setattr(time, "sleep", pytest.fail)
    last.await_wait()
