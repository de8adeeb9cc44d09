"""Simulates executions by the names of their functions: prepares the compiled kernel's input."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, takewhile
from typing import Literal, NamedTuple

from chiron.predictor.compiling import kernel
from chiron.predictor.execution import Execution
from chiron.predictor.image import WORD_BYTES, Image, image
from chiron.predictor.records import (
    CLOCK,
    FUNCTION,
    GROUP,
    KINDS,
    NODE,
    PERIOD,
    PROCESS,
    REQUEST,
    SPAN,
    THREAD,
    Record,
)
from chiron.workflow.profile import PeriodKind

#: A function's work besides its periods: ``helper`` starts a helper, which computes for that time
#: without the GIL while the function goes on; ``join`` waits for all its helpers. ``emit`` ends the
#: task that many places behind its own, which is ``emitted`` and does nothing else. ``await`` waits
#: for the task that many places behind, which is ``awaited`` and ends at its second start.
WorkKind = PeriodKind | Literal["helper", "join", "emit", "emitted", "await", "awaited"]
#: The steps of a function in order: kind and duration in milliseconds.
Work = tuple[tuple[WorkKind, float], ...]

#: The functions of each process of a wrap, the main process first.
Processes = tuple[tuple[str, ...], ...]

#: The number of spans for which memory is allocated at first.
_SPANS = 1000
_MOST_SPANS = CLOCK.place("most_spans")
#: The factor of usual durations.
_USUAL = array("d", [1.0])
_DRAWS, _REQUESTS, _KNOWN = map(CLOCK.place, ("draws", "requests", "known"))


class Span(NamedTuple):
    """A stretch of time that one thread of one process spent on one activity.

    ``thread`` is the thread's index in its process, -1 for the starter of the other threads.
    ``wait_core_ms`` is the part of a ``cpu``, ``native`` or ``helper`` span spent waiting for a
    core. ``kind`` is ``cpu`` (with the GIL's change of holder, if that has a cost), ``native``,
    ``block``, ``wait-gil``, or

    - ``start``, ``started``: started, but cannot run yet; the starter waits for that.
    - ``helper``, ``join``: a helper of the function computes; the function waits for its helpers.
    - ``await``: waits for the other end of a stream.
    """

    process: int
    thread: int
    kind: str
    start_ms: float
    end_ms: float
    wait_core_ms: float = 0.0


class Requests(NamedTuple):
    """The requests to execute, in the order of their arrivals."""

    #: The program that each request executes, and its draw.
    programs: Sequence[int]
    draws: Sequence[int]
    #: When each arrives; infinite: at another request's reply.
    arrivals_ms: Sequence[float]
    #: By draw, the factor of all computing times; then for every task of every program, the factor
    #: of all its times.
    factors: Sequence[Sequence[float]]


#: One request, at time 0.
_ONE = array("q", struct.pack(REQUEST.given, 0, 0, 0.0))


class Served(NamedTuple):
    """When each request arrived and got its reply, and the total computing time."""

    arrivals_ms: list[float]
    replied_ms: list[float]
    used_ms: float


@dataclass(frozen=True)
class Interpreter:
    """CPython's costs: the GIL's switch interval and switch cost, the start of a thread.

    A start takes `thread_startup_ms` with the GIL held. If `thread_ready_ms` is None, threads wait
    already: each calls the next right before its own work. Else one thread starts all others; each
    needs `thread_ready_ms` before it can run, and the starter waits for that. After releasing the
    GIL for less than `short_release_ms`, a thread gets it back before the waiting threads, if they
    have no core to wake up on, or are only the next one that it called.
    """

    switch_interval_ms: float
    switch_cost_ms: float
    thread_startup_ms: float
    thread_ready_ms: float | None = None
    short_release_ms: float = 0.0


class Simulator:
    """Simulates processes of known functions, under the GIL and on shared cores.

    Args:
        works: the work of each function, by name.
        interpreter: the costs of threads.
        cooperative: the functions that release their process's lock when they wait, and only then.
        contention_overhead: the relative slowdown of all computing while more threads need a
            core, or their process's GIL, than there are cores; without effect on a single core.

    Two threads of 10 ms in one process take 20 ms:

    >>> cpython = Interpreter(switch_interval_ms=5, switch_cost_ms=0, thread_startup_ms=0)
    >>> simulator = Simulator({"f": (("cpu", 10.0),)}, cpython)
    >>> from chiron.predictor.execution import Node
    >>> from chiron.predictor.mechanisms.mechanism import Costs
    >>> both = Execution([2], [(0, Costs(0.0))], [(0, 2)], [Node(starts=(0, 1))])
    >>> simulator.run(simulator.image(both), ("f", "f")).ends_ms()
    [20.0]
    """

    def __init__(
        self,
        works: Mapping[str, Work],
        interpreter: Interpreter,
        contention_overhead: float = 0.0,
        cooperative: Container[str] = (),
    ) -> None:
        self._kernel = kernel()
        self._periods, self._functions = array("q"), array("q")
        self._number = dict[str, int]()
        self._helpers = 0
        self.learn(works, cooperative)
        ready_ms = interpreter.thread_ready_ms
        self._constants = (
            interpreter.switch_interval_ms,
            interpreter.switch_cost_ms,
            interpreter.thread_startup_ms,
            -1.0 if ready_ms is None else ready_ms,
            interpreter.short_release_ms,
            contention_overhead,
        )

    def learn(self, works: Mapping[str, Work], cooperative: Container[str] = ()) -> None:
        """Add functions; an image made before has room for no more helpers than before."""
        periods = [(KINDS.index(kind), ms) for work in works.values() for kind, ms in work]
        known = len(self._periods) // PERIOD.words
        first = list(accumulate(map(len, works.values()), initial=known))
        leading_ms = map(_leading_ms, works.values())
        yields = [name in cooperative for name in works]
        functions = zip(first[:-1], first[1:], yields, leading_ms, strict=True)
        self._periods.frombytes(struct.pack(PERIOD.format * len(periods), *chain(*periods)))
        self._functions.frombytes(struct.pack(FUNCTION.format * len(works), *chain(*functions)))
        self._known_at = [_address(self._periods), _address(self._functions)]
        self._number |= {name: number for number, name in enumerate(works, len(self._number))}
        helpers = (sum(kind == "helper" for kind, _ in work) for work in works.values())
        self._helpers = max([self._helpers, *helpers])

    def image(self, execution: Execution) -> Image:
        """Return the image of `execution`, which can run with any functions."""
        return image(execution, self._constants, self._helpers)

    def run(self, image: Image, functions: Iterable[str]) -> Run:
        """Simulate an execution whose tasks have these functions, and return its times."""
        return self._run(image, functions, 0)[0]

    def recorded(self, image: Image, functions: Sequence[str]) -> tuple[Run, list[Span]]:
        """Return the same, and the spans of every thread, in the order of their ends."""
        run, count, spans = self._run(image, functions, _SPANS)
        if count > _SPANS:
            run, _, spans = self._run(image, functions, count)
        fields = struct.iter_unpack(SPAN.format, spans[: count * SPAN.words])
        found = (Span(p, thread, KINDS[kind], *times) for p, thread, kind, *times in fields)
        ended = [span for span in found if span.end_ms > span.start_ms]
        return run, sorted(ended, key=lambda span: span.end_ms)

    def serve(self, image: Image, functions: Iterable[str], requests: Requests) -> Served:
        """Simulate requests with overlapping executions, whose tasks have these functions."""
        given = _packed(requests)
        run = self._run(image, functions, 0, given)[0]
        places = (REQUEST.place(name) for name in ("arrival_ms", "replied_ms"))
        times = (given[0][place :: REQUEST.words] for place in places)
        arrivals_ms, replied_ms = (array("d", each.tobytes()).tolist() for each in times)
        return Served(arrivals_ms, replied_ms, run.used_ms)

    def _run(
        self,
        image: Image,
        functions: Iterable[str],
        most_spans: int,
        requests: tuple[array[int], array[float], int, int] | None = None,
    ) -> tuple[Run, int, array[int]]:
        """Return the results, the number of spans, and the spans that fit into the memory."""
        memory, places = image.words[:], image.places
        numbers = array("q", [self._number[name] for name in functions])
        memory[image.functions], memory[_MOST_SPANS] = numbers, most_spans
        served, factors = _ONE[:], _USUAL * (1 + len(numbers))
        if requests is not None:
            served, factors, memory[_KNOWN], memory[_DRAWS] = requests
            memory[_REQUESTS] = len(served) // REQUEST.words
        spans = array("q", bytes(WORD_BYTES * SPAN.words * most_spans))
        begin = _address(memory)
        count = self._kernel(
            *self._known_at,
            *[begin + WORD_BYTES * place for place in places[:-1]],
            _address(spans),
            _address(served),
            _address(factors),
        )
        return Run(memory, places), count, spans


class TaskRun(NamedTuple):
    """The node that started a task, its start, and its end."""

    node: int
    triggered_ms: float
    end_ms: float


class NodeRun(NamedTuple):
    """When a node fired, and its last event: a task or a node, and when the node was complete."""

    task: int | None
    node: int | None
    complete_ms: float
    fired_ms: float


class Run:
    """The kernel's results, in milliseconds from the beginning."""

    def __init__(self, memory: array[int], places: Sequence[int]) -> None:
        self._memory, self._places = memory, places

    def ends_ms(self) -> list[float]:
        """Return the end of the last task of each process; 0 for a process without tasks."""
        return self._times(3, PROCESS, "end_ms")

    @property
    def used_ms(self) -> float:
        return math.fsum(self._times(1, GROUP, "used_ms"))

    def fired_ms(self) -> list[float]:
        """Return when each node fired."""
        return self._times(5, NODE, "fired_ms")

    @cached_property
    def tasks(self) -> list[TaskRun]:
        times = (self._times(4, THREAD, name) for name in ("triggered_ms", "end_ms"))
        found = map(TaskRun, self._integers(4, THREAD, "node"), *times)
        return list(found)[self._processes :]

    @cached_property
    def nodes(self) -> list[NodeRun]:
        threads = (self._places[5] - self._places[4]) // THREAD.words
        last = self._integers(5, NODE, "last")
        times = (self._times(5, NODE, name) for name in ("complete_ms", "fired_ms"))
        return [
            NodeRun(
                item - self._processes if 0 <= item < threads else None,
                item - threads if item >= threads else None,
                *each,
            )
            for item, *each in zip(last, *times, strict=True)
        ]

    @property
    def _processes(self) -> int:
        return (self._places[4] - self._places[3]) // PROCESS.words

    def _integers(self, argument: int, record: Record, name: str) -> list[int]:
        return self._field(argument, record, name).tolist()

    def _times(self, argument: int, record: Record, name: str) -> list[float]:
        return array("d", self._field(argument, record, name).tobytes()).tolist()

    def _field(self, argument: int, record: Record, name: str) -> array[int]:
        """Return a field of all records of an array of the image."""
        begin, end = self._places[argument : argument + 2]
        return self._memory[begin + record.place(name) : end : record.words]


def _leading_ms(work: Work) -> float:
    """Return how long a function computes before its first wait.

    Return -1 for an output and -2 for an awaited task, which no thread runs.
    """
    if work[:1] and work[0][0] in ("emitted", "awaited"):
        return -1.0 if work[0][0] == "emitted" else -2.0
    leading = takewhile(lambda part: part[0] not in ("block", "await"), work)
    return float(sum(ms for kind, ms in leading if kind not in ("helper", "emit")))


def _packed(requests: Requests) -> tuple[array[int], array[float], int, int]:
    """Return requests and factors as arrays, the number of known arrivals, and that of draws."""
    each = zip(requests.programs, requests.draws, requests.arrivals_ms, strict=True)
    words = array("q", b"".join(struct.pack(REQUEST.given, *request) for request in each))
    known = sum(map(math.isfinite, requests.arrivals_ms))
    factors = array("d", chain(*requests.factors))
    return words, factors, known, len(requests.factors[0])


def _address(words: array[int] | array[float]) -> int:
    return words.buffer_info()[0]
