"""Own tasks begin when the calls of remote wraps are sent, but do not wait for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, cast

import pytest
from wrap.core.dag import Engine
from wrap.core.errors import TaskError
from wrap.core.wrap_spec import Entry, Wrap
from wrap.dispatch import execution, task_threads
from wrap.dispatch.runtime import Runtime
from wrap.event_loop.loop import Loop
from wrap.event_loop.threads import ThreadPool
from wrap.http.traffic_switch import Route
from wrap.net.messages import Ident, Request, Result
from wrap.values.value import Object
from wrap.workers.mechanisms.mechanism import Mechanism

OWN, REMOTE = 0, 1
BOUND_S = 180.0
WRAP = Wrap(
    name="first",
    workflow="demo",
    functions={"f": "flask"},
    tasks={OWN: "f"},
    processes=[[OWN]],
    inputs={OWN: None, REMOTE: None},
    buckets=[([], [OWN, REMOTE])],
    mechanism="fork",
    timeout_s=BOUND_S,
    entry=Entry(REMOTE),
    remotes={"second": {REMOTE: "f"}},
)
IDENT = Ident()
OUTPUT = Object("done")


def result(task: int) -> Result:
    return Result(IDENT.number, task, "f", "first", 0, time.monotonic(), time.monotonic(), OUTPUT)


class Transport:
    """Does `before` it says that the call is sent, and `after` that."""

    def __init__(self, before: Callable[[], Any], after: Callable[[], Any] = lambda: None) -> None:
        self.before, self.after = before, after

    def call(
        self, wrap: str, request: Request, deadline: float, sent: Callable[[], None]
    ) -> list[Result]:
        self.before()
        sent()
        self.after()
        return [result(task) for task in request.tasks]

    def forward(self, *_: object) -> tuple[int, bytes, str]:
        raise NotImplementedError


def run(transport: Transport) -> set[int]:
    route = Route("", threads=1)
    none = cast(Mechanism, None)
    runtime = Runtime(WRAP, {}, ThreadPool(), Loop(), none, transport, route)
    outcomes = SimpleQueue[execution.Outcome]()

    def reply(_: execution.Execution, outcome: execution.Outcome) -> None:
        outcomes.put(outcome)

    part = WRAP.graph.part(WRAP.place_of, {REMOTE})
    deadline = time.monotonic() + BOUND_S
    execution.Execution(runtime, Engine(part), {None: Object("a")}, IDENT, deadline, reply).start()
    outcome = outcomes.get(timeout=2 * BOUND_S)
    if isinstance(outcome, TaskError):
        raise outcome
    return {result.task for result in outcome}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when the own task runs."""
    event = threading.Event()

    def run_task(number: int, *_: object) -> Result:
        event.set()
        return result(number)

    monkeypatch.setattr(task_threads.tasks, "run", run_task)
    return event


def test_own_tasks_begin_when_the_calls_are_sent(
    ran: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_threads, "_SENDING_S", BOUND_S)
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
    monkeypatch.setattr(task_threads, "_SENDING_S", BOUND_S)

    def fail() -> None:
        raise OSError("no route")

    begin = time.monotonic()
    with pytest.raises(TaskError, match="no route"):
        run(Transport(fail))
    assert time.monotonic() - begin < BOUND_S / 2
