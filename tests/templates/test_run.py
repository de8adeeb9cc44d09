"""The laws of an execution's rules, over random workflows and any order, doubling and loss."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core import commands as do
from wrap.core import events as on
from wrap.core.dag import Engine, Graph
from wrap.core.errors import TaskError
from wrap.core.limits import Limits
from wrap.core.program import MAIN, Call, Key, Place, Step
from wrap.core.run import WORKER_DIED, Run
from wrap.core.triggers import buckets

DEADLINE, GRACE_S, LARGE = 100.0, 0.5, 1000
SEEDS = st.integers(0, 2**32)


class Output(NamedTuple):
    size: int


class Answer(NamedTuple):
    task: int
    output: Output | None = None
    error: dict[str, Any] | None = None


@dataclass
class Deployment:
    """A wrap all of whose tasks are called by their numbers."""

    attempts: int = 1
    name: str = "wrap"
    answers: int | None = None
    timeouts_s: Mapping[str, float] = field(default_factory=dict)
    emits: Mapping[int, Any] = field(default_factory=dict)

    def names(self, tasks: Iterable[int]) -> str:
        return ", ".join(sorted(map(str, tasks)))

    def function_of(self, number: int) -> str:
        return str(number)

    def runs(self, number: int) -> bool:
        return True


class Shape(NamedTuple):
    """A workflow: for each task, what it needs and where it runs."""

    needs: dict[int, list[int]]
    place_of: dict[int, Place]

    @property
    def graph(self) -> Graph:
        stages, depth = dict[int, list[int]](), dict[int, int]()
        for task, its in self.needs.items():
            depth[task] = max((depth[each] + 1 for each in its), default=0)
            stages.setdefault(depth[task], []).append(task)
        made = buckets(self.needs, list(stages.values()), "data")
        return Graph(made, {task: its or None for task, its in self.needs.items()})

    @property
    def ends(self) -> set[int]:
        return set(self.needs) - {each for its in self.needs.values() for each in its}


def shape(chance: random.Random, places: Iterable[Place]) -> Shape:
    needs = {
        task: sorted(chance.sample(range(task), chance.randint(0, min(task, 3))))
        for task in range(chance.randint(1, 9))
    }
    where = list(places)
    return Shape(needs, {task: chance.choice(where) for task in needs})


class Worker:
    """A process: runs what it was called for as soon as it has its inputs."""

    def __init__(self) -> None:
        self.owed: list[int] = []
        self.has: set[Key] = set()


class World:
    """Performs the commands of a run in any order that may happen, and checks the laws."""

    def __init__(self, shape: Shape, chance: random.Random, attempts: int, losses: int) -> None:
        self.shape, self.chance, self.losses, self.most_losses = shape, chance, losses, losses
        part = shape.graph.part(shape.place_of, shape.ends)
        limits = Limits(DEADLINE, GRACE_S, LARGE)
        # Only if others take part may backpressure hold tasks back.
        needs = frozenset[int]().__contains__ if chance.random() < 0.5 else None
        self.run = Run(Engine(part), Deployment(attempts), limits, needs)
        self.twin = Run(Engine(part), Deployment(attempts), limits, needs)
        self.now = 0.0
        self.held: set[Key] = {None}
        self.here: list[int] = []
        self.workers: dict[int, Worker] = {}
        self.dying: dict[int, tuple[Worker, do.LoseWorker]] = {}
        self.held_back: list[Step] = []
        self.seen: list[on.Ended] = []
        self.starts: dict[int, int] = {}
        self.answered: list[int] = []
        self.dropped: set[Key] = set()
        self.error: TaskError | None = None

    def tell(self, event: on.Event) -> None:
        commands = self.run.handle(event)
        # Fed with the same events, two runs give the same commands.
        assert said(self.twin.handle(event)) == said(commands)
        for command in commands:
            assert self.error is None, "a command after the end"
            self.perform(command)

    def perform(self, command: do.Command) -> None:
        match command:
            case do.Begin(step):
                if self.chance.random() < 0.2:
                    self.tell(on.HeldBack(step.begins))
                    self.held_back.append(step)
                else:
                    self.tell(on.Ready(self.now, step))
            case do.CallWorker(call):
                self.call(call)
            case do.StartTasks(tasks):
                self.here += tasks
                for task in tasks:
                    self.start(task)
                    assert self.held.issuperset(self.shape.needs[task])
            case do.Keep(task, _):
                self.held.add(task)
            case do.Drop(key):
                self.held.remove(key)
                self.dropped.add(key)
            case do.Accept(answer, _):
                assert answer.task not in self.answered or self.losses < self.most_losses
                self.answered.append(answer.task)
            case do.LoseWorker(process, _, _):
                self.dying[process] = self.workers.pop(process), command
            case do.FailByWorker():
                self.error = TaskError(WORKER_DIED, "")
            case do.Finish(error):
                self.error = error

    def call(self, call: Call) -> None:
        assert isinstance(call.place, int)
        assert call.place not in self.dying, "a call to a worker that has not ended"
        worker = self.workers.setdefault(call.place, Worker())
        for key in call.needs:
            assert key in self.held or key in worker.has, f"{key} is gone that a call needs"
        worker.has.update(call.needs)
        for task in call.tasks:
            assert task not in worker.owed, "two attempts of a task at once"
            worker.owed.append(task)

    def start(self, task: int) -> None:
        self.starts[task] = self.starts.get(task, 0) + 1

    def ended(self, task: int) -> None:
        event = on.Ended(self.now, [Answer(task, Output(self.chance.choice([1, 2 * LARGE])))])
        self.seen.append(event)
        self.tell(event)

    def step(self) -> bool:
        """Let something happen that may; whether there was anything."""
        may = [(self.end_here, task) for task in self.here]
        for process, worker in self.workers.items():
            ready = [task for task in worker.owed if worker.has.issuperset(self.needed(task))]
            may += [(self.end_in(process), task) for task in ready]
            if worker.owed and self.losses:
                may.append((self.lose, process))
        may += [(self.bury, process) for process in self.dying]
        may += [(self.let_go, index) for index in range(len(self.held_back))]
        if not may:
            return False
        what, of = self.chance.choice(may)
        self.now += 0.001
        what(of)
        if self.error is None and self.seen and self.chance.random() < 0.3:
            self.repeat(self.chance.choice(self.seen))
        return True

    def needed(self, task: int) -> Iterable[Key]:
        return self.shape.needs[task] or [None]

    def end_here(self, task: int) -> None:
        self.here.remove(task)
        self.ended(task)

    def end_in(self, process: int) -> Any:
        def end(task: int) -> None:
            worker = self.workers[process]
            worker.owed.remove(task)
            worker.has.add(task)
            self.start(task)
            self.ended(task)

        return end

    def lose(self, process: int) -> None:
        self.losses -= 1
        self.tell(on.WorkerLost(process, list(self.workers[process].owed)))

    def bury(self, process: int) -> None:
        worker, lost = self.dying.pop(process)
        failure = TaskError(WORKER_DIED, "was killed")
        self.tell(on.WorkerEnded(self.now, process, worker.owed, lost.late, lost.error, failure))

    def let_go(self, index: int) -> None:
        self.tell(on.Ready(self.now, self.held_back.pop(index), renewed=True))

    def repeat(self, event: on.Ended) -> None:
        """What comes twice changes nothing, unless the task runs once more."""
        if event.answers[0].task not in self.run.limits:
            assert self.run.handle(event) == []
            assert self.twin.handle(event) == []


def said(commands: Iterable[do.Command]) -> list[Any]:
    """Commands without the identities of errors."""
    return [
        [type(each), *(str(value) if isinstance(value, TaskError) else value for value in each)]
        for each in commands
    ]


def completed(seed: int, places: int, attempts: int, losses: int) -> World:
    chance = random.Random(seed)
    world = World(shape(chance, range(places)), chance, attempts, losses)
    world.tell(on.Began(0.0, None, {None: chance.choice([1, 2 * LARGE])}))
    while world.error is None and world.step():
        pass
    return world


@given(SEEDS, st.integers(1, 4))
def test_without_losses_every_task_runs_once_and_what_is_large_is_dropped_when_nothing_needs_it(
    seed: int, places: int
) -> None:
    world = completed(seed, places, 1, 0)
    assert world.error is None
    assert world.run.is_over(others_run=False)
    assert not world.run.is_over(others_run=True)
    assert sorted(world.answered) == sorted(world.shape.needs)
    assert set(world.starts.values()) == {1}
    assert not world.run.limits
    assert world.dropped.isdisjoint(world.shape.ends)
    used = {each for its in world.shape.needs.values() for each in its}
    large = {e.answers[0].task for e in world.seen if e.answers[0].output.size >= LARGE}
    assert not world.held & used & large


@given(SEEDS, st.integers(2, 4), st.integers(1, 3), st.integers(1, 9))
def test_fewer_losses_than_attempts_are_survived_and_after_others_one_error_is_named(
    seed: int, places: int, attempts: int, losses: int
) -> None:
    world = completed(seed, places, attempts, losses)
    if world.error is None:
        assert world.run.is_over(others_run=False)
        assert set(world.answered) == set(world.shape.needs)
        assert not world.run.limits
        assert not world.run.held_back
    else:
        assert world.error.code == WORKER_DIED
        assert losses - world.losses >= attempts


@given(SEEDS, st.integers(1, 3), st.floats(0, 2 * DEADLINE))
def test_at_the_deadline_the_latest_it_has_an_outcome(seed: int, places: int, when: float) -> None:
    chance = random.Random(seed)
    world = World(shape(chance, range(places)), chance, 1, 0)
    world.tell(on.Began(0.0, None, {None: 1}))
    for _ in range(chance.randint(0, 5)):
        world.step()
    if world.run.program.is_complete:
        return
    commands = world.run.handle(on.TimePassed(max(when, world.now)))
    ends = [each for each in commands if isinstance(each, do.Finish)]
    assert len(ends) == (when >= DEADLINE)
    if not ends:
        (wakes,) = (each for each in commands if isinstance(each, do.WakeAt))
        assert wakes.when <= DEADLINE
    else:
        assert (ends[0].error.code, ends[0].error.status) == ("timeout", 504)


class Half:
    """One of two wraps that share an execution."""

    def __init__(self, name: str, shape: Shape, chance: random.Random) -> None:
        graph = shape.graph
        mine = {task: MAIN for task, place in shape.place_of.items() if place == name}
        self.takes = {
            each for task in mine for each in shape.needs[task] if shape.place_of[each] != name
        }
        program = Engine(graph.share(mine, ()))
        self.run = Run(
            program, Deployment(), Limits(DEADLINE, GRACE_S, LARGE), self.takes.__contains__
        )
        self.running: list[int] = []
        self.started: list[int] = []
        self.sent: list[int] = []
        self.shape, self.chance = shape, chance

    def tell(self, event: on.Event) -> None:
        for command in self.run.handle(event):
            match command:
                case do.Begin(step):
                    self.tell(on.Ready(0.0, step))
                case do.StartTasks(tasks):
                    for task in tasks:
                        assert self.run.here.issuperset(self.shape.needs[task])
                    self.running += tasks
                    self.started += tasks
                case do.Give(answers, _):
                    self.sent += [each.task for each in answers]
                case do.Finish(error):
                    raise error


@given(SEEDS)
def test_two_runs_that_share_an_execution_both_end_it(seed: int) -> None:
    """Messages come late, in any order and twice; and before the other half has begun."""
    chance = random.Random(seed)
    whole = shape(chance, ["left", "right"])
    halves = {name: Half(name, whole, chance) for name in ("left", "right")}
    messages: list[tuple[str, int]] = []
    unbegun = list(halves)
    while True:
        may: list[tuple[str, Any]] = [("begin", name) for name in unbegun]
        may += [("end", (name, t)) for name, half in halves.items() for t in half.running]
        may += [("deliver", each) for each in dict.fromkeys(messages)]
        if not may:
            break
        kind, of = chance.choice(may)
        if kind == "begin":
            unbegun.remove(of)
            halves[of].tell(on.Began(0.0, None, {None: 1}))
        elif kind == "end":
            name, task = of
            halves[name].running.remove(task)
            halves[name].tell(on.Ended(0.0, [Answer(task, Output(1))]))
            other = "left" if name == "right" else "right"
            messages += [(other, each) for each in halves[name].sent] * chance.randint(1, 2)
            halves[name].sent.clear()
        else:
            messages.remove(of)
            name, task = of
            output = Output(1) if task in halves[name].takes else None
            halves[name].tell(on.Arrived(0.0, {task: output}))
    for name, half in halves.items():
        mine = [task for task, place in whole.place_of.items() if place == name]
        assert half.run.program.is_complete
        assert sorted(half.started) == mine


def test_what_was_given_up_counts_no_more() -> None:
    part = Graph([([], [0])], {0: None}).part({0: MAIN}, {0})
    run = Run(Engine(part), Deployment(timeouts_s={"0": 1.0}), Limits(DEADLINE, GRACE_S, LARGE))
    run.handle(on.Began(0.0, None, {None: 1}))
    late = run.handle(on.TimePassed(1.0))
    assert do.Abandon(0) in late
    assert isinstance(late[-1], do.Finish)
    assert run.handle(on.Ended(1.1, [Answer(0, Output(1))])) == []


@pytest.mark.parametrize("answering", [False, True])
def test_what_the_client_has_a_part_of_is_not_run_again(answering: bool) -> None:
    part = Graph([([], [0])], {0: None}).part({0: 1}, {0})
    run = Run(Engine(part), Deployment(attempts=2, answers=0), Limits(DEADLINE, GRACE_S, LARGE))
    run.handle(on.Began(0.0, None, {None: 1}))
    (command,) = (
        each
        for each in run.handle(on.WorkerLost(1, [0], answering))
        if isinstance(each, do.LoseWorker | do.FailByWorker)
    )
    assert isinstance(command, do.FailByWorker if answering else do.LoseWorker)


LATE = TaskError("timeout", "b did not answer in time", status=504)
WAITED = "the request's time was over while it waited, by a Wait or a Retry"


@pytest.mark.parametrize(
    ("shared", "begun", "delays", "late", "message"),
    [
        (False, False, set(), None, "all workers are busy"),
        (True, False, set(), LATE, "all workers are busy"),
        (True, True, set(), LATE, LATE.message),
        (True, True, set(), None, "what other wraps give did not come in time"),
        (False, False, {1}, None, WAITED),
    ],
)
def test_the_cause_is_named_if_the_time_is_over_while_no_task_runs(
    shared: bool, begun: bool, delays: set[int], late: TaskError | None, message: str
) -> None:
    program = Engine(Graph([([], [0]), ([0], [1])], {0: None, 1: 0}).share({1: MAIN}, ()))
    needs = (lambda _: True) if shared else None
    run = Run(program, Deployment(), Limits(DEADLINE, GRACE_S, LARGE), needs)
    if begun:
        assert run.handle(on.Began(0.0, None, {})) == []
    run.delays |= delays
    (finish,) = run.handle(on.TimePassed(DEADLINE, late=late, full="all workers are busy"))
    assert (finish.error.code, finish.error.message) == ("timeout", message)
