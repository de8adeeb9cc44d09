"""Many executions at once: each in its own slot, in the processes of the same replicas.

Main processes, cores and connections are shared. Further processes belong to one execution: they
are forked for it, or workers of a pool, which has a worker for each slot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from chiron.predictor.execution import Execution, Node, Slot, Slots
from chiron.predictor.mechanisms.mechanism import Costs
from chiron.predictor.simulator import Work
from chiron.predictor.wiring import Wired

#: A process: the index of its replica, its slot (-1 for a main process), and its number in its
#: program.
_Key = tuple[int, int, int]


class Program(NamedTuple):
    """The program executed for a payload."""

    wraps: Sequence[str]
    made: Wired
    #: The names of its tasks, process by process, and the function of each.
    tasks: Sequence[str]
    functions: Sequence[str]
    #: The functions' work, and which of them release their lock only when they wait.
    works: Mapping[str, Work]
    cooperative: Container[str]


@dataclass(frozen=True)
class Replicas:
    """The replicas of a plan's wraps, the entry first."""

    #: The number of replicas of each wrap, and the cores of each.
    counts: Mapping[str, int]
    cores: Mapping[str, int]
    #: The number of requests that a replica of the entry executes at once; others wait there.
    limit: int
    #: The cores that all replicas share; None if each has its own.
    shared_cores: int | None = None

    @property
    def entries(self) -> int:
        """The number of replicas that get the requests."""
        return next(iter(self.counts.values()))

    @property
    def each(self) -> list[tuple[str, int]]:
        """Wrap and number of every replica, in the order of their indices."""
        return [(name, number) for name, count in self.counts.items() for number in range(count)]

    def turns(self, programs: int) -> list[tuple[int, int]]:
        """Return the turn and the program of each slot; turns go from replica to replica."""
        return [
            (place * self.entries + entry, program)
            for entry in range(self.entries)
            for program in range(programs)
            for place in range(self.limit)
        ]


def crowd(programs: Sequence[Program], replicas: Replicas) -> Execution:
    turns, each = replicas.turns(len(programs)), replicas.each
    place_of = {replica: place for place, replica in enumerate(each)}
    wraps = [
        [place_of[name, turn % replicas.counts[name]] for name in programs[number].wraps]
        for turn, number in turns
    ]
    sizes = Counter[_Key](dict.fromkeys(((place, -1, 0) for place in range(len(each))), 0))
    for slot, (_, number) in enumerate(turns):
        for key, size in _processes(programs[number], slot, wraps[slot]):
            sizes[key] += size
    numbers = {key: place for place, key in enumerate(sorted(sizes))}
    tasks, nodes, slots = list[int](), list[Node](), list[Slot]()
    queues = dict[tuple[int | None, int, int], int]()
    for slot, (_, number) in enumerate(turns):
        program, first_task, first_node = programs[number], len(tasks), len(nodes)
        own = list(_processes(program, slot, wraps[slot]))
        tasks += [numbers[key] for key, size in own for _ in range(size)]
        for node in program.made.execution.nodes:
            made = _moved(node, wraps[slot], first_task, first_node)
            if node.queue is not None:
                made.queue = queues.setdefault((node.queue, made.wrap, made.to), len(queues))
            if replicas.shared_cores is not None and not node.awaits and not node.waits:
                made.sends_ms, made.to, made.delay_ms = node.delay_ms, made.wrap, 0.0
            nodes.append(made)
        slots.append(
            Slot(
                range(first_task, len(tasks)),
                range(first_node, len(nodes)),
                [numbers[key] for key, _ in own if key[1] == slot],
                first_node + program.made.reply,
                number,
            )
        )
    shared = replicas.shared_cores
    return Execution(
        cores=[replicas.cores[name] for name, _ in each] if shared is None else [shared],
        wraps=[
            (place if shared is None else 0, _costs(programs, name))
            for place, (name, _) in enumerate(each)
        ],
        processes=[(key[0], sizes[key]) for key in numbers],
        nodes=nodes,
        calls=programs[0].made.execution.calls,
        queues=len(queues),
        slots=Slots(tasks, slots, replicas.entries, len(programs), replicas.limit),
    )


def _processes(program: Program, slot: int, wraps: Sequence[int]) -> Iterator[tuple[_Key, int]]:
    """Yield the processes of a program in a slot, with their numbers of tasks; mains come first."""
    seen = set[int]()
    for number, (wrap, size) in enumerate(program.made.execution.processes):
        is_main = wrap not in seen
        seen.add(wrap)
        yield (wraps[wrap], -1, 0) if is_main else (wraps[wrap], slot, number), size


def _moved(node: Node, wraps: Sequence[int], task: int, number: int) -> Node:
    """Return `node` in another slot, whose tasks and nodes begin with these numbers."""
    return replace(
        node,
        wrap=wraps[node.wrap],
        to=wraps[node.to],
        awaits=[task + each for each in node.awaits],
        starts=[task + each for each in node.starts],
        calls=[number + each for each in node.calls],
        then=[number + each for each in node.then],
    )


def _costs(programs: Sequence[Program], name: str) -> Costs:
    """Return the costs of the processes of a wrap; 0 if no program has it."""
    for program in programs:
        if name in program.wraps:
            return program.made.execution.wraps[program.wraps.index(name)][1]
    return Costs(0.0)
