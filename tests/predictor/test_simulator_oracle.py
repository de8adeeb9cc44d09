"""The simulation agrees with two simple ones that go step by step, where those are exact."""

from __future__ import annotations

import pytest
from by_process import simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Process

from chiron.predictor.simulator import Interpreter, Work

#: An endless simulation would hang again in every attempt of hypothesis to shrink it.
pytestmark = pytest.mark.timeout(600, method="thread")

several = settings(deadline=None, max_examples=40)

whole = st.integers(1, 12).map(float)
whole_works = st.lists(
    st.tuples(st.sampled_from(["cpu", "native", "block"]), whole), min_size=1, max_size=3
).map(tuple)


class Stepwise:
    """One process with a core for every thread, in steps of 1 ms; all times are whole.

    Thread n is the starter. Where threads are new, it waits for each that it starts until that one
    has had the GIL, in a period of its own without length. Else it starts the first one, and each
    calls the next in that period.
    """

    def __init__(
        self, threads: list[Work], interval: int, cost: int, startup: int, ready: int | None
    ) -> None:
        self.interval, self.cost, self.waits = interval, cost, ready is not None
        self.startup = startup
        self.starter = len(threads)
        before = [("start", ready or 0), ("boot", 0)]
        self.todo = [[list(period) for period in [*before, *work]] for work in threads]
        self.todo.append([["cpu", startup] for _ in threads])
        self.since = [0] * len(self.todo)
        self.running = set(range(self.starter))
        self.to_start = list(range(self.starter))
        self.away: dict[int, int] = {}  # outside the GIL: until when
        self.queue: list[int] = []
        self.holder: int | None = None
        self.last: int | None = None
        self.now = self.taken = self.switching = 0

    def end(self) -> int:
        self.ask(self.starter)
        while True:
            while self.settle():
                pass
            if not self.running:
                return self.now
            self.step()

    def step(self) -> None:
        self.now += 1
        if self.switching:
            self.switching -= 1
            self.taken = self.now
        elif self.holder is not None:
            self.todo[self.holder][0][1] -= 1

    def settle(self) -> bool:
        """Do what happens at this instant; whether anything did."""
        holder, happened = self.holder, False
        if holder is not None and not self.switching:
            if self.todo[holder][0][1] == 0:
                self.advance(holder)
                happened = True
            elif self.queue and self.now >= self.asked() + self.interval:
                self.holder = None
                self.ask(holder)
                happened = True
        over = [t for t, until in self.away.items() if until <= self.now]
        for thread in sorted(over, key=lambda t: (self.todo[t][0][0] != "native", t)):
            del self.away[thread]
            self.advance(thread)
            happened = True
        return happened

    def asked(self) -> int:
        return max(self.taken, self.since[self.queue[0]])

    def advance(self, thread: int) -> None:
        """End the period of `thread` and begin the next."""
        kind, _ = self.todo[thread].pop(0)
        if thread == self.starter:
            self.begin(self.to_start.pop(0))
            self.leave(thread)
            return
        if kind == "boot" and self.to_start:
            if self.waits:
                self.ask(self.starter)
            else:
                self.begin(self.to_start.pop(0))
        self.begin(thread)

    def begin(self, thread: int) -> None:
        if not self.todo[thread]:
            self.running.discard(thread)
        elif self.todo[thread][0][0] in ("cpu", "boot"):
            if self.todo[thread][0][0] == "boot" and self.to_start and not self.waits:
                self.todo[thread][0][1] = self.startup
            if self.holder != thread:
                self.ask(thread)
            return
        else:
            self.away[thread] = self.now + self.todo[thread][0][1]
        self.leave(thread)

    def ask(self, thread: int) -> None:
        self.since[thread] = self.now
        self.queue.append(thread)
        self.hand_over()

    def leave(self, thread: int) -> None:
        if self.holder == thread:
            self.holder = None
            self.hand_over()

    def hand_over(self) -> None:
        """Who has waited longest goes first."""
        if self.holder is None and self.queue:
            following = self.queue.pop(0)
            self.switching = self.cost if self.last not in (None, following) else 0
            self.holder = self.last = following
            self.taken = self.now


@several
@given(
    st.lists(whole_works, min_size=1, max_size=4),
    st.integers(1, 6),
    st.integers(0, 3),
    st.integers(1, 2),
    st.none() | st.integers(0, 2),
)
def test_one_process_with_cores_for_all_ends_as_step_by_step(
    threads, interval, cost, startup, ready
):
    ready_ms = None if ready is None else float(ready)
    interpreter = Interpreter(float(interval), float(cost), float(startup), ready_ms)
    ends = simulate([Process(0.0, tuple(threads))], 64, interpreter)
    assert ends == [pytest.approx(Stepwise(threads, interval, cost, startup, ready).end())]


def shared_in_small_steps(processes: list[Process], k: int, step_ms: float) -> list[float]:
    """When processes of one thread each end if every step's cores are dealt out equally."""
    todo = [[list(period) for period in process.threads[0]] for process in processes]
    ends = [process.start_ms for process in processes]
    now = 0.0
    while any(todo):
        active = [i for i, p in enumerate(processes) if todo[i] and p.start_ms <= now]
        computing = [i for i in active if todo[i][0][0] != "block"]
        share = min(1.0, k / max(1, len(computing)))
        now += step_ms
        for i in active:
            todo[i][0][1] -= step_ms * (share if i in computing else 1.0)
            if todo[i][0][1] <= step_ms / 2:
                todo[i].pop(0)
                ends[i] = now
    return ends


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.builds(Process, whole, st.tuples(whole_works)), min_size=1, max_size=4),
    st.integers(1, 3),
)
def test_processes_share_the_cores_as_in_small_steps(processes, k):
    ends = simulate(processes, k, Interpreter(5.0, 0.0, 0.0))
    assert ends == pytest.approx(shared_in_small_steps(processes, k, 0.01), abs=0.2)
