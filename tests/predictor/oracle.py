"""The slow, plain simulation, which the compiled kernel has to agree with, spans included.

It defines the truth: `chiron.predictor.kernel` says what is simulated and why. Here are threads,
processes and cores; `engines` starts tasks in them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from chiron.predictor.simulator import Interpreter, Span, Work, WorkKind

#: Times closer than this are one instant; profiles have microseconds.
INSTANT_MS = 1e-9
#: So are those which a clock of double precision cannot tell apart, as a part of the time it shows.
CLOCK_STEP = 1e-15

#: What a thread does besides its work: until it can run, what its starter waits for, and that
#: the next process can be forked.
Kind = WorkKind | Literal["start", "started", "forked"]
Todo = tuple[tuple[Kind, float], ...]
#: The kinds of spans that need a core.
COMPUTING = frozenset({"cpu", "native", "helper"})


@dataclass(frozen=True)
class Process:
    """A process that is there, and runs each of `threads` as a thread from `start_ms` on."""

    start_ms: float
    threads: tuple[Work, ...]


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
    ended: Callable[[], None] = lambda: None
    gives: Callable[[int], None] = lambda _: None
    there: set[int] = field(default_factory=set)  # of what it awaits

    @property
    def kind(self) -> Kind:
        return self.work[self.position][0]

    @property
    def order(self) -> tuple[bool, bool, int, int]:
        """Who goes first among those whose periods end at one instant."""
        return self.owner is None, self.number >= 0, self.gil.index, self.number


@dataclass(eq=False, slots=True)
class Cores:
    """Cores that processes share, and what computes there without a GIL."""

    count: int
    computing: set[Thread] = field(default_factory=set)
    rate: float = 1.0
    share: float = 1.0


@dataclass(eq=False, slots=True)
class Gil:
    """The GIL of one process, and what else its threads share.

    Its starter does nothing once it has done all its work.
    """

    index: int
    cores: Cores
    starter: Thread = field(init=False)
    follower: Gil | None = None  # the one that is forked after this one
    being_forked: bool = False
    queue: deque[Thread] = field(default_factory=deque)  # those to start
    parked: bool = False  # whether the starter waits for the thread it started last
    calling: bool = False  # whether a thread is on its way, which will call the next one
    begun: tuple[Thread | None, float] = (None, 0.0)  # whose handler began last, and when
    holder: Thread | None = None
    last_holder: Thread | None = None
    taken_ms: float = 0.0
    switching_ms: float = 0.0
    waiters: deque[Thread] = field(default_factory=deque)
    unfinished: int = 0
    end_ms: float = 0.0


@dataclass(eq=False, slots=True)
class Timer:
    """Something that happens at a time, after what threads do then, in the order of `key`."""

    time_ms: float
    key: float
    action: Callable[[], None]


class Simulation:
    """Threads under the GIL of their processes on shared cores.

    Args:
        interpreter: what threads cost.
        record: called with every span of time that a thread spends on one thing.
        contention_overhead: by what part of itself all computing takes longer while more threads
            want a core, or their process's GIL, than there are cores; where there is but one,
            nothing.

    Source: Chiron (SC'23), §3.3 and Algorithm 1; CPython's ``ceval_gil`` and
    ``threading.Thread.start``.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        record: Callable[[Span], None] | None = None,
        contention_overhead: float = 0.0,
    ) -> None:
        self.interpreter, self.record = interpreter, record
        self.contention_overhead = contention_overhead
        self.now = 0.0
        self.instant_ms = INSTANT_MS
        self.blocked: dict[Thread, float] = {}  # until when
        self.timers: list[Timer] = []
        self.left = 0  # of threads, and of what computes beside them
        self.beside = 0  # what has computed beside them
        self.processes: list[Gil] = []
        self.cores: list[Cores] = []

    def add_cores(self, count: int) -> Cores:
        self.cores.append(Cores(count))
        return self.cores[-1]

    def add_process(self, cores: Cores) -> Gil:
        """A process that is there, and whose starter waits for tasks."""
        process = Gil(len(self.processes), cores)
        process.starter = Thread(process, -1, (), position=0)
        self.processes.append(process)
        return process

    def later(self, time_ms: float, key: float, action: Callable[[], None]) -> None:
        self.timers.append(Timer(time_ms, key, action))

    def fork(
        self, process: Gil, alive_ms: float | None, forking_ms: float, computing_ms: float
    ) -> None:
        """Have a process be forked: at `alive_ms`, or else when the one before it has been.

        Before its starter starts any thread, its parent computes for `forking_ms` and can only then
        fork the next one; and then it computes itself. What both compute shares the cores and
        leaves the GIL alone, which nobody else wants yet.
        """
        starter = process.starter
        forking: Todo = (("native", forking_ms),) * (forking_ms > 0)
        computing: Todo = (("native", computing_ms),) * (computing_ms > 0)
        starter.work, starter.position = (*forking, ("forked", 0.0), *computing), -1
        starter.since_ms = self.now
        process.being_forked = True
        if alive_ms is not None:
            self.blocked[starter] = alive_ms

    def start(
        self,
        process: Gil,
        number: int,
        work: Work,
        ended: Callable[[], None] = lambda: None,
        wait_ms: float = 0.0,
        gives: Callable[[int], None] = lambda _: None,
    ) -> Thread:
        """Have the starter of `process` start a thread, `wait_ms` later.

        It calls `gives` with the number of what it emits, and `came` says what it awaits.
        """
        before: Todo = (("start", self.interpreter.thread_ready_ms or 0.0), ("cpu", 0.0))
        thread = Thread(process, number, (*before, *work), position=-2, ended=ended, gives=gives)
        self.left += 1
        if wait_ms > 0:
            self.blocked[thread] = self.now + wait_ms
        else:
            self._enqueue(thread)
        return thread

    def came(self, thread: Thread, number: int) -> None:
        """What a thread awaits by that number is there: it may have waited for that."""
        thread.there.add(number)
        begun = 0 <= thread.position < len(thread.work)
        if begun and thread.work[thread.position] == ("await", number):
            self.blocked[thread] = self.now

    def compute_beside(self, cores: Cores, duration_ms: float, ended: Callable[[], None]) -> None:
        """Let something compute that is no part of any process."""
        nowhere = Gil(-1, cores)
        self.beside += 1
        work = (("native", duration_ms),)
        thread = Thread(nowhere, self.beside, work, 0, duration_ms, ended=ended)
        cores.computing.add(thread)
        self.left += 1

    def _enqueue(self, thread: Thread) -> None:
        process, starter = thread.gil, thread.gil.starter
        thread.position = -1
        if not process.unfinished:
            process.last_holder = None
        process.unfinished += 1
        process.queue.append(thread)
        idle = starter.position == len(starter.work)
        start: Todo = (("cpu", self.interpreter.thread_startup_ms), ("started", 0.0))
        if self.interpreter.thread_ready_ms is not None:
            starter.work += start
        elif not process.calling:
            process.calling = True
            starter.work += start[:1]
        else:
            return  # the thread that is on its way will call it
        if idle:
            self._begin_period(starter)

    def run(self) -> list[float]:
        """When each process has finished all its threads, in milliseconds."""
        while self.timers or self.left:
            running = [p.holder for p in self.processes if p.holder is not None]
            for cores in self.cores:
                self._pace(cores)
            until = self._next_event(running)
            self._advance(running, until - self.now)
            self.now = until
            self.instant_ms = max(INSTANT_MS, CLOCK_STEP * until)
            self._settle(running)
        return [process.end_ms for process in self.processes]

    def _pace(self, cores: Cores) -> None:
        """How fast all compute from now on."""
        runnable = self._runnable(cores)
        cores.rate = cores.share = min(1.0, cores.count / max(1, runnable))
        handed_on = any(p.waiters for p in self.processes if p.cores is cores)
        if runnable + handed_on > cores.count > 1:
            cores.rate /= 1.0 + self.contention_overhead

    def _runnable(self, cores: Cores) -> int:
        holders = sum(p.holder is not None for p in self.processes if p.cores is cores)
        return holders + len(cores.computing)

    def _next_event(self, running: list[Thread]) -> float:
        """When the next period ends or the GIL is next asked for."""
        event = min(self.blocked.values(), default=math.inf)
        event = min([event, *(timer.time_ms for timer in self.timers)])
        for cores in self.cores:
            for thread in cores.computing:
                event = min(event, self.now + thread.remaining_ms / cores.rate)
        for thread in running:
            process = thread.gil
            left = process.switching_ms or thread.remaining_ms
            event = min(event, self.now + left / process.cores.rate, self._drop_time(process))
        return max(event, self.now)

    def _drop_time(self, process: Gil) -> float:
        """When the holder will have to drop the GIL: one interval after a waiter saw no switch."""
        if not process.waiters or process.switching_ms:
            return math.inf
        asked_ms = max(process.taken_ms, process.waiters[0].since_ms)
        return asked_ms + self.interpreter.switch_interval_ms

    def _advance(self, running: list[Thread], elapsed_ms: float) -> None:
        for cores in self.cores:
            for thread in cores.computing:
                thread.remaining_ms -= elapsed_ms * cores.rate
                thread.computed_ms += elapsed_ms * cores.share
        for thread in running:
            process = thread.gil
            done_ms = elapsed_ms * process.cores.rate
            thread.computed_ms += elapsed_ms * process.cores.share
            if process.switching_ms:
                left_ms = process.switching_ms - done_ms
                process.switching_ms = left_ms if left_ms > self.instant_ms else 0.0
                process.taken_ms = self.now + elapsed_ms
            else:
                thread.remaining_ms -= done_ms

    def _settle(self, running: list[Thread]) -> None:
        """Move on every thread whose period ended now, and hand over the GILs asked for.

        What happens at one instant is in this order, each once: what GILs are held for, by the
        numbers of their processes; what computes without a GIL: helpers, starters, then threads;
        what has waited: starters, then threads, then timers by their keys. What begins thereby at
        the same instant has its turn if that is still to come, or else in a further round.
        """
        for thread in running:
            if not thread.gil.switching_ms and thread.remaining_ms <= self.instant_ms:
                self._next_period(thread)
            elif self._drop_time(thread.gil) <= self.now + self.instant_ms:
                self._note(thread, "cpu")
                self._wait(thread)
                self._release(thread.gil)
        over = [t for c in self.cores for t in c.computing if t.remaining_ms <= self.instant_ms]
        for cores in self.cores:
            cores.computing.difference_update(over)
        for thread in sorted(over, key=_order):
            if thread.gil.index < 0:
                self.left -= 1
                thread.ended()
            else:
                self._next_period(thread)
        now = self.now + self.instant_ms
        awake = [thread for thread, until in self.blocked.items() if until <= now]
        due = sorted([t for t in self.timers if t.time_ms <= now], key=lambda timer: timer.key)
        for thread in sorted(awake, key=_order):
            del self.blocked[thread]
            if thread.position < -1:
                self._enqueue(thread)
            else:
                self._next_period(thread)
        for timer in due:
            self.timers.remove(timer)
            timer.action()

    def _next_period(self, thread: Thread) -> None:
        if thread.owner is not None:
            self._end_helper(thread, thread.owner)
            return
        process = thread.gil
        if thread.position >= 0:
            self._note(thread, thread.kind)
        elif thread.number < 0:
            self._note(thread, "start")
        if thread.position >= 0 and thread.number < 0 and thread.kind == "cpu":
            self._next_period(process.queue.popleft())
        elif thread.number >= 0 and thread.position == 1 and process.calling:
            process.begun = thread, self.now
            if process.queue:
                self._next_period(process.queue.popleft())
            else:
                process.calling = False
        elif thread.number >= 0 and thread.position == 1 and process.parked:
            process.parked = False  # the starter hears that this one runs
            self._next_period(process.starter)
        thread.position += 1
        thread.since_ms = self.now
        self._begin_period(thread)

    def _begin_period(self, thread: Thread) -> None:
        process = thread.gil
        self._start_helpers(thread)
        holds = process.holder is thread
        if thread.position == len(thread.work):
            self._finish(thread)
        elif self._begin(thread, *thread.work[thread.position], holds):
            return
        if holds:
            self._release(process)

    def _begin(self, thread: Thread, kind: Kind, duration_ms: float, holds: bool) -> bool:
        """Begin a period; whether it is one in which the thread keeps or wants the GIL."""
        if kind == "cpu":
            thread.remaining_ms = duration_ms
            calls = thread.number >= 0 and thread.position == 1 and thread.gil.calling
            if calls and thread.gil.queue:
                thread.remaining_ms = self.interpreter.thread_startup_ms
            if not holds:
                self._wait(thread)
        elif holds and self._gets_gil_back(thread.gil, kind, duration_ms):
            thread.remaining_ms = duration_ms
            thread.gil.taken_ms = self.now
            return True
        elif kind == "native":
            thread.remaining_ms = duration_ms
            thread.gil.cores.computing.add(thread)
        elif kind == "started":
            thread.gil.parked = True
        elif kind in ("join", "await"):
            pass  # until `_end_helper`, or `came`
        elif kind == "forked":
            self._fork_next(thread.gil)
            self._next_period(thread)
        else:
            self.blocked[thread] = self.now + duration_ms
        return kind == "cpu"

    def _start_helpers(self, thread: Thread) -> None:
        """Start the helpers that come next, and emit; nobody waits for what is done."""
        while thread.position < len(thread.work):
            kind, duration_ms = thread.work[thread.position]
            if kind == "helper":
                helper = Thread(thread.gil, thread.number, (("helper", duration_ms),), 0)
                helper.remaining_ms, helper.since_ms, helper.owner = duration_ms, self.now, thread
                thread.gil.cores.computing.add(helper)
                thread.helpers += 1
            elif kind == "emit":
                thread.gives(int(duration_ms))
            elif kind == "await":
                if int(duration_ms) not in thread.there:
                    return
            elif kind != "join" or thread.helpers:
                return
            thread.position += 1

    def _end_helper(self, helper: Thread, owner: Thread) -> None:
        self._note(helper, "helper")
        owner.helpers -= 1
        if not owner.helpers and owner.position < len(owner.work) and owner.kind == "join":
            self._next_period(owner)

    def _gets_gil_back(self, process: Gil, kind: Kind, duration_ms: float) -> bool:
        """Whether the holder lets the GIL go for too short a time for those who wait for it."""
        if kind not in ("native", "block") or duration_ms >= self.interpreter.short_release_ms:
            return False
        if not process.waiters or self._runnable(process.cores) >= process.cores.count:
            return bool(process.waiters)
        begun, begun_ms = process.begun
        if begun is not process.holder or len(process.waiters) > 1:
            return False
        to_begin = process.waiters[0].number >= 0 and process.waiters[0].position < 1
        return to_begin and self.now < begun_ms + self.interpreter.switch_interval_ms

    def _fork_next(self, process: Gil) -> None:
        process.being_forked = False
        if process.follower is not None:
            self.blocked[process.follower.starter] = self.now

    def _wait(self, thread: Thread) -> None:
        thread.since_ms = self.now
        thread.gil.waiters.append(thread)
        if thread.gil.holder is None:
            self._take(thread.gil)

    def _release(self, process: Gil) -> None:
        process.last_holder, process.holder = process.holder, None
        if process.waiters:
            self._take(process)

    def _take(self, process: Gil) -> None:
        """Give the GIL to who has waited longest."""
        thread = process.waiters.popleft()
        self._note(thread, "wait-gil")
        thread.since_ms = self.now
        process.holder = thread
        process.taken_ms = self.now
        if process.last_holder is not thread and process.last_holder is not None:
            process.switching_ms = self.interpreter.switch_cost_ms

    def _finish(self, thread: Thread) -> None:
        if thread.number >= 0:
            self.left -= 1
            thread.gil.unfinished -= 1
            thread.gil.end_ms = self.now
            thread.ended()

    def _note(self, thread: Thread, kind: str) -> None:
        """Record what `thread` has done since it began to."""
        elapsed_ms = self.now - thread.since_ms
        if self.record is not None and elapsed_ms > 0:
            waited_ms = elapsed_ms - thread.computed_ms if kind in COMPUTING else 0.0
            process, number = thread.gil.index, thread.number
            self.record(Span(process, number, kind, thread.since_ms, self.now, max(0.0, waited_ms)))
        thread.computed_ms = 0.0


def _order(thread: Thread) -> tuple[bool, bool, int, int]:
    return thread.order


def simulate(
    processes: Sequence[Process],
    cores: int,
    interpreter: Interpreter,
    record: Callable[[Span], None] | None = None,
    *,
    contention_overhead: float = 0.0,
) -> list[float]:
    """When each process has finished all its threads, in milliseconds.

    They share `cores` cores, at least 1; the rest is as `Simulation` has it.

    Two threads of 10 ms in one process take 20 ms, in two processes on two cores 10 ms:

    >>> cpython = Interpreter(switch_interval_ms=5, switch_cost_ms=0, thread_startup_ms=0)
    >>> work = (("cpu", 10.0),)
    >>> simulate([Process(0, (work, work))], 2, cpython)
    [20.0]
    >>> simulate([Process(0, (work,)), Process(0, (work,))], 2, cpython)
    [10.0, 10.0]
    """
    simulation = Simulation(interpreter, record, contention_overhead)
    shared = simulation.add_cores(cores)
    for key, process in enumerate(processes):
        gil = simulation.add_process(shared)

        def begin(gil: Gil = gil, process: Process = process) -> None:
            for number, work in enumerate(process.threads):
                simulation.start(gil, number, work)

        simulation.later(process.start_ms, key, begin)
    return simulation.run()
