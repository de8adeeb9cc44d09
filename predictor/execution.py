"""What is simulated: an execution of a workflow, or a part of one, as nodes that start tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chiron.predictor.mechanisms.mechanism import Costs


class Calls(NamedTuple):
    """What calls cost: equation (2).

    Each leaves `invoke_ms` after the one before it and arrives `call_ms` later. At the end it
    computes for `computing_ms` in the first group of cores; where it is `computed`, it arrives when
    it has done so, else without regard to that.
    """

    call_ms: float = 0.0
    invoke_ms: float = 0.0
    computing_ms: float = 0.0
    computed: bool = False


@dataclass
class Node:
    """Something that happens when all that it waits for has.

    Where it waits for nothing, it fires `delay_ms` after the beginning.
    """

    #: When all has happened, and the results are gathered, it fires so much later.
    delay_ms: float = 0.0
    #: The wrap in which it starts tasks, whose results it gathers, or which sends.
    wrap: int = 0
    #: Tasks, by their numbers; whether results of further processes have to be gathered.
    awaits: list[int] = field(default_factory=list)
    gathers: bool = True
    #: For how many other nodes it waits, besides. One that is called waits for one.
    waits: int = 0
    #: Tasks of the wrap, process by process.
    starts: Sequence[int] = ()
    #: Nodes that it calls, and how many T_INV the first of these waits.
    calls: list[int] = field(default_factory=list)
    place: int = 0
    #: Nodes that wait for it.
    then: list[int] = field(default_factory=list)
    #: Then it fires when it has sent something, for which its wrap and the one that it goes to both
    #: compute for so long. Of what is in one queue, each is sent after that before it.
    sends_ms: float = 0.0
    to: int = 0
    queue: int | None = None


class Slot(NamedTuple):
    """Memory of one execution: its tasks and nodes, and the processes that are new for each."""

    tasks: range
    nodes: range
    processes: Sequence[int]
    #: The node with which the client has all.
    reply: int
    #: What is executed in it.
    program: int = 0


class Slots(NamedTuple):
    """How many executions there can be at once: slots by replica, and by program.

    Attributes:
        processes: the process of each task.
        replicas, limit: how many replicas get the requests in turn, and how many each executes at
            once: it has so many slots of each of the programs.
    """

    processes: Sequence[int]
    each: Sequence[Slot]
    replicas: int = 1
    programs: int = 1
    limit: int = 1


class Execution(NamedTuple):
    """Processes of wraps, and what happens in them when."""

    #: Of each group of cores, at least 1.
    cores: Sequence[int]
    #: The group of each wrap, and what its processes cost.
    wraps: Sequence[tuple[int, Costs]]
    #: The wrap of each process, and how many tasks it has. The first of a wrap is its main process.
    #: Tasks are numbered from process to process.
    processes: Sequence[tuple[int, int]]
    #: What happens; their numbers are their places.
    nodes: Sequence[Node]
    calls: Calls = Calls()
    #: How many there are of what is sent.
    queues: int = 0
    #: None where there is one execution alone, of which nobody awaits the reply.
    slots: Slots | None = None

    @property
    def executed(self) -> Slots:
        """The slots; that of one execution has all."""
        if self.slots is not None:
            return self.slots
        sizes = [size for _, size in self.processes]
        tasks = [number for number, size in enumerate(sizes) for _ in range(size)]
        slot = Slot(range(len(tasks)), range(len(self.nodes)), (), -1)
        return Slots(tasks, [slot])
