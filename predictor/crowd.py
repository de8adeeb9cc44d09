"""Many executions at once: each in a slot of its own, in the processes of the same replicas.

Main processes, cores and connections are shared. Further processes are an execution's own: they are
forked for it, or workers of a pool, which has as many for each place as there are slots.
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

#: A process: the place of its replica, its slot, and its number in its program. Main processes have
#: no slot.
_Key = tuple[int, int, int]


class Program(NamedTuple):
    """What is executed for a payload."""

    #: The names of its wraps.
    wraps: Sequence[str]
    made: Wired
    #: The names of its tasks, process by process, and the function of each.
    tasks: Sequence[str]
    functions: Sequence[str]
    #: What these do, and which of them let their lock go only when they wait.
    works: Mapping[str, Work]
    cooperative: Container[str]


@dataclass(frozen=True)
class Replicas:
    """The replicas of a plan's wraps, the entry first."""

    #: How many there are of a wrap, and the cores of each.
    counts: Mapping[str, int]
    cores: Mapping[str, int]
    #: How many requests a replica of the entry executes at once; the others wait there.
    limit: int
    #: The cores that all share; None where each replica has its own.
    shared_cores: int | None = None

    @property
    def entries(self) -> int:
        """How many replicas get the requests."""
        return next(iter(self.counts.values()))

    @property
    def each(self) -> list[tuple[str, int]]:
        """Wrap and number of every replica, in the order of their places."""
        return [(name, number) for name, count in self.counts.items() for number in range(count)]

    def turns(self, programs: int) -> list[tuple[int, int]]:
        """For each slot its turn and its program; turns go from replica to replica."""
        return [
            (place * self.entries + entry, program)
            for entry in range(self.entries)
            for program in range(programs)
            for place in range(self.limit)
        ]


def crowd(programs: Sequence[Program], replicas: Replicas) -> Execution:
    """All that can be executed at once of `programs` on `replicas`."""
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
    """The processes of a program in a slot, and how many tasks each has; mains come first."""
    seen = set[int]()
    for number, (wrap, size) in enumerate(program.made.execution.processes):
        is_main = wrap not in seen
        seen.add(wrap)
        yield (wraps[wrap], -1, 0) if is_main else (wraps[wrap], slot, number), size


def _moved(node: Node, wraps: Sequence[int], task: int, number: int) -> Node:
    """`node` of another slot, whose tasks and nodes begin with these numbers."""
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
    """What the processes of a wrap cost; nothing if no program has it."""
    for program in programs:
        if name in program.wraps:
            return program.made.execution.wraps[program.wraps.index(name)][1]
    return Costs(0.0)
