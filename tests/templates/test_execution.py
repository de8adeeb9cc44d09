"""An execution is answered once, also where no thread can be had for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NoReturn, cast

import pytest
from wrap import serving
from wrap.declaration import Entry, Wrap
from wrap.engine import Engine
from wrap.errors import TaskError
from wrap.execution import Execution, Outcome
from wrap.instances import Deciding
from wrap.loop import Loop
from wrap.mechanisms import Guest
from wrap.messages import Ident, Request, Result
from wrap.objects import Object
from wrap.route import Route
from wrap.runtime import Mechanism, Runtime
from wrap.threads import Run, ThreadPool
from wrap.transport import Transport

BOUND_S = 60.0


class NoThreads(ThreadPool):
    def start(self, work: Callable[[], None], name: str = "") -> Run:
        raise RuntimeError("can't start new thread")


class Full:
    """Admits nobody."""

    full = "all workers are busy"

    def admit(self, guest: Guest) -> None:
        pass

    def admit_more(self) -> None:
        pass


def outcome_of(processes: list[list[int]], threads: ThreadPool, seconds: float) -> Outcome:
    """What one task gives; its process, if it has one of its own, is never to be had."""
    wrap = Wrap(
        name="first",
        workflow="demo",
        functions={"f": "flask"},
        tasks={0: "f"},
        processes=processes,
        inputs={0: None},
        buckets=[([], [0])],
        mechanism="pool",
        timeout_s=BOUND_S,
        entry=Entry(0),
    )
    mechanism, transport = cast(Mechanism, Full()), cast(Transport, None)
    runtime = Runtime(wrap, {}, threads, Loop(), mechanism, transport, Route("", threads=1))
    outcomes = SimpleQueue[Outcome]()

    def reply(_: Execution, outcome: Outcome) -> None:
        outcomes.put(outcome)

    part = wrap.graph.part(wrap.place_of, {0})
    deadline = time.monotonic() + seconds
    Execution(runtime, Engine(part), {None: Object("in")}, Ident(), deadline, reply).start()
    outcome = outcomes.get(timeout=BOUND_S)
    assert outcomes.empty()
    return outcome


def test_without_a_thread_for_a_task_it_fails() -> None:
    outcome = outcome_of([[0]], NoThreads(), BOUND_S)
    assert isinstance(outcome, TaskError)
    assert (outcome.code, outcome.status) == ("wrap-failed", 500)
    assert "can't start new thread" in outcome.message


def test_without_a_thread_for_the_answer_the_loop_gives_it() -> None:
    outcome = outcome_of([[], [0]], NoThreads(), 0.05)
    assert isinstance(outcome, TaskError)
    assert (outcome.code, outcome.message) == ("timeout", Full.full)


def test_without_a_thread_for_the_loop_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    outcome = outcome_of([[0]], ThreadPool(), BOUND_S)
    assert isinstance(outcome, TaskError)
    assert outcome.code == "wrap-failed"


class Others(Transport):
    """Two other wraps: the first answers before the second has its request."""

    def call(
        self, wrap: str, request: Request, deadline: float, sent: Callable[[], None]
    ) -> list[Result]:
        if wrap == "slow":
            time.sleep(0.2)
        return [
            Result(0, task, wrap, wrap, 0, 0.0, 0.0, Object(f'"{wrap}"')) for task in request.tasks
        ]


def decided(states: dict[str, Any], tasks: dict[str, int], seconds: float) -> Outcome | str:
    """What a machine whose tasks run in other wraps gives: its answer, or why it has failed."""
    wrap = Wrap(
        name="first",
        workflow="demo",
        functions={},
        tasks={},
        processes=[[]],
        inputs={},
        buckets=[],
        mechanism="pool",
        timeout_s=BOUND_S,
        instances=2,
        entry=Entry(
            None,
            machine={"StartAt": next(iter(states)), "States": states},
            states=tasks,
        ),
        remotes={name: {task: name} for name, task in tasks.items()},
    )
    mechanism, transport = cast(Mechanism, Full()), cast(Transport, Others())
    route = Route("", threads=1)
    runtime = Runtime(wrap, {}, ThreadPool(), Loop(), mechanism, transport, route)
    outcomes = SimpleQueue[Outcome]()
    deadline = time.monotonic() + seconds
    engine = Deciding(wrap, cast(Entry, wrap.entry), "demo", deadline)
    objects = {None: Object("{}")}
    execution = Execution(
        runtime, engine, objects, Ident(), deadline, lambda _, outcome: outcomes.put(outcome)
    )
    execution.start()
    outcome = outcomes.get(timeout=BOUND_S)
    return outcome if isinstance(outcome, TaskError) else execution.data[None].text()


def test_what_ends_while_another_wrap_is_called_is_no_task_to_begin() -> None:
    branches = [
        {"StartAt": name, "States": {name: {"Type": "Task", "Resource": name, "End": True}}}
        for name in ("fast", "slow")
    ]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    assert decided({"Both": both}, {"fast": 0, "slow": 1}, BOUND_S) == '["fast","slow"]'


def test_a_wait_beyond_the_deadline_is_named() -> None:
    outcome = decided({"Wait": {"Type": "Wait", "Seconds": 100, "End": True}}, {}, 0.05)
    assert isinstance(outcome, TaskError)
    assert (outcome.code, outcome.status) == ("timeout", 504)
    assert "a Wait" in outcome.message


def test_an_action_that_fails_does_not_end_the_loop(capsys: pytest.CaptureFixture[str]) -> None:
    loop, done = Loop(), SimpleQueue[str]()

    def fail() -> None:
        raise OSError("no descriptor")

    now = time.monotonic()
    loop.call_at(now + 0.05, lambda: done.put("later"))
    loop.call_at(now + 0.02, lambda: done.put("cancelled")).cancel()
    loop.call_at(now, fail)
    loop.call_at(now + 0.01, lambda: done.put("sooner"))
    assert [done.get(timeout=BOUND_S) for _ in range(2)] == ["sooner", "later"]
    assert done.empty()
    assert "no descriptor" in capsys.readouterr().err


def test_a_request_is_served_also_where_no_thread_can_be_had_for_its_turn():
    served = []

    class Channel:
        def take_turn(self) -> None:
            served.append(self)
            turns.end()

    turns = serving._Turns(NoThreads().start)
    turns.set_thread_count(1)
    channels = [Channel(), Channel()]
    for channel in channels:
        turns.add_task(cast(serving._Channel, channel))
    assert served == channels
    assert turns.active_count == 0
