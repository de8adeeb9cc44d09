"""A stage's own tasks begin when the calls of remote wraps are sent, but do not wait for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from wrap import stage
from wrap.declaration import Wrap
from wrap.messages import Job, Result
from wrap.route import Route
from wrap.runtime import Mechanism, Runtime
from wrap.threads import Canceller, ThreadPool

OWN, REMOTE = 0, 1
BOUND_S = 60.0
WRAP = Wrap(
    name="first",
    workflow="demo",
    functions={"f": "flask"},
    tasks={OWN: "f"},
    stages={0: [[OWN]]},
    mechanism="fork",
    timeout_s=BOUND_S,
)


def result(task: int) -> Result:
    return Result(0, task, "f", "first", 0, time.monotonic(), time.monotonic(), "done")


class Transport:
    """Does `before` it says that the call is sent, and `after` that."""

    def __init__(self, before: Callable[[], Any], after: Callable[[], Any] = lambda: None) -> None:
        self.before, self.after = before, after

    def call(self, wrap: str, job: Job, deadline: float, sent: Callable[[], None]) -> list[Result]:
        self.before()
        sent()
        self.after()
        return [result(task) for task in job.inputs]

    def forward(self, *_: object) -> tuple[int, bytes, str]:
        raise NotImplementedError


def run(transport: Transport) -> set[int]:
    route = Route("", threads=1)
    none = cast(Mechanism, None)
    runtime = Runtime(WRAP, {}, ThreadPool(), Canceller(), none, transport, route)
    job = Job(0, {OWN: "a", REMOTE: "b"})
    deadline = time.monotonic() + BOUND_S
    return {r.task for r in stage.run_stage(runtime, job, [[OWN]], {"second": [REMOTE]}, deadline)}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Set when the stage's own task runs, as it does in every test, if only after the stage."""
    event = threading.Event()

    def run_task(number: int, *_: object) -> Result:
        event.set()
        return result(number)

    monkeypatch.setattr(stage.task, "run", run_task)
    yield event
    assert event.wait(BOUND_S)


def test_own_tasks_begin_when_the_calls_are_sent(
    ran: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_SENDING_S", BOUND_S)
    early: list[bool] = []
    transport = Transport(lambda: early.append(ran.wait(0.05)), lambda: ran.wait(BOUND_S))
    assert run(transport) == {OWN, REMOTE}
    assert early == [False]


def test_own_tasks_begin_before_a_call_that_takes_long_to_send(ran: threading.Event) -> None:
    waited: list[bool] = []
    assert run(Transport(lambda: waited.append(ran.wait(BOUND_S)))) == {OWN, REMOTE}
    assert waited == [True]


def test_a_call_that_cannot_be_sent_holds_nothing_up(
    ran: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_SENDING_S", BOUND_S)

    def fail() -> None:
        raise OSError("no route")

    begin = time.monotonic()
    with pytest.raises(stage.TaskError, match="no route"):
        run(Transport(fail))
    assert time.monotonic() - begin < BOUND_S / 2
