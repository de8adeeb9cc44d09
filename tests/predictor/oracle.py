"""The slow, plain simulation, which the compiled kernel has to agree with, spans included.

It defines the truth: `predictor.kernel` says what is simulated and why.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from predictor.simulator import COMPUTING, Interpreter, Span, Work, WorkKind

#: Times closer than this are one instant; profiles have microseconds.
INSTANT_MS = 1e-9
#: So are those which a clock of double precision cannot tell apart, as a part of the time it shows.
CLOCK_STEP = 1e-15


@dataclass(frozen=True)
class Process:
    """A process that comes to life at `start_ms` and runs each of `threads` as a thread.

    Before that it computes for `computing_ms`, as a process that has just been forked does; and
    before that, its parent computes for `forking_ms`, and can only then fork the next one:
    where the process before this one is forked too, this one begins when that is done.
    """

    start_ms: float
    threads: tuple[Work, ...]
    computing_ms: float = 0.0
    forking_ms: float = 0.0


#: What a thread does besides its work: until it can run, what its starter waits for, and that
#: the next process can be forked.
Kind = WorkKind | Literal["start", "started", "forked"]
Todo = tuple[tuple[Kind, float], ...]


@dataclass(eq=False, slots=True)
class Thread:
    gil: Gil
    number: int  # -1: the thread that starts the others
    work: Todo
    position: int = -1
    remaining_ms: float = 0.0
    since_ms: float = 0.0
    computed_ms: float = 0.0  # since then
    helpers: int = 0  # those that compute
    owner: Thread | None = None  # of a helper

    @property
    def kind(self) -> Kind:
        return self.work[self.position][0]

    @property
    def order(self) -> tuple[bool, int, int]:
        """Who goes first among those whose periods end at one instant."""
        return self.owner is None, self.gil.process, self.number


@dataclass(eq=False, slots=True)
class Gil:
    """The GIL of one process, and what is left of the process."""

    process: int
    threads: list[Thread] = field(default_factory=list)
    follower: Thread | None = None  # the starter of the process that is forked after this one
    started: int = 0
    parked: Thread | None = None  # the starter, while it waits for the thread it started last
    holder: Thread | None = None
    last_holder: Thread | None = None
    taken_ms: float = 0.0
    switching_ms: float = 0.0
    waiters: deque[Thread] = field(default_factory=deque)
    unfinished: int = 0
    end_ms: float = 0.0


def simulate(
    processes: Sequence[Process],
    cores: int,
    interpreter: Interpreter,
    record: Callable[[Span], None] | None = None,
    *,
    contention_overhead: float = 0.0,
) -> list[float]:
    """When each process has finished all its threads, in milliseconds.

    Parameters
    ----------
    processes
        The processes of one wrap in one stage; they compete for the cores.
    cores
        How many cores they share, at least 1.
    record
        Called with every span of time that a thread spends on one thing.
    contention_overhead
        By what part of itself all computing takes longer while threads wait for a GIL and all cores
        are wanted; where there is but one, nothing.

    Examples
    --------
    Two threads of 10 ms in one process take 20 ms, in two processes on two cores 10 ms:

    >>> cpython = Interpreter(switch_interval_ms=5, switch_cost_ms=0, thread_startup_ms=0)
    >>> work = (("cpu", 10.0),)
    >>> simulate([Process(0, (work, work))], 2, cpython)
    [20.0]
    >>> simulate([Process(0, (work,)), Process(0, (work,))], 2, cpython)
    [10.0, 10.0]

    References
    ----------
    Chiron (SC'23), §3.3 and Algorithm 1; CPython's ``ceval_gil`` and ``threading.Thread.start``.
    """
    return _Simulation(processes, cores, interpreter, record, contention_overhead).run()


class _Simulation:
    def __init__(
        self,
        processes: Sequence[Process],
        cores: int,
        interpreter: Interpreter,
        record: Callable[[Span], None] | None,
        contention_overhead: float,
    ) -> None:
        self.cores = cores
        self.contention_overhead = contention_overhead
        self.interpreter = interpreter
        self.record = record
        self.now = 0.0
        self.instant_ms = INSTANT_MS
        self.computing: set[Thread] = set()  # in a native period
        self.blocked: dict[Thread, float] = {}  # until when
        self.gils = [Gil(process=index) for index in range(len(processes))]
        before: Gil | None = None  # the process before, if that is forked
        for gil, process in zip(self.gils, processes, strict=True):
            starter = self._launch(gil, process)
            if before is not None and process.forking_ms:
                before.follower = starter
            else:
                self.blocked[starter] = process.start_ms
            before = gil if process.forking_ms else None

    def _launch(self, gil: Gil, process: Process) -> Thread:
        """The main thread starts every thread; where they are new, it waits for each.

        What it computes before that, and who forks it, shares the cores and leaves the GIL alone,
        which nobody else wants yet.
        """
        gil.unfinished = len(process.threads)
        gil.end_ms = process.start_ms
        ready_ms = self.interpreter.thread_ready_ms
        before: Todo = (("start", ready_ms or 0.0), ("cpu", 0.0))
        gil.threads = [
            Thread(gil, number, (*before, *work)) for number, work in enumerate(process.threads)
        ]
        start: Todo = (("cpu", self.interpreter.thread_startup_ms), ("started", 0.0))
        starts = start[: 1 if ready_ms is None else 2] * len(gil.threads)
        forking: Todo = (("native", process.forking_ms), ("forked", 0.0))
        computing: Todo = (("native", process.computing_ms),)
        starter = Thread(
            gil,
            -1,
            (
                *(forking if process.forking_ms else ()),
                *(computing if process.computing_ms else ()),
                *starts,
            ),
        )
        starter.since_ms = process.start_ms
        return starter

    def run(self) -> list[float]:
        while any(gil.unfinished for gil in self.gils):
            running = [gil.holder for gil in self.gils if gil.holder is not None]
            runnable = len(running) + len(self.computing)
            share = min(1.0, self.cores / max(1, runnable))
            rate = share / (1.0 + self.contention_overhead) if self._crowded(runnable) else share
            until = self._next_event(running, rate)
            self._advance(running, until - self.now, rate, share)
            self.now = until
            self.instant_ms = max(INSTANT_MS, CLOCK_STEP * until)
            self._settle(running)
        return [gil.end_ms for gil in self.gils]

    def _crowded(self, runnable: int) -> bool:
        """Whether GILs are handed on while all cores are wanted, of which some idle then."""
        return runnable >= self.cores > 1 and any(gil.waiters for gil in self.gils)

    def _next_event(self, running: list[Thread], rate: float) -> float:
        """When the next period ends or the GIL is next asked for."""
        event = min(self.blocked.values(), default=math.inf)
        for thread in self.computing:
            event = min(event, self.now + thread.remaining_ms / rate)
        for thread in running:
            gil = thread.gil
            left = gil.switching_ms or thread.remaining_ms
            event = min(event, self.now + left / rate, self._drop_time(gil))
        return max(event, self.now)

    def _drop_time(self, gil: Gil) -> float:
        """When the holder will have to drop the GIL: one interval after a waiter saw no switch."""
        if not gil.waiters or gil.switching_ms:
            return math.inf
        asked_ms = max(gil.taken_ms, gil.waiters[0].since_ms)
        return asked_ms + self.interpreter.switch_interval_ms

    def _advance(self, running: list[Thread], elapsed_ms: float, rate: float, share: float) -> None:
        done_ms, on_core_ms = elapsed_ms * rate, elapsed_ms * share
        for thread in self.computing:
            thread.remaining_ms -= done_ms
            thread.computed_ms += on_core_ms
        for thread in running:
            gil = thread.gil
            thread.computed_ms += on_core_ms
            if gil.switching_ms:
                left_ms = gil.switching_ms - done_ms
                gil.switching_ms = left_ms if left_ms > self.instant_ms else 0.0
                gil.taken_ms = self.now + elapsed_ms
            else:
                thread.remaining_ms -= done_ms

    def _settle(self, running: list[Thread]) -> None:
        """Move on every thread whose period ended now, and hand over the GILs asked for."""
        for thread in running:
            if not thread.gil.switching_ms and thread.remaining_ms <= self.instant_ms:
                self._next_period(thread)
            elif self._drop_time(thread.gil) <= self.now + self.instant_ms:
                self._note(thread, "cpu")
                self._wait(thread)
                self._release(thread.gil)
        over = [thread for thread in self.computing if thread.remaining_ms <= self.instant_ms]
        self.computing.difference_update(over)
        for thread in sorted(over, key=_order):
            self._next_period(thread)
        now = self.now + self.instant_ms
        awake = [thread for thread, until in self.blocked.items() if until <= now]
        for thread in sorted(awake, key=_order):
            del self.blocked[thread]
            self._next_period(thread)

    def _next_period(self, thread: Thread) -> None:
        if thread.owner is not None:
            self._end_helper(thread, thread.owner)
            return
        gil = thread.gil
        if thread.position >= 0:
            self._note(thread, thread.kind)
        if thread.position >= 0 and thread.number < 0 and thread.kind == "cpu":
            gil.started += 1
            self._next_period(gil.threads[gil.started - 1])
        elif thread.position == 1 and gil.parked is not None:  # hears that this one runs
            starter, gil.parked = gil.parked, None
            self._next_period(starter)
        thread.position += 1
        thread.since_ms = self.now
        self._start_helpers(thread)
        holds = gil.holder is thread
        if thread.position == len(thread.work):
            self._finish(thread)
        elif self._begin(thread, *thread.work[thread.position], holds):
            return
        if holds:
            self._release(gil)

    def _begin(self, thread: Thread, kind: Kind, duration_ms: float, holds: bool) -> bool:
        """Begin a period; whether it is one in which the thread keeps or wants the GIL."""
        if kind == "cpu":
            thread.remaining_ms = duration_ms
            if not holds:
                self._wait(thread)
        elif holds and self._gets_gil_back(thread.gil, kind, duration_ms):
            thread.remaining_ms = duration_ms
            thread.gil.taken_ms = self.now
            return True
        elif kind == "native":
            thread.remaining_ms = duration_ms
            self.computing.add(thread)
        elif kind == "started":
            thread.gil.parked = thread
        elif kind == "join":
            pass  # until `_end_helper`
        elif kind == "forked":
            self._fork_next(thread.gil)
            self._next_period(thread)
        else:
            self.blocked[thread] = self.now + duration_ms
        return kind == "cpu"

    def _start_helpers(self, thread: Thread) -> None:
        """Start the helpers that come next; nobody waits for helpers that are done."""
        while thread.position < len(thread.work):
            kind, duration_ms = thread.work[thread.position]
            if kind == "helper":
                helper = Thread(thread.gil, thread.number, (("helper", duration_ms),), 0)
                helper.remaining_ms, helper.since_ms, helper.owner = duration_ms, self.now, thread
                self.computing.add(helper)
                thread.helpers += 1
            elif kind != "join" or thread.helpers:
                return
            thread.position += 1

    def _end_helper(self, helper: Thread, owner: Thread) -> None:
        self._note(helper, "helper")
        owner.helpers -= 1
        if not owner.helpers and owner.position < len(owner.work) and owner.kind == "join":
            self._next_period(owner)

    def _gets_gil_back(self, gil: Gil, kind: Kind, duration_ms: float) -> bool:
        """Whether the holder lets the GIL go for too short a time for those who wait for it."""
        if kind not in ("native", "block") or duration_ms >= self.interpreter.short_release_ms:
            return False
        holders = sum(other.holder is not None for other in self.gils)
        return bool(gil.waiters) and holders + len(self.computing) >= self.cores

    def _fork_next(self, gil: Gil) -> None:
        if gil.follower is not None:
            self._note(gil.follower, "start")
            self.blocked[gil.follower] = self.now

    def _wait(self, thread: Thread) -> None:
        thread.since_ms = self.now
        thread.gil.waiters.append(thread)
        if thread.gil.holder is None:
            self._take(thread.gil)

    def _release(self, gil: Gil) -> None:
        gil.last_holder, gil.holder = gil.holder, None
        if gil.waiters:
            self._take(gil)

    def _take(self, gil: Gil) -> None:
        """Give the GIL to who has waited longest."""
        thread = gil.waiters.popleft()
        self._note(thread, "wait-gil")
        thread.since_ms = self.now
        gil.holder = thread
        gil.taken_ms = self.now
        if gil.last_holder is not thread and gil.last_holder is not None:
            gil.switching_ms = self.interpreter.switch_cost_ms

    def _finish(self, thread: Thread) -> None:
        if thread.number >= 0:
            thread.gil.unfinished -= 1
            thread.gil.end_ms = self.now

    def _note(self, thread: Thread, kind: str) -> None:
        """Record what `thread` has done since it began to."""
        elapsed_ms = self.now - thread.since_ms
        if self.record is not None and elapsed_ms > 0:
            waited_ms = elapsed_ms - thread.computed_ms if kind in COMPUTING else 0.0
            process, number = thread.gil.process, thread.number
            self.record(Span(process, number, kind, thread.since_ms, self.now, max(0.0, waited_ms)))
        thread.computed_ms = 0.0


def _order(thread: Thread) -> tuple[bool, int, int]:
    return thread.order
