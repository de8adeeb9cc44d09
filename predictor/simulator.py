"""Discrete-event simulation of threads under the GIL, of several processes on shared cores.

Generalises Chiron's Algorithm 1. A ``cpu`` period needs the GIL and a core, a ``native`` period
a core only, a ``block`` period neither. The runnable threads of all processes share the cores
equally (processor sharing). Who wants the GIL asks for it after the switch interval; the holder
drops it then, and before every period that is not ``cpu``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from predictor.timeline import Span
from workflow.profile import PeriodKind

#: The periods of one thread: what it does and for how long, in milliseconds.
Work = tuple[tuple[PeriodKind, float], ...]

#: Times closer than this are one instant, and so are those that the clock cannot tell apart;
#: profiles have microseconds.
_INSTANT_MS = 1e-9


@dataclass(frozen=True)
class Process:
    """A process that comes to life at `start_ms` and runs each of `threads` as a thread."""

    start_ms: float
    threads: tuple[Work, ...]


@dataclass(frozen=True)
class Interpreter:
    """What CPython costs: the GIL's switch interval and switch cost, the start of a thread."""

    switch_interval_ms: float
    switch_cost_ms: float
    thread_startup_ms: float


@dataclass(eq=False, slots=True)
class _Thread:
    gil: _Gil
    number: int  # -1: the thread that starts the others
    work: Work
    position: int = -1
    remaining_ms: float = 0.0
    cpu_ms: float = 0.0
    since_ms: float = 0.0

    @property
    def kind(self) -> PeriodKind:
        return self.work[self.position][0]


@dataclass(eq=False, slots=True)
class _Gil:
    """The GIL of one process, and what is left of the process."""

    process: int
    children: list[_Thread] = field(default_factory=list)
    holder: _Thread | None = None
    last_holder: _Thread | None = None
    taken_ms: float = 0.0
    switching_ms: float = 0.0
    waiters: list[_Thread] = field(default_factory=list)
    unfinished: int = 0
    end_ms: float = 0.0


def simulate(
    processes: Sequence[Process],
    cores: int,
    interpreter: Interpreter,
    record: Callable[[Span], None] | None = None,
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
    Chiron (SC'23), §3.3 and Algorithm 1.
    """
    return _Simulation(processes, cores, interpreter, record).run()


class _Simulation:
    def __init__(
        self,
        processes: Sequence[Process],
        cores: int,
        interpreter: Interpreter,
        record: Callable[[Span], None] | None,
    ) -> None:
        self.cores = cores
        self.interpreter = interpreter
        self.record = record
        self.now = 0.0
        self.instant_ms = _INSTANT_MS
        self.computing: dict[_Thread, None] = {}  # in a native period
        self.blocked: dict[_Thread, float] = {}  # until when
        self.gils = [_Gil(process=index) for index in range(len(processes))]
        for gil, process in zip(self.gils, processes, strict=True):
            self._launch(gil, process)

    def _launch(self, gil: _Gil, process: Process) -> None:
        gil.unfinished = len(process.threads)
        gil.end_ms = process.start_ms
        threads = [_Thread(gil, number, work) for number, work in enumerate(process.threads)]
        if len(threads) == 1:
            self.blocked[threads[0]] = process.start_ms
            return
        # The starter waits for each thread to be under way before it starts the next one.
        start: Work = (("cpu", self.interpreter.thread_startup_ms), ("block", 0.0))
        gil.children = threads
        self.blocked[_Thread(gil, -1, start * len(threads))] = process.start_ms

    def run(self) -> list[float]:
        while any(gil.unfinished for gil in self.gils):
            running = [gil.holder for gil in self.gils if gil.holder is not None]
            rate = min(1.0, self.cores / max(1, len(running) + len(self.computing)))
            until = self._next_event(running, rate)
            self._advance(running, until - self.now, rate)
            self.now = until
            self.instant_ms = max(_INSTANT_MS, 4 * math.ulp(until))
            self._settle(running)
        return [gil.end_ms for gil in self.gils]

    def _next_event(self, running: list[_Thread], rate: float) -> float:
        """When the next period ends or the GIL is next asked for."""
        event = min(self.blocked.values(), default=math.inf)
        for thread in self.computing:
            event = min(event, self.now + thread.remaining_ms / rate)
        for thread in running:
            gil = thread.gil
            left = gil.switching_ms or thread.remaining_ms
            event = min(event, self.now + left / rate, self._drop_time(gil))
        return max(event, self.now)

    def _drop_time(self, gil: _Gil) -> float:
        """When the holder will have to drop the GIL: one interval after a waiter saw no switch."""
        if not gil.waiters or gil.switching_ms:
            return math.inf
        waiting_since = min(thread.since_ms for thread in gil.waiters)
        return max(gil.taken_ms, waiting_since) + self.interpreter.switch_interval_ms

    def _advance(self, running: list[_Thread], elapsed_ms: float, rate: float) -> None:
        done_ms = elapsed_ms * rate
        for thread in self.computing:
            thread.remaining_ms -= done_ms
        for thread in running:
            gil = thread.gil
            if gil.switching_ms:
                left_ms = gil.switching_ms - done_ms
                gil.switching_ms = left_ms if left_ms > self.instant_ms else 0.0
                gil.taken_ms = self.now + elapsed_ms
            else:
                thread.remaining_ms -= done_ms
                thread.cpu_ms += done_ms

    def _settle(self, running: list[_Thread]) -> None:
        """Move on every thread whose period ended now, then hand over the GILs asked for."""
        for thread in running:
            if not thread.gil.switching_ms and thread.remaining_ms <= self.instant_ms:
                self._next_period(thread)
            elif self._drop_time(thread.gil) <= self.now + self.instant_ms:
                self._note(thread, "cpu")
                self._wait(thread)
                self._release(thread.gil)
        for thread in [t for t in self.computing if t.remaining_ms <= self.instant_ms]:
            del self.computing[thread]
            self._next_period(thread)
        now = self.now + self.instant_ms
        for thread in [t for t, until in self.blocked.items() if until <= now]:
            del self.blocked[thread]
            self._next_period(thread)

    def _next_period(self, thread: _Thread) -> None:
        gil = thread.gil
        if thread.position >= 0:
            self._note(thread, thread.kind)
        if thread.number < 0 and thread.position >= 0 and thread.kind == "cpu":
            self._next_period(gil.children[thread.position // 2])
        thread.position += 1
        thread.since_ms = self.now
        holds = gil.holder is thread
        if thread.position == len(thread.work):
            self._finish(thread)
        elif thread.kind == "cpu":
            thread.remaining_ms = thread.work[thread.position][1]
            if not holds:
                self._wait(thread)
            return
        elif thread.kind == "native":
            thread.remaining_ms = thread.work[thread.position][1]
            self.computing[thread] = None
        else:
            self.blocked[thread] = self.now + thread.work[thread.position][1]
        if holds:
            self._release(gil)

    def _wait(self, thread: _Thread) -> None:
        thread.since_ms = self.now
        thread.gil.waiters.append(thread)
        if thread.gil.holder is None:
            self._take(thread.gil)

    def _release(self, gil: _Gil) -> None:
        gil.last_holder, gil.holder = gil.holder, None
        if gil.waiters:
            self._take(gil)

    def _take(self, gil: _Gil) -> None:
        """Give the GIL to who has had the least CPU, as the operating system's scheduler would.

        The one that has just dropped it does not get it back while others wait (CPython forces
        the switch).
        """
        thread = min(gil.waiters, key=lambda t: (t is gil.last_holder, t.cpu_ms, t.since_ms))
        gil.waiters.remove(thread)
        self._note(thread, "wait-gil")
        thread.since_ms = self.now
        gil.holder = thread
        gil.taken_ms = self.now
        if gil.last_holder is not thread and gil.last_holder is not None:
            gil.switching_ms = self.interpreter.switch_cost_ms

    def _finish(self, thread: _Thread) -> None:
        if thread.number >= 0:
            thread.gil.unfinished -= 1
            thread.gil.end_ms = self.now

    def _note(self, thread: _Thread, kind: str) -> None:
        if self.record is not None and self.now > thread.since_ms:
            span = Span(thread.gil.process, thread.number, kind, thread.since_ms, self.now)
            self.record(span)
