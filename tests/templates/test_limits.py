"""When a task's time is over, whether it may begin again, and when its worker is called."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from wrap.core import commands as do
from wrap.core.limits import Limits, TaskLimits
from wrap.core.program import Call
from wrap.core.recovery import Attempts
from wrap.core.retry import Retries
from wrap.core.workers import Worker, Workers

#: Task 1 has 5 s by its state, the function of 2 has 3 s, 3 runs in another wrap.
PROGRAM: Any = SimpleNamespace(
    timeouts_s={1: 5.0}, part=SimpleNamespace(place_of={0: 0, 1: 0, 2: 1, 3: "far"})
)
DEPLOYMENT: Any = SimpleNamespace(
    timeouts_s={"f2": 3.0}, function_of=lambda number: f"f{number}", answers=0, attempts=2
)


def limits(commands: list[Any], deadline: float = 20.0) -> TaskLimits:
    return TaskLimits(PROGRAM, DEPLOYMENT, Limits(deadline, 1.0, 0), commands)


def test_a_task_has_the_least_of_all_limits():
    running = limits([])
    running.expect([0, 1, 2, 3], 10.0)
    assert running.until == {0: 20.0, 1: 15.0, 2: 13.0, 3: 21.0}
    running.expect([1, 2], 19.0)
    assert (running.until[1], running.until[2]) == (20.0, 20.0)


def test_the_time_is_looked_at_once_for_the_first_limit():
    commands = list[Any]()
    running = limits(commands)
    running.expect([0, 1, 2], 10.0)
    running.expect([1], 11.0)
    assert commands == [do.WakeAt(13.0)]
    assert running.passed(12.9) == []
    running.wake_at(13.0)
    assert running.passed(13.0) == [2]
    assert commands == [do.WakeAt(13.0), do.WakeAt(13.0)]


def test_nothing_begins_where_nothing_is_expected():
    commands = list[Any]()
    limits(commands).expect([], 10.0)
    assert commands == []


def test_a_task_begins_as_often_as_declared_and_never_under_an_answer():
    retries = Retries(DEPLOYMENT, Attempts({}))
    assert retries.are_left(1, answering=True)
    retries.count(1)
    assert not retries.are_left(1, answering=False)
    assert retries.are_left(0, answering=False)
    assert not retries.are_left(0, answering=True)


def test_attempts_of_streams_count_as_its_own():
    both = frozenset((1, 2))
    attempts = Attempts({1: both, 2: both})
    retries = Retries(DEPLOYMENT, attempts)
    attempts.begin([1])
    assert retries.are_left(1, answering=False)
    assert attempts.ended(1) == 0
    assert attempts.next(1, 1) and attempts.due() == [1]
    assert not retries.are_left(1, answering=False)


def test_calls_of_a_lost_worker_wait():
    commands = list[Any]()
    workers = Workers(commands)
    first, second, other = (Call(place, (1,), (), frozenset()) for place in (1, 1, 2))
    workers.call(first)
    workers.lose(1)
    workers.call(second)
    workers.call(other)
    assert commands == [do.CallWorker(first), do.LoseWorker(1, (), None), do.CallWorker(other)]
    assert workers.held_back == {1: [second]}


def scope(live: bool = False, in_order: frozenset[int] = frozenset()) -> Any:
    """Process 1 is called for three tasks."""
    return SimpleNamespace(live=live, in_order=in_order, tasks_at=lambda process: [0, 1, 2])


def test_a_worker_gets_what_it_has_not_got() -> None:
    worker = Worker(scope(), 1, keeps=True)
    first = Call(1, (1,), (None, 7), frozenset())
    assert worker.call(first) == ([None, 7], 2, False)
    worker.record_objects([1])
    assert worker.call(Call(1, (2,), (1, 7, 8), frozenset())) == ([8], 1, False)
    assert worker.call(Call(1, (3,), (8,), frozenset())) == ([], 0, True)
    assert worker.is_called_for_all
    again = worker.call(first._replace(repeated=True))
    assert again == ([None, 7], 0, True), "it may have dropped them"


def test_a_worker_of_instances_gets_each_its_input() -> None:
    worker = Worker(scope(), 1, keeps=False)
    call = Call(1, (1,), (7,), frozenset())
    assert [worker.call(call).needs for _ in range(2)] == [[7], [7]]


def test_tasks_that_never_overlap_need_no_further_thread() -> None:
    call = Call(1, (1,), (), frozenset())
    in_order = frozenset({1})
    assert Worker(scope(in_order=in_order), 1, keeps=True).call(call).alone
    assert not Worker(scope(in_order=in_order), 2, keeps=True).call(call).alone
    assert not Worker(scope(live=True, in_order=in_order), 1, keeps=True).call(call).alone
