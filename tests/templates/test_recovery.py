"""Engines of several wraps, told of each other's objects in any order, twice, or after a loss."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core.dag import Engine
from wrap.core.participants import Participants, Remedy, Reply
from wrap.core.program import MAIN, Source, keys
from wrap.core.recovery import tasks_to_rerun
from wrap.core.triggers import buckets
from wrap.core.wrap_spec import Entry, Wrap

NAMES = ("home", "far", "near")
#: More than a test loses of any wrap.
ATTEMPTS = 9


@st.composite
def wraps(draw: st.DrawFn) -> dict[str, Wrap]:
    """A DAG of up to nine tasks over three wraps, as each of them declares it."""
    needs, generation = dict[int, list[int]](), dict[int, int]()
    for task in range(draw(st.integers(1, 9))):
        chosen = draw(st.sets(st.sampled_from(list(needs)), max_size=3)) if needs else set[int]()
        needs[task] = sorted(chosen)
        generation[task] = 1 + max((generation[each] for each in chosen), default=-1)
    stages = [[t for t in needs if generation[t] == g] for g in range(max(generation.values()) + 1)]
    made = buckets(needs, stages, draw(st.sampled_from(["stage", "data"])))
    place = {task: draw(st.sampled_from(NAMES)) for task in needs}
    process = {task: draw(st.integers(0, 2)) for task in needs}
    output = sorted(draw(st.sets(st.sampled_from(list(needs)), min_size=1, max_size=3)))
    sources: dict[int, Source] = {t: each if each else None for t, each in needs.items()}
    found = {}
    for name in NAMES:
        own = [task for task in needs if place[task] == name]
        common: dict[str, Any] = {"mechanism": "pool", "timeout_s": 1.0, "workflow": "test"}
        found[name] = Wrap(
            name=name,
            functions={"f": "flask"},
            tasks=dict.fromkeys(own, "f"),
            processes=[[task for task in own if process[task] == p] for p in range(3)],
            inputs=sources,
            buckets=[(list(awaits), list(starts)) for awaits, starts in made],
            remotes={
                other: {task: "f" for task in needs if place[task] == other}
                for other in NAMES
                if other != name
            },
            entry=Entry(output) if name == "home" else None,
            attempts=ATTEMPTS,
            **common,
        )
    return found


class Part:
    """What one wrap knows of the execution."""

    def __init__(self, wrap: Wrap, tasks: Iterable[int], wanted: set[int]) -> None:
        self.wrap, self.wanted = wrap, wanted
        self.tasks = set(tasks)
        gives = frozenset(wanted.intersection(tasks))
        self.engine = Engine(wrap.share_of(frozenset(tasks), gives))
        self.here = set[int]()
        self.objects = set[int]()
        self.running = list(self.engine.start().begins)

    def told(self, task: int, content: bool) -> None:
        needed = self.wrap.takers[task].get(self.wrap.name, False)
        needed = needed or (self.wrap.name == "home" and task in self.wanted)
        if task not in self.here and (content or not needed):
            self.here.add(task)
            if content:
                self.objects.add(task)
            self.begin(self.engine.arrived([task]).begins)

    def end(self, task: int) -> None:
        self.running.remove(task)
        self.here.add(task)
        self.objects.add(task)
        self.begin(self.engine.ended(task).begins)

    def begin(self, tasks: list[int]) -> None:
        for task in tasks:
            needed = {key for key in keys(self.wrap.inputs[task]) if key is not None}
            assert needed <= self.objects, "a task begins without what it needs"
            assert self.wrap.wrap_of[task] == self.wrap.name
        self.running += tasks


class Cluster:
    """All wraps, and what is on its way between them."""

    def __init__(self, declared: dict[str, Wrap], order: random.Random) -> None:
        self.declared, self.order = declared, order
        entry = declared["home"].entry
        assert entry is not None
        self.wanted = {key for key in keys(entry.output) if key is not None}
        self.parts = {n: Part(w, w.tasks, self.wanted) for n, w in declared.items()}
        self.on_the_way = list[tuple[str, int, bool]]()
        self.ran = list[int]()
        self.participants = Participants(declared["home"], frozenset(self.wanted))
        for name, tasks in declared["home"].remotes.items():
            self.participants.ask(name, tasks)

    @property
    def over(self) -> bool:
        return not any(part.engine.left for part in self.parts.values()) and (
            self.wanted <= self.parts["home"].here
        )

    def step(self) -> None:
        running = [(n, task) for n, part in self.parts.items() for task in part.running]
        choice = self.order.randrange(len(running) + len(self.on_the_way))
        if choice >= len(running):
            to, task, content = self.on_the_way[choice - len(running)]
            if self.order.random() < 0.7:  # else it will come once more
                del self.on_the_way[choice - len(running)]
            self.parts[to].told(task, content)
            return
        name, task = running[choice]
        self.ran.append(task)
        self.parts[name].end(task)
        self.send(name, [task])

    def send(self, name: str, tasks: Iterable[int], only_to: str | None = None) -> None:
        for task in tasks:
            takers = dict(self.declared[name].takers[task])
            if task in self.wanted and name != "home":
                takers["home"] = True
            for to, content in takers.items():
                if to in self.parts and only_to in (None, to):
                    self.on_the_way.append((to, task, content))

    def lose(self, name: str, missing: str = "") -> dict[str, Collection[int]]:
        """A wrap ends with all that it has; those that have ended keep nothing either.

        One that is `missing`, as it is lost too, begins again by itself.
        """
        gone, asked = {name, missing}, self.participants.asked
        taking_part = {n: p for n, p in self.parts.items() if n not in gone and p.engine.left}
        for each in [*asked]:
            if each in gone:
                remedy = self.participants.replied(each, asked[each].number, Reply.BROKEN)
                assert remedy is Remedy.RECONNECT
            elif each not in taking_part:
                self.participants.ended(each, asked[each].number)
        taking_part["home"] = self.parts["home"]
        self.on_the_way = [each for each in self.on_the_way if each[0] != name]
        told = self.participants.replaced(name, is_lost=True)
        assert set(told) == taking_part.keys() - {"home"}
        has = {each: self.parts[each].here for each in told}
        begin = self.participants.rerun_after_loss(name, has, self.parts["home"].here).begin
        again = self.participants.begin_again(name, begin)
        for other, tasks in again.items():
            self.participants.ask(other, tasks)
            taking_part.pop(other, None)
            self.on_the_way = [each for each in self.on_the_way if each[0] != other]
            self.parts[other] = Part(self.declared[other], tasks, self.wanted)
        if name not in again:
            self.parts[name] = Part(self.declared[name], (), self.wanted)
        for other in again:
            for each, part in taking_part.items():
                own = self.declared[each].tasks
                self.send(each, [task for task in part.here if task in own], other)
        return again

    def end(self) -> None:
        """Run all that is left; the coordinator waits for nothing then."""
        while not self.over:
            self.step()
        for name, question in [*self.participants.asked.items()]:
            self.participants.ended(name, question.number)
        assert not self.participants.is_waiting(self.parts["home"].here)
        assert self.participants.loss_error() is None


@given(wraps(), st.randoms(use_true_random=False))
def test_in_any_order_every_task_runs_once_and_with_all_that_it_needs(
    declared: dict[str, Wrap], order: random.Random
) -> None:
    cluster = Cluster(declared, order)
    while not cluster.over:
        cluster.step()
    assert sorted(cluster.ran) == sorted(declared["home"].inputs)


@given(wraps(), st.randoms(use_true_random=False), st.sampled_from(["far", "near"]))
def test_after_a_loss_the_execution_ends_as_it_would_have(
    declared: dict[str, Wrap], order: random.Random, lost: str
) -> None:
    cluster = Cluster(declared, order)
    for _ in range(order.randrange(30)):
        if not cluster.over:
            cluster.step()
    again = cluster.lose(lost)
    ran = set(cluster.ran)
    cluster.end()
    assert set(cluster.ran) == set(declared["home"].inputs)
    twice = {task for task in cluster.ran if cluster.ran.count(task) > 1}
    assert twice <= ran.intersection(*[set().union(*again.values())])
    assert "home" not in again


@given(wraps(), st.randoms(use_true_random=False), st.sampled_from(["far", "near"]))
def test_losses_that_meet_are_got_over(
    declared: dict[str, Wrap], order: random.Random, first: str
) -> None:
    """Two are lost at once, and one of them once more."""
    second = "near" if first == "far" else "far"
    cluster = Cluster(declared, order)
    for lost, missing in ((first, second), (second, ""), (first, "")):
        for _ in range(0 if lost == second else order.randrange(20)):
            if not cluster.over:
                cluster.step()
        cluster.lose(lost, missing)
    cluster.end()
    assert set(cluster.ran) == set(declared["home"].inputs)


def test_what_has_reached_all_its_consumers_is_not_run_again() -> None:
    chain: dict[int, list[int]] = {0: [], 1: [0], 2: [1]}
    wrap_of = {0: "far", 1: "far", 2: "home"}
    takers: dict[int, list[str]] = {0: [], 1: ["home"], 2: []}
    lost = ("far", wrap_of, chain.__getitem__, takers)
    runs = {"home": {2}}
    assert tasks_to_rerun(*lost, {"home": {1}}, runs, {2}, "home").begin == {}
    assert tasks_to_rerun(*lost, {"home": set()}, runs, {2}, "home").begin == {"far": {0, 1}}


def test_producers_that_have_ended_and_kept_nothing_run_again() -> None:
    chain: dict[int, list[int]] = {0: [], 1: [0], 2: [1]}
    wrap_of = {0: "near", 1: "far", 2: "home"}
    takers = {0: ["far"], 1: ["home"], 2: []}
    lost = ("far", wrap_of, chain.__getitem__, takers)
    runs = {"home": {2}}
    ended = tasks_to_rerun(*lost, {"home": set()}, runs, {2}, "home").begin
    assert ended == {"far": {1}, "near": {0}}
    kept = {"home": set[int](), "near": {0}}
    assert tasks_to_rerun(*lost, kept, runs | {"near": {0}}, {2}, "home").begin == {"far": {1}}


def test_one_that_runs_less_than_is_needed_begins_again_with_all_of_it() -> None:
    chain: dict[int, list[int]] = {0: [], 1: [], 2: [0], 3: [1, 2]}
    wrap_of = {0: "near", 1: "near", 2: "far", 3: "home"}
    takers = {0: ["far"], 1: ["home"], 2: ["home"], 3: []}
    lost = ("far", wrap_of, chain.__getitem__, takers)
    has, runs = {"home": set[int](), "near": set[int]()}, {"home": {3}, "near": {1}}
    assert tasks_to_rerun(*lost, has, runs, {3}, "home").begin == {"far": {2}, "near": {0, 1}}


@pytest.mark.parametrize("held", [{0}, set[int]()])
def test_a_process_gets_again_what_it_lost_and_only_that(held: set[int]) -> None:
    """0, 1 and 2 follow each other in process 1; 1 has not answered, and 0 may be here."""
    wrap = Wrap(
        "test", "w", "pool", {"f": "flask"}, {0: "f", 1: "f", 2: "f"}, [[], [0, 1, 2]],
        {0: None, 1: 0, 2: [0, 1]}, [([], [0]), ([0], [1]), ([0, 1], [2])], 1.0,
    )  # fmt: skip
    engine = Engine(wrap.share_of(frozenset(wrap.tasks), frozenset({2})))
    engine.start()
    engine.ended(0)
    call = engine.again(1, {1, 2}, held | {None})
    assert call.tasks == ((1, 2) if held else (0, 1, 2))
    assert set(call.needs) == ({0} if held else {None})
    assert call.gives == {2}
    assert call.place == 1 != MAIN
