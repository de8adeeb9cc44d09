"""Simulates processes by the names of their functions: hands the compiled kernel what it needs."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Literal, NamedTuple

from predictor.compiling import kernel
from predictor.records import CLOCK, ENTRY, GIL, KINDS, PERIOD, PROCESS, SPAN, THREAD
from workflow.profile import PeriodKind

#: Besides its periods a function can start a helper, which computes for so long without the GIL
#: while the function goes on, and wait until all its helpers are done.
WorkKind = PeriodKind | Literal["helper", "join"]
#: What a function does, one after another, and for how long, in milliseconds.
Work = tuple[tuple[WorkKind, float], ...]

#: The functions of each process of a wrap's stage.
Processes = tuple[tuple[str, ...], ...]

#: For how many spans there is memory at first.
_SPANS = 1000
_WORD_BYTES = 8
#: The time at the beginning.
_TIME = (0.0, 0.0, 0.0, 0.0)


#: The kinds of spans that need a core.
COMPUTING = frozenset({"cpu", "native", "helper"})


class Span(NamedTuple):
    """A stretch of time that one thread of one process spent on one thing.

    ``thread`` is the thread's place in its process, -1 for the one that starts the others;
    ``kind`` is ``cpu``, ``native``, ``block``, ``wait-gil``, ``start`` (it was started but cannot
    run yet), ``started`` (the starter waits for that), ``helper`` (a thread or process that the
    function started computes, whatever the function does meanwhile) or ``join`` (the function waits
    for those). A ``cpu`` span begins with the GIL's change of holder, where that costs;
    ``wait_core_ms`` is how much of a span of `COMPUTING` passed because others had the cores.
    """

    process: int
    thread: int
    kind: str
    start_ms: float
    end_ms: float
    wait_core_ms: float = 0.0

    def moved(self, processes: int, milliseconds: float) -> Span:
        """The same so many processes and milliseconds earlier."""
        return self._replace(
            process=self.process - processes,
            start_ms=self.start_ms - milliseconds,
            end_ms=self.end_ms - milliseconds,
        )


class Life(NamedTuple):
    """A process that comes to life at `start_ms` and runs each of `functions` on a thread.

    Before that it computes for `computing_ms`, as a process that has just been forked does; and
    before that, its parent computes for `forking_ms`, and can only then fork the next one: where
    the process before this one is forked too, this one begins when that is done.
    """

    start_ms: float
    functions: Sequence[str]
    computing_ms: float = 0.0
    forking_ms: float = 0.0


@dataclass(frozen=True)
class Interpreter:
    """What CPython costs: the GIL's switch interval and switch cost, the start of a thread.

    A start takes `thread_startup_ms` with the GIL held. A new thread then needs
    `thread_ready_ms` before it can run, for which the starter waits; None where threads wait
    already and are only handed their work. A thread that lets the GIL go for less than
    `short_release_ms` has it back before those that wait for it, where these have no core to wake
    up on.
    """

    switch_interval_ms: float
    switch_cost_ms: float
    thread_startup_ms: float
    thread_ready_ms: float | None = None
    short_release_ms: float = 0.0


class Simulator:
    """Simulates processes of functions that it knows, under the GIL and on shared cores.

    Parameters
    ----------
    works
        What each function does, by name.
    interpreter
        What threads cost.
    contention_overhead
        By what part of itself all computing takes longer while threads wait for a GIL and all cores
        are wanted; where there is but one, nothing.

    Examples
    --------
    Two threads of 10 ms in one process take 20 ms, in two processes on two cores 10 ms:

    >>> cpython = Interpreter(switch_interval_ms=5, switch_cost_ms=0, thread_startup_ms=0)
    >>> simulator = Simulator({"f": (("cpu", 10.0),)}, cpython)
    >>> simulator.ends_ms([Life(0, ("f", "f"))], 2)
    [20.0]
    >>> simulator.ends_ms([Life(0, ("f",)), Life(0, ("f",))], 2)
    [10.0, 10.0]
    """

    def __init__(
        self, works: Mapping[str, Work], interpreter: Interpreter, contention_overhead: float = 0.0
    ) -> None:
        periods = [(KINDS.index(kind), ms) for work in works.values() for kind, ms in work]
        packed = struct.pack(PERIOD.format * len(periods), *chain.from_iterable(periods))
        self._kernel = kernel()
        self._periods = array("q", packed)
        self._first = array("q", accumulate(map(len, works.values()), initial=0))
        self._periods_at, self._first_at = _address(self._periods), _address(self._first)
        self._number = {name: number for number, name in enumerate(works)}
        self._helpers = [sum(kind == "helper" for kind, _ in work) for work in works.values()]
        ready_ms = interpreter.thread_ready_ms
        self._constants = (
            interpreter.switch_interval_ms,
            interpreter.switch_cost_ms,
            interpreter.thread_startup_ms,
            -1.0 if ready_ms is None else ready_ms,
            interpreter.short_release_ms,
            contention_overhead,
        )

    def ends_ms(self, lives: Sequence[Life], cores: int) -> list[float]:
        """When each process ends; all share `cores` cores, at least 1."""
        return self._run(lives, [len(lives)], cores)[0]

    def each_ms(self, processes: Sequence[Sequence[str]]) -> list[float]:
        """When each process ends that begins at 0 and has a core of its own."""
        return self._run([Life(0.0, names) for names in processes], [1] * len(processes), 1)[0]

    def spans(self, lives: Sequence[Life], cores: int) -> list[Span]:
        """What every thread of every process does when, in the order of the ends."""
        _, count, spans = self._run(lives, [len(lives)], cores, _SPANS)
        if count > _SPANS:
            spans = self._run(lives, [len(lives)], cores, count)[2]
        fields = struct.iter_unpack(SPAN.format, spans[: count * SPAN.words])
        found = (Span(p, thread, KINDS[kind], *times) for p, thread, kind, *times in fields)
        ended = [span for span in found if span.end_ms > span.start_ms]
        return sorted(ended, key=lambda span: span.end_ms)

    def _run(
        self, lives: Sequence[Life], together: Sequence[int], cores: int, most_spans: int = 0
    ) -> tuple[list[float], int, array[int]]:
        """The ends of processes, how many spans there were, and those there was memory for."""
        functions = [self._number[name] for life in lives for name in life[1]]
        threads = len(functions) + len(lives)
        most = threads + sum([self._helpers[number] for number in functions])
        begins = [value for life in lives for value in (len(life[1]), life[0], *life[2:], 0.0)]
        given = struct.pack(
            f"={CLOCK.format}{PROCESS.format * len(lives)}{len(together) + len(functions)}q",
            *(cores, 0, *self._constants, *_TIME),
            *begins,
            *together,
            *functions,
        )
        words = (  # in the order of the kernel's arguments
            *(CLOCK.words, len(begins), len(together), len(functions)),
            *(GIL.words * len(lives), THREAD.words * threads),
            *(ENTRY.words * (most + 1), ENTRY.words * (most + 1), most),
        )
        places = list(accumulate(words, initial=0))
        memory = array("q", given + bytes(_WORD_BYTES * places[-1] - len(given)))
        spans = array("q", bytes(_WORD_BYTES * SPAN.words * most_spans))
        begin = _address(memory)
        count = self._kernel(
            self._periods_at,
            self._first_at,
            *[begin + _WORD_BYTES * place for place in places[:-1]],
            _address(spans),
            len(together),
            most,
            most_spans,
        )
        done = memory[CLOCK.words : CLOCK.words + len(begins)].tobytes()
        return list(array("d", done)[PROCESS.words - 1 :: PROCESS.words]), count, spans


def _address(words: array[int]) -> int:
    return words.buffer_info()[0]
