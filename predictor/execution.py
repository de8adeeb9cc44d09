"""The input of a simulation: an execution of a workflow, or of a part, as nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chiron.predictor.mechanisms.mechanism import Costs


class Calls(NamedTuple):
    """The costs of calls by equation (2).

    Each call leaves `invoke_ms` after the call before it and arrives `call_ms` later. At its end it
    computes for `computing_ms` in the first group of cores. If `computed`, it arrives only when
    that is done.
    """

    call_ms: float = 0.0
    invoke_ms: float = 0.0
    computing_ms: float = 0.0
    computed: bool = False


@dataclass
class Node:
    """An event that happens after everything that it waits for.

    A node that waits for nothing fires `delay_ms` after the beginning.
    """

    #: The delay from the last awaited event and the gathering of results until it fires.
    delay_ms: float = 0.0
    #: The wrap that starts its tasks, gathers its results, or sends.
    wrap: int = 0
    #: The awaited tasks, by their numbers; whether results of further processes are gathered.
    awaits: list[int] = field(default_factory=list)
    gathers: bool = True
    #: The number of other nodes that it waits for; 1 for a called node.
    waits: int = 0
    #: The tasks of the wrap to start, process by process.
    starts: Sequence[int] = ()
    #: The nodes that it calls, and how many T_INV the first call waits.
    calls: list[int] = field(default_factory=list)
    place: int = 0
    #: The nodes that wait for it.
    then: list[int] = field(default_factory=list)
    #: If it sends, it fires after that: its wrap and the receiving wrap both compute that long. A
    #: queue sends its nodes one after another.
    sends_ms: float = 0.0
    to: int = 0
    queue: int | None = None


class Slot(NamedTuple):
    """The memory of one execution: its tasks, its nodes, and its own processes."""

    tasks: range
    nodes: range
    processes: Sequence[int]
    #: The node at which the client has the reply.
    reply: int
    program: int = 0


class Slots(NamedTuple):
    """The executions that fit at once: slots by replica, and by program.

    Attributes:
        processes: the process of each task.
        replicas, limit: the number of replicas that get the requests in turn, and the requests
            that each executes at once: its slots of each of the programs.
    """

    processes: Sequence[int]
    each: Sequence[Slot]
    replicas: int = 1
    programs: int = 1
    limit: int = 1


class Execution(NamedTuple):
    """Processes of wraps, and the events in them, as nodes."""

    #: The cores of each group, at least 1.
    cores: Sequence[int]
    #: The group of each wrap, and the costs of its processes.
    wraps: Sequence[tuple[int, Costs]]
    #: The wrap of each process, and its number of tasks. The first process of a wrap is its main
    #: process. Tasks are numbered from process to process.
    processes: Sequence[tuple[int, int]]
    #: The nodes, numbered by their positions.
    nodes: Sequence[Node]
    calls: Calls = Calls()
    queues: int = 0
    #: None for a single execution, whose reply no client awaits.
    slots: Slots | None = None

    @property
    def executed(self) -> Slots:
        """The slots; a single execution has one slot with everything."""
        if self.slots is not None:
            return self.slots
        sizes = [size for _, size in self.processes]
        tasks = [number for number, size in enumerate(sizes) for _ in range(size)]
        slot = Slot(range(len(tasks)), range(len(self.nodes)), (), -1)
        return Slots(tasks, [slot])
