"""An execution is answered once, also where no thread can be had for it."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
from wrap.core.dag import Engine
from wrap.core.errors import TaskError
from wrap.core.placement import Deciding, Patience
from wrap.core.triggers import MOST_AT_ONCE
from wrap.core.wrap_spec import Entry, Wrap
from wrap.dispatch.admission import Admission
from wrap.dispatch.execution import Execution, Outcome
from wrap.dispatch.runtime import Runtime
from wrap.dispatch.world import WORLD
from wrap.event_loop.loop import Loop
from wrap.event_loop.threads import ThreadPool, Work
from wrap.http.server.connection import Channel
from wrap.http.server.dispatcher import Dispatcher
from wrap.http.traffic_switch import Route
from wrap.net.messages import Ident, Request, Result
from wrap.net.transport import Transport
from wrap.values.inputs import Inputs
from wrap.values.value import Object
from wrap.workers.mechanisms.mechanism import Candidate, Mechanism

from tests.rows import each_row

BOUND_S = 180.0


class NoThreads(ThreadPool):
    def start(self, work: Callable[[], None], name: str = "") -> Work:
        raise RuntimeError("can't start new thread")


class Full:
    """Admits nobody."""

    full = "all workers are busy"

    def admit(self, candidate: Candidate) -> None:
        pass

    def admit_more(self) -> None:
        pass


ONE_TASK = Wrap(
    name="first",
    workflow="demo",
    functions={"f": "flask"},
    tasks={0: "f"},
    processes=[[0]],
    inputs={0: None},
    buckets=[([], [0])],
    mechanism="pool",
    timeout_s=BOUND_S,
    entry=Entry(0),
)


def outcome_of(processes: list[list[int]], threads: ThreadPool, seconds: float) -> Outcome:
    """What one task gives; its process, if it has one of its own, is never to be had."""
    wrap = replace(ONE_TASK, processes=processes)
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


def deciding(states: dict[str, Any], tasks: dict[str, int]) -> Wrap:
    """The entry wrap of a machine whose tasks run in other wraps."""
    machine = {"StartAt": next(iter(states)), "States": states}
    return replace(
        ONE_TASK,
        functions={},
        tasks={},
        processes=[[]],
        inputs={},
        buckets=[],
        instances=2,
        entry=Entry(None, machine=machine, states=tasks),
        remotes={name: {task: name} for name, task in tasks.items()},
    )


def decided(
    states: dict[str, Any], tasks: dict[str, int], seconds: float, request: str = "{}"
) -> Outcome | str:
    """What a machine whose tasks run in other wraps gives: its answer, or why it has failed."""
    wrap = deciding(states, tasks)
    mechanism, transport = cast(Mechanism, Full()), cast(Transport, Others())
    route = Route("", threads=1)
    runtime = Runtime(wrap, {}, ThreadPool(), Loop(), mechanism, transport, route)
    outcomes = SimpleQueue[Outcome]()
    deadline = time.monotonic() + seconds
    engine = Deciding(wrap, cast(Entry, wrap.entry), "demo", deadline, WORLD)
    objects = {None: Object(request)}
    execution = Execution(
        runtime, engine, objects, Ident(), deadline, lambda _, outcome: outcomes.put(outcome)
    )
    execution.start()
    outcome = outcomes.get(timeout=BOUND_S)
    if isinstance(outcome, TaskError):
        return outcome
    assert outcome == []  # of any number of instances no result is kept that nobody asks for
    return execution.data[None].text()


def test_what_ends_while_another_wrap_is_called_is_no_task_to_begin() -> None:
    branches = [
        {"StartAt": name, "States": {name: {"Type": "Task", "Resource": name, "End": True}}}
        for name in ("fast", "slow")
    ]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    assert decided({"Both": both}, {"fast": 0, "slow": 1}, BOUND_S) == '["fast","slow"]'


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


def test_a_request_is_served_also_if_no_thread_can_be_had_for_it():
    served = []

    class Channel:
        def serve_first(self) -> None:
            served.append(self)
            dispatcher.end()

    dispatcher = Dispatcher(NoThreads().start)
    dispatcher.set_thread_count(1)
    channels = [Channel(), Channel()]
    for channel in channels:
        dispatcher.add_task(cast(Any, channel))
    assert served == channels
    assert dispatcher.count() == (0, 0)


def test_an_evaluation_without_end_ends_at_the_deadline() -> None:
    """The cost of its path is the cube of the number of items."""
    path = "$.i[?(count($..[?(count($..*) > 0)]) < 0)]"
    request = f'{{"i":[{",".join(["[[1]]"] * 2000)}]}}'
    state = {"Type": "Pass", "Parameters": {"x.$": path}, "End": True}
    outcome = decided({"S": state}, {}, 0.3, request)
    assert isinstance(outcome, TaskError)
    assert (outcome.code, outcome.status) == ("timeout", 504)
    assert "while expressions of the workflow were evaluated" in outcome.message


def test_neither_the_loop_nor_who_brings_a_request_evaluates(monkeypatch):
    seen = set[threading.Thread]()

    def note(_: Patience) -> None:
        seen.add(threading.current_thread())

    monkeypatch.setattr(Patience, "look", note)
    task = {"Type": "Task", "Resource": "slow", "TimeoutSecondsPath": "$.s", "ResultPath": None}
    states = {
        "slow": {**task, "Next": "Wait"},
        "Wait": {"Type": "Wait", "Seconds": 0, "Next": "Last"},
        "Last": {"Type": "Pass", "Parameters": {"x.$": "$.s"}, "End": True},
    }
    outcome = decided(states, {"slow": 0}, BOUND_S, '{"s":60}')
    assert outcome == '{"x":60}'
    assert threading.current_thread() not in seen
    assert not [thread for thread in seen if thread.name == "loop"]
    assert seen


@each_row("request_", ["[" * 300 + "]" * 300, '{"n":1e999}', f'{{"n":{"9" * 4301}}}'])
def test_a_request_that_cannot_be_read_fails_by_name(request_: str) -> None:
    outcome = decided({"S": {"Type": "Pass", "End": True}}, {}, BOUND_S, request_)
    assert isinstance(outcome, TaskError)
    assert (outcome.code, outcome.message.partition(":")[0]) == (
        "workflow-failed",
        "States.Runtime",
    )


def grown(last: dict[str, Any]) -> dict[str, Any]:
    """A machine that nests a value deeper than Python writes, and goes on with the state fast."""
    add = {"v.$": "States.Array($.v)", "n.$": "States.MathAdd($.n, 1)"}
    rule = {"Variable": "$.n", "NumericLessThan": 1500, "Next": "Add"}
    return {
        "Begin": {"Type": "Pass", "Result": {"v": 1, "n": 0}, "Next": "Add"},
        "Add": {"Type": "Pass", "Parameters": add, "Next": "Again"},
        "Again": {"Type": "Choice", "Choices": [rule], "Default": "fast"},
        "fast": last,
    }


def test_what_is_too_deep_to_be_given_to_a_task_fails_it_and_as_an_answer_fails_by_name():
    caught = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.v", "Next": "Then"}]
    last = {"Type": "Task", "Resource": "fast", "Catch": caught, "End": True}
    states = grown(last) | {"Then": {"Type": "Pass", "OutputPath": "$.v.Error", "End": True}}
    assert decided(states, {"fast": 0}, BOUND_S) == '"States.TaskFailed"'
    outcome = decided(grown({"Type": "Succeed"}), {}, BOUND_S)
    assert isinstance(outcome, TaskError)
    assert outcome.message.startswith("States.Runtime: the output: a value is nested")


def test_a_wait_beside_a_branch_that_fails_at_once_is_dropped() -> None:
    wait = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 50, "End": True}}}
    work = {
        "StartAt": "fast",
        "States": {"fast": {"Type": "Task", "Resource": "fast", "End": True}},
    }
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Sunk", "Cause": "ice"}}}
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$", "Next": "Then"}]
    both = {"Type": "Parallel", "Branches": [wait, work, fails], "Catch": catch, "End": True}
    states = {"Both": both, "Then": {"Type": "Pass", "OutputPath": "$.Cause", "End": True}}
    assert decided(states, {"fast": 0}, BOUND_S) == '"ice"'


def test_what_a_machine_holds_goes_with_it_and_not_when_cycles_are_looked_for() -> None:
    each = {"Type": "Pass", "Parameters": {"x.$": "$$.Execution.Name"}, "End": True}
    items = {"StartAt": "Each", "States": {"Each": each}}
    wrap = deciding({"All": {"Type": "Map", "ItemProcessor": items, "End": True}}, {})
    gc.disable()
    try:
        deadline = time.monotonic() + BOUND_S
        engine = Deciding(wrap, cast(Entry, wrap.entry), "demo", deadline, WORLD)
        engine.start(Inputs({None: Object("[1, 2]")}))
        assert engine.is_complete
        left = weakref.ref(engine)
        machine = weakref.ref(engine._machine)
        del engine
        assert (left(), machine()) == (None, None)
    finally:
        gc.enable()


def test_what_waits_for_room_is_written_when_it_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    written = list[int]()

    def note(self: Deciding, number: int) -> bool:
        written.append(len(self.place_of))
        return is_ready(self, number)

    is_ready = Deciding._is_ready
    monkeypatch.setattr(Deciding, "_is_ready", note)
    task = {
        "StartAt": "fast",
        "States": {"fast": {"Type": "Task", "Resource": "fast", "End": True}},
    }
    each = {"Type": "Map", "ItemProcessor": task, "End": True}
    outcome = decided({"All": each}, {"fast": 0}, BOUND_S, f"[{','.join('1' * 500)}]")
    assert outcome == "[" + ",".join(['"fast"'] * 500) + "]"
    assert len(written) == 500
    assert max(written) < MOST_AT_ONCE


def test_what_is_admitted_in_the_loop_begins_in_an_event_of_its_own() -> None:
    """The event in which an execution ends and is answered takes long enough."""
    loop, order = Loop(), SimpleQueue[str]()
    execution: Any = SimpleNamespace(
        runtime=SimpleNamespace(loop=loop, mechanism=None),
        lock=threading.RLock(),
        over=False,
        part=SimpleNamespace(place_of={}),
        begin=None,
        event_of=lambda *_: order.put("begins"),
    )

    def end_another() -> None:
        assert Admission(execution).admit()
        order.put("answered")

    loop.call_at(time.monotonic(), end_another)
    assert [order.get(timeout=BOUND_S) for _ in range(2)] == ["answered", "begins"]
    assert Admission(execution).admit()
    assert order.get(timeout=BOUND_S) == "begins"


def test_an_answer_of_the_loop_is_sent_by_the_thread_of_the_http_server() -> None:
    """To send it may take the kernel some milliseconds."""
    soon, served = list[Callable[[], None]](), list[Any]()
    channel: Any = object.__new__(Channel)
    channel.server = SimpleNamespace(do_soon=soon.append)
    channel.requests = [SimpleNamespace(later=False, answer=None)]
    channel.serve_first = lambda: served.append(channel.requests[0].answer)
    channel.answer_later()("first")
    assert (served, soon) == (["first"], [])
    channel.answer_later()("second", elsewhere=True)
    assert served == ["first"]
    soon[0]()
    assert served == ["first", "second"]
