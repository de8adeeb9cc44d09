"""Where instances of tasks begin, and how long expressions may be evaluated; no process."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from wrap.core.errors import TaskError
from wrap.core.placement import Deciding, Instances, Patience, World
from wrap.core.program import MAIN, Step
from wrap.core.statemachine.errors import StatesError
from wrap.core.triggers import MOST_AT_ONCE


@dataclass
class Value:
    """An object."""

    content: str
    content_type: str = ""
    head: Any = None

    def text(self, _errors: str) -> str:
        return self.content


class Objects(dict[Any, Value]):
    """The objects of an execution."""

    add = dict.update

    def drop(self, key: Any) -> None:
        self.pop(key, None)


@dataclass
class Wrap:
    """Runs task 0 in two processes, and task 1 in another wrap."""

    workflow: str = "demo"
    places_of: dict[int, list[int | str]] = field(default_factory=lambda: {0: [0, 1], 1: ["far"]})
    processes: tuple[int, ...] = (0, 1)
    remotes: tuple[str, ...] = ("far",)
    instances: int = 2

    def task_of(self, number: int) -> int:
        return number % self.instances


@dataclass
class Entry:
    machine: dict[str, Any]
    states: dict[str, int]
    in_stages: bool = False


def world(now: float = 0.0) -> Any:
    chance, clock = random.Random(1), lambda: now
    return World(clock, clock, chance, lambda _: None, lambda text, _: Value(text))  # type: ignore


def task(name: str, **more: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": name} | ({"End": True} if "Next" not in more else {}) | more


def begin(
    states: dict[str, Any], tasks: dict[str, int], request: str = "{}", in_stages: bool = False
) -> tuple[Deciding, Step, Objects]:
    machine = {"StartAt": next(iter(states)), "States": states}
    wrap: Any = Wrap()
    program = Deciding(wrap, Entry(machine, tasks, in_stages), "it", 100.0, world())
    objects = Objects({None: Value(request)})
    return program, program.start(objects), objects


def over_a_map(count: int) -> tuple[Deciding, Step, Objects]:
    each = {"StartAt": "f", "States": {"f": task("f")}}
    items = "[" + ",".join(map(str, range(count))) + "]"
    states = {"Map": {"Type": "Map", "ItemProcessor": each, "End": True}}
    return begin(states, {"f": 0}, items)


def test_instances_go_to_the_process_with_the_fewest_up_to_a_bound() -> None:
    program, step, _ = over_a_map(3 * MOST_AT_ONCE)
    places = list(program.place_of.values())
    assert places.count(0) == places.count(1) == MOST_AT_ONCE
    assert len(step.begins) == 2 * MOST_AT_ONCE
    (call,) = step.calls
    assert (call.place, len(call.tasks)) == (1, MOST_AT_ONCE)
    ended = next(number for number, place in program.place_of.items() if place == 1)
    following = program.ended(ended, Value("1"))
    (number,) = following.begins
    assert program.place_of[number] == 1, "an instance that waited has the place that is free now"
    here = [each for each, place in program.place_of.items() if place == MAIN]
    assert program.tasks_at(MAIN) == here


def test_inputs_are_there_as_long_as_their_instances_run() -> None:
    program, step, objects = over_a_map(3)
    assert sorted(objects[~number].content for number in step.begins) == ["0", "1", "2"]
    for number in step.begins:
        program.ended(number, Value("9"))
        assert (~number not in objects) or program.is_complete
    assert program.is_complete
    assert objects[None].content == "[9,9,9]"


def test_in_stages_nothing_begins_before_all_that_runs_has_ended() -> None:
    both = [
        {"StartAt": "a", "States": {"a": task("a", Next="b"), "b": task("b")}},
        {"StartAt": "c", "States": {"c": task("c")}},
    ]
    states = {"Both": {"Type": "Parallel", "Branches": both, "End": True}}
    tasks = {"a": 0, "b": 0, "c": 0}
    program, step, _ = begin(states, tasks, in_stages=True)
    first, second = step.begins
    assert program.ended(first, Value("1")).begins == []
    (last,) = program.ended(second, Value("2")).begins
    program.ended(last, Value("3"))
    assert program.is_complete
    program, step, _ = begin(states, tasks)
    assert len(program.ended(step.begins[0], Value("1")).begins) == 1


def test_other_wraps_are_called_first() -> None:
    branches = [{"StartAt": each, "States": {each: task(each)}} for each in "fg"]
    states = {"Both": {"Type": "Parallel", "Branches": branches, "End": True}}
    program, step, _ = begin(states, {"f": 0, "g": 1})
    assert [call.place for call in step.calls] == ["far"]
    assert set(program.place_of.values()) == {0, "far"}


def test_an_error_that_no_state_catches_is_the_tasks_own() -> None:
    program, step, _ = begin({"f": task("f")}, {"f": 0})
    error = TaskError("timeout", "it was late", status=504)
    with pytest.raises(TaskError) as raised:
        program.failed(step.begins[0], error)
    assert raised.value is error


def test_what_another_wrap_asks_for_begins_at_once_and_is_over_when_all_has_ended() -> None:
    wrap: Any = Wrap()
    program = Instances(wrap, [0, 2, 4])
    step = program.start(Objects())
    assert sorted(step.begins) == [0, 2, 4]
    program.ended(0, None)
    program.failed(2, TaskError("failed", "it failed"))
    assert not program.is_complete
    program.ended(4, None)
    assert program.is_complete


def test_an_event_may_evaluate_for_half_of_the_time_that_is_left() -> None:
    now = [0.0]
    patience = Patience(16.0, lambda: now[0])
    patience.renew()
    patience.look()
    now[0] = 8.0
    with pytest.raises(StatesError, match=r"half of the request's time") as raised:
        patience.look()
    assert raised.value.name == "States.Timeout"
    assert patience.left_s() == 8.0
    patience.look()  # the state that catches it has the other half
    now[0] = 12.0
    with pytest.raises(StatesError):
        patience.look()
    now[0] = 16.0
    with pytest.raises(TaskError) as late:
        patience.look()
    assert (late.value.code, late.value.status) == ("timeout", 504)
