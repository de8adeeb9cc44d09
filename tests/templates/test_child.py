"""A further process has one execution after another, and mixes up nothing of theirs."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from wrap.core.program import Key, given_to
from wrap.core.wrap_spec import Wrap
from wrap.net import framing
from wrap.net.messages import Ident, Request, Result
from wrap.values.value import Object
from wrap.workers import worker_main

from tests.rows import each_row

BOUND_S = 180.0
FIRST, SECOND = Ident(number=1), Ident(number=2)
send = framing.write
#: Whose tasks are instances of two.
WRAP = Wrap(
    name="first",
    workflow="demo",
    functions={"f": "flask"},
    tasks={0: "f", 1: "f"},
    processes=[[], [0, 1]],
    inputs={},
    buckets=[],
    mechanism="pool",
    timeout_s=BOUND_S,
    instances=2,
)


Given = Callable[[], Object]


def answered(ident: Ident, task: int, output: Object) -> Result:
    return Result(ident.number, task, "f", "w", 1, 0.0, 0.0, output)


class Child:
    """A further process, as a thread, whose tasks answer with their input.

    Whatever has sent a result of the first execution stops there until the second one has begun.
    Task 0 of the second one takes its input when it `may`.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ours, theirs = socket.socketpair()
        self._incoming = framing.read(self._ours)
        self._begun = threading.Event()
        self.may = threading.Event()
        monkeypatch.setattr(framing, "write", self._write)
        arguments = theirs, WRAP, self._run_task
        self._thread = threading.Thread(target=worker_main.serve, args=arguments)
        self._thread.start()

    def _write(self, channel: socket.socket, result: Any) -> None:
        send(channel, result)
        assert self._begun.wait(BOUND_S)

    def _run_task(self, task: int, given: Given, ident: Ident, _: int, *more: Any) -> Result:
        *_, begins = more
        if begins is not None:
            begins()
        if ident == SECOND:
            self._begun.set()
            assert task > 0 or self.may.wait(BOUND_S)
        try:
            output = given()
        except KeyError as error:
            output = Object(f"lost {error}")
        return answered(ident, task, output)

    def call(self, ident: Ident, tasks: list[int], given: Mapping[Key, str], rest: int) -> None:
        objects = {key: Object(text) for key, text in given.items()}
        send(self._ours, Request(ident, tasks, objects, frozenset(tasks), rest).frames_within())

    def answer(self) -> tuple[int, str]:
        """The task of the next result, and its output."""
        (result,) = Result.read([next(self._incoming), next(self._incoming)])
        assert result.output is not None
        return result.task, result.output.text()

    def close(self) -> None:
        self._begun.set()
        self.may.set()
        self._ours.close()
        self._thread.join(BOUND_S)


@pytest.fixture
def its(monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    child = Child(monkeypatch)
    yield child
    child.close()


def test_the_next_execution_keeps_what_was_given_to_an_instance_of_the_same_number(its):
    its.call(FIRST, [0], {given_to(0): "first"}, rest=9)
    assert its.answer() == (0, "first")
    its.call(SECOND, [0, 1], {given_to(0): "second", given_to(1): "other"}, rest=9)
    assert its.answer() == (1, "other")  # so what sent the first result has gone on
    its.may.set()
    assert its.answer() == (0, "second")


@each_row("at_once", [1, 3, 40])
def test_instances_that_wait_for_each_other_all_run(at_once: int) -> None:
    """However many requests they come in, and after others that took no time."""
    ours, theirs = socket.socketpair()
    all_there = threading.Barrier(40)

    def run_task(task: int, given: Given, ident: Ident, process: int, *more: Any) -> Result:
        *_, begins = more
        if begins is not None:
            begins()
        if task >= 100:
            all_there.wait(BOUND_S)
        return answered(ident, task, given())

    def call(tasks: list[int]) -> None:
        objects: dict[Key, Object] = {given_to(task): Object(f"{task}") for task in tasks}
        send(ours, Request(FIRST, tasks, objects, frozenset(tasks), rest=999).frames_within())

    thread = threading.Thread(target=worker_main.serve, args=(theirs, WRAP, run_task))
    thread.start()
    tasks = [*range(60), *range(100, 140)]
    with ours:
        for first in range(0, len(tasks), at_once):
            call(tasks[first : first + at_once])
        incoming = framing.read(ours)
        answers = Result.read([next(incoming) for _ in range(2 * len(tasks))])
        assert sorted(answer.task for answer in answers) == tasks
    thread.join(BOUND_S)


def test_a_task_that_fails_lets_no_other_overtake_the_one_that_is_prepared() -> None:
    tasks = [0, 2, 4, 6]
    ours, theirs = socket.socketpair()
    prepares, may_begin = threading.Event(), threading.Event()
    begun = list[int]()

    def run_task(task: int, given: Given, ident: Ident, process: int, *more: Any) -> Result:
        *_, begins = more
        if task == 2:
            prepares.set()
            assert may_begin.wait(BOUND_S)
        begun.append(task)
        if begins is not None:
            begins()
        if task == 0:
            assert prepares.wait(BOUND_S)
            begins()  # as where a handler fails
        return answered(ident, task, given())

    thread = threading.Thread(target=worker_main.serve, args=(theirs, WRAP, run_task))
    thread.start()
    objects: dict[Key, Object] = {given_to(task): Object(f"{task}") for task in tasks}
    with ours:
        send(ours, Request(FIRST, tasks, objects, frozenset(tasks), 99).frames_within())
        incoming = framing.read(ours)
        first = Result.read([next(incoming), next(incoming)])
        may_begin.set()
        Result.read([next(incoming) for _ in range(6)])
    thread.join(BOUND_S)
    assert ([each.task for each in first], begun) == ([0], tasks)
