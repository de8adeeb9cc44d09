"""What a simulation is about: processes, their threads and their GIL."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from workflow.profile import PeriodKind

#: The periods of one thread: what it does and for how long, in milliseconds.
Work = tuple[tuple[PeriodKind, float], ...]


@dataclass(frozen=True)
class Process:
    """A process that comes to life at `start_ms` and runs each of `threads` as a thread.

    Before that it computes for `computing_ms`, as a process that has just been forked does; and
    before that, whoever forks it computes for `forking_ms`, and can only then fork the next one:
    where the process before this one is forked too, this one begins when that is done.
    """

    start_ms: float
    threads: tuple[Work, ...]
    computing_ms: float = 0.0
    forking_ms: float = 0.0


class Life(NamedTuple):
    """A `Process` by the names of its functions."""

    start_ms: float
    functions: Sequence[str]
    computing_ms: float = 0.0
    forking_ms: float = 0.0


@dataclass(frozen=True)
class Interpreter:
    """What CPython costs: the GIL's switch interval and switch cost, the start of a thread.

    A start takes `thread_startup_ms` with the GIL held. A new thread then needs
    `thread_ready_ms` before it can run, for which the starter waits; None where threads wait
    already and are only handed their work. Who lets the GIL go for less than `short_release_ms`
    has it back before those who wait for it, where these have no core to wake up on.
    """

    switch_interval_ms: float
    switch_cost_ms: float
    thread_startup_ms: float
    thread_ready_ms: float | None = None
    short_release_ms: float = 0.0


#: What a thread does besides its periods: until it can run, what its starter waits for, and that
#: the next process can be forked.
Kind = PeriodKind | Literal["start", "started", "forked"]
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

    @property
    def kind(self) -> Kind:
        return self.work[self.position][0]

    @property
    def order(self) -> tuple[int, int]:
        """Who goes first among those whose periods end at one instant."""
        return self.gil.process, self.number


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
