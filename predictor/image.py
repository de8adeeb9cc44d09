"""An execution in memory as the kernel works on it: records, one after another."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from chiron.predictor.execution import Execution, Node
from chiron.predictor.mechanisms.mechanism import Costs
from chiron.predictor.records import CLOCK, ENTRY, GROUP, NODE, PROCESS, THREAD, WRAP, Record

WORD_BYTES = 8
#: As the kernel has it.
_NOBODY = -1


class Image(NamedTuple):
    """The memory of an execution before it runs, the functions of whose tasks are not known yet.

    ``places`` is where each array begins, in the order of the kernel's arguments, and the end;
    ``functions`` is where the number of each task's function is to be.
    """

    words: array[int]
    places: tuple[int, ...]
    functions: slice


def image(execution: Execution, constants: Sequence[float], helpers: int) -> Image:
    """The image of `execution`.

    Parameters
    ----------
    constants
        Those of the interpreter, as the clock has them.
    helpers
        How many helpers a task starts at most.
    """
    cores, wraps, processes, nodes, calls, queues = execution
    sizes = [size for _, size in processes]
    first = list(accumulate(sizes, initial=len(processes)))
    threads, links = first[-1], _Links(nodes, len(processes), sum(sizes), queues)
    mains, rooms = dict[int, int](), [1] * len(cores)
    rooms[0] += len(nodes)  # for what calls compute
    for node in nodes:
        if node.sends_ms > 0:
            rooms[wraps[node.wrap][0]] += 1
            rooms[wraps[node.to][0]] += 1
    for number, (wrap, size) in enumerate(processes):
        mains.setdefault(wrap, number)
        rooms[wraps[wrap][0]] += 1 + size * (1 + helpers)
    waiting = 1 + threads + 2 * len(nodes)
    counts = (len(cores), len(wraps), len(processes), threads, len(nodes), max(waiting, *rooms))
    known = (*constants, calls.call_ms, calls.invoke_ms, calls.computing_ms)
    heaps = accumulate(rooms, initial=0)
    process_of_tasks = chain(*([number] * size for number, size in enumerate(sizes)))
    given = [
        _pack(CLOCK)(*counts, 0, calls.computed, *known),
        *[_pack(GROUP)(*group) for group in zip(cores, heaps, rooms, strict=False)],
        *[_packed_wrap(group, mains[n], costs) for n, (group, costs) in enumerate(wraps)],
        *[_pack(PROCESS)(w, wraps[w][0], n) for (w, _), n in zip(processes, first, strict=False)],
        bytes(WORD_BYTES * THREAD.words * len(processes)),
        *[
            _pack(THREAD)(process, 0, *places)
            for process, places in zip(process_of_tasks, pairwise(links.of_tasks), strict=True)
        ],
        *[
            _packed_node(node, links.of_queue(node.queue), *each)
            for node, each in zip(nodes, links.of_nodes, strict=True)
        ],
        links.numbers.tobytes(),
    ]
    records = zip((CLOCK, GROUP, WRAP, PROCESS, THREAD, NODE), (1, *counts), strict=False)
    scratch = (ENTRY.words * waiting, ENTRY.words * sum(rooms), counts[-1], len(processes))
    words = [record.words * count for record, count in records]
    places = (*accumulate((*words, len(links.numbers), *scratch, len(cores)), initial=0),)
    memory = array("q", b"".join((*given, bytes(WORD_BYTES * (sum(scratch) + len(cores))))))
    begin = places[4] + THREAD.words * len(processes) + THREAD.place("function")
    return Image(memory, places, slice(begin, places[5], THREAD.words))


class _Links:
    """All tasks and nodes that nodes and tasks refer to, by their numbers, in a row.

    ``of_nodes`` is where each node has the tasks to gather, those to start, and other nodes;
    ``of_tasks`` is where each task has the nodes that await it, up to those of the next. At the end
    every queue has its first and last node: none yet.
    """

    def __init__(self, nodes: Sequence[Node], processes: int, tasks: int, queues: int) -> None:
        numbers = array("q")
        self.of_nodes = list[tuple[int, ...]]()
        awaiting = [list[int]() for _ in range(tasks)]
        for number, node in enumerate(nodes):
            for task in node.awaits:
                awaiting[task].append(number)
            begin = len(numbers)
            numbers.extend([processes + task for task in node.awaits if node.gathers])
            gathered = len(numbers)
            numbers.extend([processes + task for task in node.starts])
            started = len(numbers)
            numbers.extend(node.calls)
            numbers.extend(node.then)
            self.of_nodes.append((begin, gathered, gathered, started, started, len(numbers)))
        self.of_tasks = list(accumulate(map(len, awaiting), initial=len(numbers)))
        numbers.extend(chain(*awaiting))
        self._first_queue = len(numbers)
        numbers.extend([_NOBODY] * 2 * queues)
        self.numbers = numbers

    def of_queue(self, queue: int | None) -> int:
        """Where a queue is."""
        return _NOBODY if queue is None else self._first_queue + 2 * queue


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


def _packed_node(node: Node, queue: int, *ranges: int) -> bytes:
    missing = len(node.awaits) + node.waits
    places = (*ranges, len(node.calls), node.place, node.to, queue)
    return _pack(NODE)(node.wrap, missing, *places, node.delay_ms, node.sends_ms)
