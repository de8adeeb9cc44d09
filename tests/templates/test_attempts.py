"""Tasks that live streams connect, over three wraps of which anything is lost at any time."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from wrap.core.dag import Engine
from wrap.core.program import Component
from wrap.core.recovery import AttemptCounts, Attempts, tasks_to_rerun
from wrap.core.triggers import buckets
from wrap.core.wrap_spec import Entry, Wrap

from chiron.workflow.dag import parse_dag
from chiron.workflow.streaming import begins_with, live_streams
from tests.templates.clusters import NAMES, over_wraps


@st.composite
def wraps(draw: st.DrawFn) -> dict[str, Wrap]:
    """A DAG of up to seven tasks, of whose edges some are streams, as each wrap declares it."""
    count = draw(st.integers(2, 7))
    edges = [
        [f"t{one}", f"t{other}", *(["stream"] if kind == 2 else [])]
        for other in range(count)
        for one in range(other)
        if (kind := draw(st.integers(0, 2)))
    ]
    tasks = {f"t{task}": f"f{task}" for task in range(count)}
    workflow = parse_dag({"tasks": tasks, "edges": edges}, "test")
    number = {name: int(name[1:]) for name in tasks}
    live = live_streams(workflow)
    begins = {
        number[t]: [number[n] for n in needs] for t, needs in begins_with(workflow, live).items()
    }
    stages = [[number[name] for name in stage] for stage in workflow.stages]
    made = buckets(begins, stages, "data")
    place = {task: draw(st.sampled_from(NAMES)) for task in number.values()}
    into = {number[t.name]: [number[n] for n in t.needs] for t in workflow.tasks}
    streams = {
        number[t.name]: {each.name: number[each.output] for each in t.streams if each.output}
        for t in workflow.tasks
        if t.streams
    }
    inputs: dict[int, Any] = {
        task: [each for each in needs if each not in streams.get(task, {}).values()] or None
        for task, needs in into.items()
    }
    ends = sorted(set(number.values()) - {each for needs in into.values() for each in needs})
    return over_wraps(
        place,
        {name: [[task for task in place if place[task] == name]] for name in NAMES},
        inputs=inputs,
        buckets=[(list(into[t]), [t]) for stage in stages for t in stage],
        entry=Entry(ends),
        attempts=draw(st.integers(1, 3)),
        streams=streams,
        live={number[o]: [number[r] for r in readers] for o, readers in live.items()},
        live_buckets=[(list(awaits), list(starts)) for awaits, starts in made],
    )


class FailedError(Exception):
    """No attempt is left: the execution ends with an error."""


class Part:
    """What one wrap knows of the execution."""

    def __init__(self, cluster: Cluster, wrap: Wrap, tasks: set[int]) -> None:
        self.cluster, self.wrap, self.tasks = cluster, wrap, tasks
        wanted = frozenset(cluster.wanted & tasks)
        self.engine = Engine(wrap.share_of(frozenset(tasks), wanted))
        self.attempts = Attempts(wrap.components)
        self.here = set[int]()
        #: The attempt of each task that runs; 0 where it is in no component.
        self.running: dict[int, int] = {}

    def begin(self, tasks: list[int]) -> None:
        self.attempts.begin(tasks)
        for task in tasks:
            assert task not in self.running, "a task runs twice at once"
            self.running[task] = self.attempts.running_attempt(task) or 0
            self.cluster.ran.append(task)

    def told(self, task: int) -> None:
        if task not in self.here:
            self.here.add(task)
            self.begin(self.engine.arrived([task]).begins)

    def next(self, component: Component, attempt: int) -> None:
        self.attempts.next(min(component), attempt)
        self.begin_due()

    def begin_due(self) -> None:
        if due := self.attempts.due():
            self.begin(self.engine.repeat(due).begins)

    def end(self, task: int) -> None:
        attempt = self.running.pop(task)
        self.attempts.ended(task)
        self.cluster.gave.add((task, attempt))
        if task in self.engine.unanswered(set()):
            self.here.add(task)
            step = self.engine.ended(task)
            self.cluster.send(self.wrap.name, [task])
            self.begin(step.begins)
        self.begin_due()

    def breaks(self, task: int) -> None:
        """Its process is lost, or its streams broke."""
        attempt = self.running.pop(task)
        if self.attempts.ended(task) is None:
            self.begin([task])
            return
        self.cluster.broken.add((task, attempt))
        self.cluster.broke.append((task, attempt))
        self.begin_due()


class Cluster:
    """All wraps, and what is on its way between them."""

    def __init__(self, declared: dict[str, Wrap], order: random.Random) -> None:
        self.declared, self.order = declared, order
        self.home = declared["home"]
        assert self.home.entry is not None
        self.wanted = set(self.home.entry.output)  # type: ignore[arg-type]
        self.counts = AttemptCounts(self.home.attempts)
        self.ran = list[int]()
        #: Tasks with the attempts in which they have written all, and in which they were lost.
        self.gave, self.broken = set[tuple[int, int]](), set[tuple[int, int]]()
        self.on_the_way = list[tuple[str, int]]()
        #: What the home is to hear of.
        self.broke = list[tuple[int, int]]()
        self.parts: dict[str, Part] = {}
        for name, wrap in declared.items():
            self.parts[name] = Part(self, wrap, set(wrap.tasks))
        for part in self.parts.values():
            part.begin(part.engine.start().begins)
        self.readers = self.home.live
        self.writers = {
            t: [o for o, r in self.home.live.items() if t in r] for t in self.home.inputs
        }

    @property
    def over(self) -> bool:
        parts = self.parts.values()
        ended = all(part.engine.is_complete and not part.attempts.pending for part in parts)
        return ended and self.wanted <= self.parts["home"].here

    def send(self, name: str, tasks: list[int], only_to: str = "") -> None:
        for task in tasks:
            takers = {*self.declared[name].takers[task]}
            takers |= {"home"} if task in self.wanted and name != "home" else set()
            self.on_the_way += [(to, task) for to in takers if only_to in ("", to)]

    def outcome(self, part: Part, task: int) -> str:
        """How a task that runs can go on: it ends well, its streams break, or it waits."""
        if task not in part.wrap.components:
            return "end"
        attempt = part.running[task]
        others = [*self.writers[task], *self.readers.get(task, ())]
        if attempt < part.attempts.now(task) or any((o, attempt) in self.broken for o in others):
            return "breaks"
        written = all((writer, attempt) in self.gave for writer in self.writers[task])
        running = {(t, n) for each in self.parts.values() for t, n in each.running.items()}
        taken = all((r, attempt) in running | self.gave for r in self.readers.get(task, ()))
        return "end" if written and taken else ""

    def step(self) -> None:
        can: list[Any] = [
            (part, task, how)
            for part in self.parts.values()
            for task in part.running
            if (how := self.outcome(part, task))
        ]
        can += [("told", *each) for each in self.on_the_way] + [("broke", *e) for e in self.broke]
        assert can, "all wait for each other"
        one, task, how = self.order.choice(can)
        if one == "told":
            if self.order.random() < 0.7:  # else it will come once more
                self.on_the_way.remove((task, how))
            self.parts[task].told(how)
        elif one == "broke":
            self.broke.remove((task, how))
            component = self.home.components[task]
            again = self.counts.count_break(component, how)
            if again is None:
                raise FailedError
            if again:
                self.see("", component)
        elif how == "end":
            one.end(task)
        else:
            one.breaks(task)

    def lose_process(self) -> None:
        running = [(part, task) for part in self.parts.values() for task in part.running]
        if running:
            part, task = self.order.choice(running)
            part.breaks(task)

    def lose_wrap(self, name: str) -> None:
        part = self.parts[name]
        self.broken |= set(part.running.items())
        self.on_the_way = [each for each in self.on_the_way if each[0] != name]
        self.see(name)

    def see(self, lost: str, broken: Component = frozenset()) -> None:
        """As the home does, which asks all others what they have."""
        here = {
            name: part
            for name, part in self.parts.items()
            if name != lost
            and (name == "home" or part.attempts.pending or not part.engine.is_complete)
        }
        wrap = self.home
        found = tasks_to_rerun(
            lost,
            wrap.wrap_of,
            wrap.live_graph.needs,
            wrap.takers,
            {name: part.here for name, part in here.items()},
            {name: part.tasks for name, part in here.items()},
            self.wanted,
            "home",
            wrap.components,
            set(wrap.live),
            broken,
        )
        for name, tasks in found.begin.items():
            for component in {wrap.components[t] for t in tasks if t in wrap.components}:
                if self.counts.count_loss(name, component) is None:
                    raise FailedError
        for component in {wrap.components[task] for task in found.repeat}:
            for name in {wrap.wrap_of[task] for task in component & found.repeat}:
                self.counts.record_notified(name, component, self.counts.current[component])
                self.parts[name].next(component, self.counts.current[component])
        for name, tasks in found.begin.items():
            here.pop(name, None)
            self.on_the_way = [each for each in self.on_the_way if each[0] != name]
            self.broken |= set(self.parts[name].running.items())
            self.parts[name] = part = Part(self, self.declared[name], tasks)
            for component, attempt in self.counts.current.items():
                part.next(component, attempt)
                self.counts.record_notified(name, component, attempt)
            part.begin(part.engine.start().begins)
        if lost and lost not in found.begin:
            self.parts[lost] = Part(self, self.declared[lost], set())
        for to in found.begin:
            for name, part in here.items():
                self.send(name, [task for task in part.here if task in part.wrap.tasks], to)


@given(wraps(), st.randoms(use_true_random=False), st.integers(0, 3))
def test_whatever_is_lost_whenever_all_outputs_come_or_an_error(declared, order, losses):
    cluster = Cluster(declared, order)
    components = set(cluster.home.components.values())
    try:
        for loss in range(losses + 1):
            for _ in range(order.randrange(25) if loss < losses else 10_000):
                if cluster.over:
                    break
                cluster.step()
            if loss < losses and not cluster.over:
                lose = order.choice(["process", "far", "near"])
                cluster.lose_process() if lose == "process" else cluster.lose_wrap(lose)
        assert cluster.over
    except FailedError:
        assert losses >= cluster.home.attempts
        return
    assert set(cluster.ran) == set(cluster.home.inputs)
    assert losses or len(cluster.ran) == len(cluster.home.inputs)
    assert all(cluster.counts.current.get(each, 0) <= losses for each in components)
