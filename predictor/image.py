"""The memory image of an execution for the kernel: records, one after another."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from chiron.predictor.execution import Execution, Node, Slots
from chiron.predictor.mechanisms.mechanism import Costs
from chiron.predictor.records import (
    CLOCK,
    ENTRY,
    GROUP,
    NODE,
    PROCESS,
    REPLICA,
    SLOT,
    THREAD,
    WRAP,
    Record,
)

WORD_BYTES = 8
#: The kernel's value for no number.
_NOBODY = -1
#: One draw, and one request with a known arrival.
_ALONE = (1, 1, 1)


class Image(NamedTuple):
    """The memory of an execution before it runs, without the functions of its tasks.

    ``places`` are the starts of the arrays, in the order of the kernel's arguments, and the end.
    ``functions`` is where the number of each task's function belongs.
    """

    words: array[int]
    places: tuple[int, ...]
    functions: slice


def image(execution: Execution, constants: Sequence[float], helpers: int) -> Image:
    """Return the image of `execution`.

    Args:
        constants: the interpreter's, in the clock's order.
        helpers: the most helpers that a task starts.
    """
    cores, wraps, processes, nodes, calls, queues, _ = execution
    slots, sizes = execution.executed, [size for _, size in processes]
    first = list(accumulate(sizes, initial=len(processes)))
    threads, links = first[-1], _Links(nodes, len(processes), slots, queues)
    mains = dict[int, int]()
    for number, (wrap, _) in enumerate(processes):
        mains.setdefault(wrap, number)
    rooms = _rooms(execution, helpers)
    waiting = 1 + threads + 2 * len(nodes)
    counts = (len(cores), len(wraps), len(processes), threads, len(nodes))
    crowd = (len(slots.each), slots.replicas)
    most = max(waiting, *rooms)
    known = (*constants, calls.call_ms, calls.invoke_ms, calls.computing_ms)
    heaps = accumulate(rooms, initial=0)
    slot_of_tasks = [n for n, slot in enumerate(slots.each) for _ in slot.tasks]
    slot_of_nodes = [n for n, slot in enumerate(slots.each) for _ in slot.nodes]
    given = [
        _pack(CLOCK)(
            *(*counts, *crowd, most, 0, calls.computed),
            *(slots.limit, slots.programs, *_ALONE, *known),
        ),
        *[_pack(GROUP)(*group) for group in zip(cores, heaps, rooms, strict=False)],
        *[_packed_wrap(group, mains[n], costs) for n, (group, costs) in enumerate(wraps)],
        *[_pack(PROCESS)(w, wraps[w][0], n) for (w, _), n in zip(processes, first, strict=False)],
        bytes(WORD_BYTES * THREAD.words * len(processes)),
        *[
            _pack(THREAD)(process, slot, 0, *places)
            for process, slot, places in zip(
                slots.processes, slot_of_tasks, pairwise(links.of_tasks), strict=True
            )
        ],
        *[
            _packed_node(node, slot, links.of_queue(node.queue), *each)
            for node, slot, each in zip(nodes, slot_of_nodes, links.of_nodes, strict=True)
        ],
        links.numbers.tobytes(),
        *_packed_slots(slots, len(processes), links.of_slots),
        bytes(WORD_BYTES * REPLICA.words * slots.replicas),
    ]
    records = zip((CLOCK, GROUP, WRAP, PROCESS, THREAD, NODE), (1, *counts), strict=False)
    scratch = (ENTRY.words * waiting, ENTRY.words * sum(rooms), most, len(processes))
    words = [record.words * count for record, count in records]
    words += [len(links.numbers), SLOT.words * crowd[0], REPLICA.words * crowd[1]]
    places = (*accumulate((*words, *scratch, len(cores)), initial=0),)
    memory = array("q", b"".join((*given, bytes(WORD_BYTES * (sum(scratch) + len(cores))))))
    begin = places[4] + THREAD.words * len(processes) + THREAD.place("function")
    return Image(memory, places, slice(begin, places[5], THREAD.words))


def _rooms(execution: Execution, helpers: int) -> list[int]:
    """Return how many threads, helpers and calls may compute in each group at once, plus 1."""
    cores, wraps, processes, nodes, *_ = execution
    rooms = [1] * len(cores)
    rooms[0] += len(nodes)  # for the computing of calls
    for node in nodes:
        if node.sends_ms > 0:
            rooms[wraps[node.wrap][0]] += 1
            rooms[wraps[node.to][0]] += 1
    for wrap, size in processes:
        rooms[wraps[wrap][0]] += 1 + size * (1 + helpers)
    return rooms


class _Links:
    """The numbers of all tasks and nodes that nodes and tasks refer to, in a row.

    ``of_nodes`` has the ranges of each node: tasks to gather, tasks to start, other nodes.
    ``of_tasks`` is where the nodes begin that await each task. Last are the first and last node of
    every queue, none at first. ``of_slots`` is where the processes of each slot begin.
    """

    def __init__(self, nodes: Sequence[Node], processes: int, slots: Slots, queues: int) -> None:
        numbers, tasks = array("q"), len(slots.processes)
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
        own = (len(slot.processes) for slot in slots.each)
        self.of_slots = list(accumulate(own, initial=len(numbers)))
        numbers.extend(chain(*(slot.processes for slot in slots.each)))
        self._first_queue = len(numbers)
        numbers.extend([_NOBODY] * 2 * queues)
        self.numbers = numbers

    def of_queue(self, queue: int | None) -> int:
        return _NOBODY if queue is None else self._first_queue + 2 * queue


@cache
def _pack(record: Record) -> Callable[..., bytes]:
    return struct.Struct(record.given).pack


def _packed_wrap(group: int, main: int, costs: Costs) -> bytes:
    return _pack(WRAP)(
        *(group, main, costs.blocks_computing, costs.ready_ms),
        *(costs.first_block_ms, costs.block_ms, costs.computing_ms, costs.main_ms),
        *(costs.core_wait_ms, costs.gather_ms, costs.first_gather_ms),
    )


def _packed_slots(slots: Slots, processes: int, places: Sequence[int]) -> Iterator[bytes]:
    """Yield the slots; the ratios of all programs' tasks are in a row."""
    own = {slot.program: len(slot.tasks) for slot in slots.each}
    before = list(accumulate((own[program] for program in range(slots.programs)), initial=1))
    for slot, ends in zip(slots.each, pairwise(places), strict=True):
        threads = processes + slot.tasks.start, processes + slot.tasks.stop
        nodes = slot.nodes.start, slot.nodes.stop
        yield _pack(SLOT)(*threads, *nodes, *ends, slot.reply, before[slot.program])


def _packed_node(node: Node, slot: int, queue: int, *ranges: int) -> bytes:
    missing = len(node.awaits) + node.waits
    places = (*ranges, len(node.calls), node.place, node.to, queue)
    return _pack(NODE)(node.wrap, slot, missing, *places, node.delay_ms, node.sends_ms)
