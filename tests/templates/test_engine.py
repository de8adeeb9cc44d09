"""The engine begins every task once, when it may, and each place sees the same as who calls it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core.dag import Engine, Graph
from wrap.core.program import MAIN, Call, Key, Place, Source, Step, keys
from wrap.core.triggers import buckets


@dataclass(frozen=True)
class Case:
    """A workflow, and where its tasks run."""

    graph: Graph
    #: For every task those that it awaits.
    awaited: Mapping[int, Iterable[int]]
    sources: Mapping[int, Source]
    buckets: Sequence[tuple[Iterable[int], Iterable[int]]]
    place_of: Mapping[int, Place]
    #: For the tasks of other wraps, in which process of theirs.
    processes: Mapping[int, int]
    gives: frozenset[int]

    def graph_at(self, place: Place) -> Graph:
        """The graph that is declared there: another wrap knows nothing but its own tasks."""
        if isinstance(place, int):
            return self.graph
        own = [task for task, where in self.place_of.items() if where == place]
        mine = [[[t for t in own if t in tasks] for tasks in bucket] for bucket in self.buckets]
        sources = {task: self.sources[task] for task in own}
        return Graph([(awaits, starts) for awaits, starts in mine if starts], sources)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A DAG of up to nine tasks, with either trigger, over processes and other wraps."""
    needs, generation = dict[int, list[int]](), dict[int, int]()
    for task in range(draw(st.integers(1, 9))):
        chosen = draw(st.sets(st.sampled_from(list(needs)), max_size=3)) if needs else set[int]()
        needs[task] = draw(st.permutations(sorted(chosen)))
        generation[task] = 1 + max((generation[each] for each in chosen), default=-1)
    stages = [[t for t in needs if generation[t] == g] for g in range(max(generation.values()) + 1)]
    kind = draw(st.sampled_from(["stage", "data"]))
    awaited: dict[int, Iterable[int]] = dict(needs)
    if kind == "stage":
        awaited = {t: stages[g - 1] if (g := generation[t]) else () for t in needs}
    sources: dict[int, Source] = {}
    for task, each in needs.items():
        joined = len(each) > 1 or (each and draw(st.booleans()))
        sources[task] = each if joined else next(iter(each), None)
    made = buckets(needs, stages, kind)
    places = st.sampled_from([MAIN, 1, 2, "far", "near"])
    place_of = {task: draw(places) for task in needs}
    processes = {task: draw(st.integers(0, 1)) for task in needs}
    gives = frozenset(draw(st.sets(st.sampled_from(list(needs)), min_size=1)))
    return Case(Graph(made, sources), awaited, sources, made, place_of, processes, gives)


class Simulated:
    """An execution of some tasks, and those of the places that it calls for them.

    These are told of the same events, and have to begin the same. Every task has to find its
    input where it runs.

    Args:
        here: the objects that are there at the beginning; those that come are added.
    """

    def __init__(
        self,
        case: Case,
        graph: Graph,
        place_of: Mapping[int, Place],
        gives: Iterable[int],
        here: set[Key],
    ) -> None:
        self.case = case
        self.part = graph.part(place_of, frozenset(gives))
        self.engine = Engine(self.part)
        self.here = here
        self.kept: dict[Place, set[Key]] = {}
        self.called: dict[int, tuple[Call, Simulated | None]] = {}
        self.begun: list[int] = []

    def start(self) -> list[int]:
        """The tasks that begin."""
        return self.follow(self.engine.start())

    def end(self, task: int) -> list[int]:
        """The tasks that begin when `task` has ended."""
        call, place = self.called[task]
        within = place.end(task) if place else None
        if call.place == MAIN or task in call.gives:
            self.here.add(task)
        step = self.engine.ended(task)
        if within is not None:
            assert within == [each for each in step.begins if each in call.tasks]
        return self.follow(step, call)

    def follow(self, step: Step, running: Call | None = None) -> list[int]:
        for call in step.calls:
            assert set(call.tasks).isdisjoint({*self.called, *self.begun})
            assert set(call.tasks) & set(step.begins)
            place = self.place(call)
            self.called |= dict.fromkeys(call.tasks, (call, place))
            if place:
                assert place.start() == [each for each in step.begins if each in call.tasks]
        for task in step.begins:
            call, _ = self.called[task]
            assert call in step.calls or call == running
            assert call.place == self.part.place_of[task]
            if call.place == MAIN:
                assert self.here.issuperset(keys(self.case.sources[task]))
        in_turn = [task for _, starts in self.case.buckets for task in starts]
        assert step.begins == sorted(step.begins, key=in_turn.index)
        self.begun += step.begins
        return step.begins

    def place(self, call: Call) -> Simulated | None:
        if call.place == MAIN:
            return None
        kept = self.kept.setdefault(call.place, set()) if isinstance(call.place, int) else set()
        assert self.here.issuperset(set(call.needs) - kept)
        kept.update(call.needs)
        graph, inside = self.case.graph_at(call.place), dict.fromkeys(call.tasks, MAIN)
        if isinstance(call.place, str):
            inside = {task: self.case.processes[task] for task in call.tasks}
        return Simulated(self.case, graph, inside, call.gives, kept)


def simulated(case: Case) -> Simulated:
    return Simulated(case, case.graph, case.place_of, case.gives, {None})


@given(cases(), st.randoms(use_true_random=False))
def test_every_task_begins_once_and_when_all_that_it_awaits_has_ended(case, order):
    execution, ended = simulated(case), set[int]()
    running = list(execution.start())
    while running:
        assert set(execution.engine.unanswered(set())) == case.place_of.keys() - ended
        task = running.pop(order.randrange(len(running)))
        ended.add(task)
        running += execution.end(task)
        for each, awaited in case.awaited.items():
            assert (each in execution.begun) == ended.issuperset(awaited)
    assert sorted(execution.begun) == sorted(case.place_of)
    assert execution.engine.is_complete
    assert execution.here.issuperset(case.gives)
    for call, place in execution.called.values():
        assert place is None or place.here.issuperset(call.gives)


@given(cases())
def test_every_task_is_in_one_call_which_gives_what_is_used_elsewhere(case: Case) -> None:
    part = case.graph.part(case.place_of, case.gives)
    calls = [call for made in part.calls.values() for call in made]
    assert sorted(task for call in calls for task in call.tasks) == sorted(case.place_of)
    for call in calls:
        assert {case.place_of[task] for task in call.tasks} == {call.place}
        used = {key for task in call.tasks for key in keys(case.sources[task])}
        assert set(call.needs) == used.difference(call.tasks)
        # A process knows in a later call what it gave in an earlier one; another wrap does not.
        within = part.tasks_at(call.place) if isinstance(call.place, int) else call.tasks
        users = [task for task in case.place_of if task not in within]
        elsewhere = case.gives.union(*(keys(case.sources[task]) for task in users))
        assert call.gives == elsewhere.intersection(call.tasks)
    assert part.processes == {1, 2}.intersection(case.place_of.values())


@given(cases())
def test_a_process_is_in_order_where_of_any_two_tasks_one_awaits_the_other(case: Case) -> None:
    before: dict[int, set[int]] = {}
    for awaits, starts in case.buckets:
        known = set(awaits).union(*(before[each] for each in awaits))
        before |= dict.fromkeys(starts, known)
    part = case.graph.part(case.place_of, case.gives)
    in_order = {
        process
        for process in part.processes
        if all(
            one in before[other] or other in before[one]
            for one, other in combinations(part.tasks_at(process), 2)
        )
    }
    assert part.in_order == in_order


@given(cases())
def test_what_is_far_away_is_called_first_and_what_is_here_last(case: Case) -> None:
    for calls in case.graph.part(case.place_of, ()).calls.values():
        turns = [(call.place == MAIN, isinstance(call.place, int)) for call in calls]
        assert turns == sorted(turns)
        assert len({call.place for call in calls}) == len(calls)


def test_a_task_that_is_not_known_cannot_be_part_of_anything() -> None:
    with pytest.raises(KeyError):
        Graph([((), (0,))], {0: None}).part({0: MAIN, 1: MAIN}, ())
