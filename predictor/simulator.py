"""Simulates executions by the names of their functions: hands the compiled kernel what it needs."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, chain, pairwise, takewhile
from typing import Literal, NamedTuple

from predictor.compiling import kernel
from predictor.execution import Execution, Node
from predictor.mechanisms.mechanism import Costs
from predictor.records import (
    CLOCK,
    ENTRY,
    FUNCTION,
    GROUP,
    KINDS,
    NODE,
    PERIOD,
    PROCESS,
    SPAN,
    THREAD,
    WRAP,
    Record,
)
from workflow.profile import PeriodKind

#: Besides its periods a function can start a helper, which computes for so long without the GIL
#: while the function goes on, and wait until all its helpers are done.
WorkKind = PeriodKind | Literal["helper", "join"]
#: What a function does, one after another, and for how long, in milliseconds.
Work = tuple[tuple[WorkKind, float], ...]

#: The functions of each process of a wrap, the main process first.
Processes = tuple[tuple[str, ...], ...]

#: For how many spans there is memory at first.
_SPANS = 1000
_WORD_BYTES = 8

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
    Two threads of 10 ms in one process take 20 ms:

    >>> cpython = Interpreter(switch_interval_ms=5, switch_cost_ms=0, thread_startup_ms=0)
    >>> simulator = Simulator({"f": (("cpu", 10.0),)}, cpython)
    >>> both = Execution([2], [(0, Costs(0.0))], [(0, ("f", "f"))], [Node(starts=(0, 1))])
    >>> simulator.run(both).ends_ms()
    [20.0]
    """

    def __init__(
        self, works: Mapping[str, Work], interpreter: Interpreter, contention_overhead: float = 0.0
    ) -> None:
        periods = [(KINDS.index(kind), ms) for work in works.values() for kind, ms in work]
        first = list(accumulate(map(len, works.values()), initial=0))
        leading_ms = map(_leading_ms, works.values())
        functions = zip(first[:-1], first[1:], leading_ms, strict=True)
        self._kernel = kernel()
        self._known = [
            array("q", struct.pack(PERIOD.format * len(periods), *chain(*periods))),
            array("q", struct.pack(FUNCTION.format * len(works), *chain(*functions))),
        ]
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

    def run(self, execution: Execution) -> Run:
        """What happens when."""
        return self._run(execution, 0)[0]

    def recorded(self, execution: Execution) -> tuple[Run, list[Span]]:
        """The same, and what every thread of every process does when, in the order of the ends."""
        run, count, spans = self._run(execution, _SPANS)
        if count > _SPANS:
            run, _, spans = self._run(execution, count)
        fields = struct.iter_unpack(SPAN.format, spans[: count * SPAN.words])
        found = (Span(p, thread, KINDS[kind], *times) for p, thread, kind, *times in fields)
        ended = [span for span in found if span.end_ms > span.start_ms]
        return run, sorted(ended, key=lambda span: span.end_ms)

    def _run(self, execution: Execution, most_spans: int) -> tuple[Run, int, array[int]]:
        """The answer, how many spans there were, and those there was memory for."""
        cores, wraps, processes, nodes, calls = execution
        first = list(accumulate([len(names) for _, names in processes], initial=len(processes)))
        threads = first[-1]
        functions = [[self._number[name] for name in names] for _, names in processes]
        links, ranges, awaited = _links(nodes, len(processes), threads - len(processes))
        mains, rooms = dict[int, int](), [1] * len(cores)
        rooms[0] += len(nodes)
        for number, ((wrap, _), each) in enumerate(zip(processes, functions, strict=True)):
            mains.setdefault(wrap, number)
            helpers = sum([self._helpers[function] for function in each])
            rooms[wraps[wrap][0]] += 1 + len(each) + helpers
        tasks = enumerate([(n, f) for n, each in enumerate(functions) for f in each])
        timed = 1 + threads + 2 * len(nodes)
        most = max(timed, *rooms)
        heaps = accumulate(rooms, initial=0)
        counts = (len(cores), len(wraps), len(processes), threads, len(nodes), most, most_spans)
        constants = (*self._constants, calls.call_ms, calls.invoke_ms, calls.computing_ms)
        given = [
            _pack(CLOCK)(*counts, calls.computed, *constants),
            *[_pack(GROUP)(*each) for each in zip(cores, heaps, rooms, strict=False)],
            *[_packed_wrap(group, mains[n], costs) for n, (group, costs) in enumerate(wraps)],
            *[_pack(PROCESS)(wrap, n) for (wrap, _), n in zip(processes, first, strict=False)],
            bytes(_WORD_BYTES * THREAD.words * len(processes)),
            *[_pack(THREAD)(n, f, awaited[t], awaited[t + 1]) for t, (n, f) in tasks],
            *[_packed_node(node, each) for node, each in zip(nodes, ranges, strict=True)],
            array("q", links).tobytes(),
        ]
        records = zip((CLOCK, GROUP, WRAP, PROCESS, THREAD, NODE), (1, *counts), strict=False)
        scratch = (ENTRY.words * timed, ENTRY.words * sum(rooms), most, len(processes), len(cores))
        words = (*(record.words * count for record, count in records), len(links), *scratch)
        places = list(accumulate(words, initial=0))
        memory = array("q", b"".join((*given, bytes(_WORD_BYTES * sum(scratch)))))
        spans = array("q", bytes(_WORD_BYTES * SPAN.words * most_spans))
        begin = _address(memory)
        count = self._kernel(
            *map(_address, self._known),
            *[begin + _WORD_BYTES * place for place in places[:-1]],
            _address(spans),
        )
        return Run(*(memory[place:end] for place, end in pairwise(places[3:7]))), count, spans


class TaskRun(NamedTuple):
    """The node that started a task, when it did, and when the task ended."""

    node: int
    triggered_ms: float
    end_ms: float


class NodeRun(NamedTuple):
    """The task or node that came last of those that a node waited for, when, and when it fired."""

    task: int | None
    node: int | None
    complete_ms: float
    fired_ms: float


class Run:
    """What the kernel answered, in milliseconds from the beginning."""

    def __init__(self, processes: array[int], threads: array[int], nodes: array[int]) -> None:
        self._records = processes, threads, nodes

    def ends_ms(self) -> list[float]:
        """When the last task of each process ended; 0 where it has none."""
        return _times(self._records[0], PROCESS, "end_ms")

    def fired_ms(self) -> list[float]:
        """When each node fired."""
        return _times(self._records[2], NODE, "fired_ms")

    @cached_property
    def tasks(self) -> list[TaskRun]:
        """What became of every task."""
        _, threads, _ = self._records
        own = threads[THREAD.words * self._processes :]
        times = (_times(own, THREAD, name) for name in ("triggered_ms", "end_ms"))
        return [TaskRun(*each) for each in zip(_integers(own, THREAD, "node"), *times, strict=True)]

    @cached_property
    def nodes(self) -> list[NodeRun]:
        """What became of every node."""
        nodes = self._records[2]
        threads = len(self._records[1]) // THREAD.words
        last = _integers(nodes, NODE, "last")
        times = (_times(nodes, NODE, name) for name in ("complete_ms", "fired_ms"))
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
        return len(self._records[0]) // PROCESS.words


@cache
def _pack(record: Record) -> Callable[..., bytes]:
    """Packs the fields of a record that are given."""
    return struct.Struct(record.given).pack


def _packed_wrap(group: int, main: int, costs: Costs) -> bytes:
    return _pack(WRAP)(
        *(group, main, costs.blocks_computing, costs.ready_ms),
        *(costs.first_block_ms, costs.block_ms, costs.computing_ms, costs.main_ms),
        *(costs.core_wait_ms, costs.gather_ms, costs.first_gather_ms),
    )


def _packed_node(node: Node, ranges: Sequence[int]) -> bytes:
    missing = len(node.awaits) + node.waits
    return _pack(NODE)(node.wrap, missing, *ranges, len(node.calls), node.place, node.delay_ms)


def _links(
    nodes: Sequence[Node], processes: int, tasks: int
) -> tuple[list[int], list[tuple[int, ...]], list[int]]:
    """All that nodes and tasks refer to, in a row, and where each finds its own there.

    For a node that is the tasks to gather, those to start, and other nodes; for task t, from the
    t-th place to the next, the nodes that await it.
    """
    links, ranges = list[int](), list[tuple[int, ...]]()
    awaiting = [list[int]() for _ in range(tasks)]
    for number, node in enumerate(nodes):
        for task in node.awaits:
            awaiting[task].append(number)
        begin = len(links)
        links += [processes + task for task in node.awaits if node.gathers]
        gathered = len(links)
        links += [processes + task for task in node.starts]
        started = len(links)
        links += node.calls
        links += node.then
        ranges.append((begin, gathered, gathered, started, started, len(links)))
    places = list(accumulate(map(len, awaiting), initial=len(links)))
    return [*links, *chain(*awaiting)], ranges, places


def _leading_ms(work: Work) -> float:
    """How long a function computes before it waits for the first time."""
    leading = takewhile(lambda part: part[0] != "block", work)
    return float(sum(ms for kind, ms in leading if kind != "helper"))


def _integers(records: array[int], record: Record, name: str) -> list[int]:
    return records[record.place(name) :: record.words].tolist()


def _times(records: array[int], record: Record, name: str) -> list[float]:
    return array("d", records[record.place(name) :: record.words].tobytes()).tolist()


def _address(words: array[int]) -> int:
    return words.buffer_info()[0]
