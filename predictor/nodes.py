"""The nodes of an execution while they are made: what all ways to wire a plan have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chiron.predictor.execution import Node
from chiron.predictor.moments import Flow
from chiron.predictor.paths import Sizes, Way
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.wrap.core.triggers import buckets, groups

#: Of a task: its wrap, and its process in that.
Place = tuple[int, int]
#: What sends and what gets: wraps, or None for a client.
Ends = tuple[int | None, int | None]


class Nodes:
    """The nodes that were made, and what they are made by.

    Args:
        way, sizes: how objects get to other wraps, and how large they are.
    """

    def __init__(
        self,
        plan: Plan,
        workflow: Workflow,
        platform: Platform,
        way: Way,
        sizes: Sizes,
    ) -> None:
        self.made = list[Node]()
        self.called = list[int]()
        self.queues = dict[Ends, int]()
        self.plan, self.workflow, self.platform = plan, workflow, platform
        self.way, self.sizes = way, sizes
        self.place: dict[str, Place] = {
            task: (index, process)
            for index, wrap in enumerate(plan.wraps)
            for process, tasks in enumerate(wrap.processes)
            for task in tasks
        }
        self.number = {task: number for number, task in enumerate(self.place)}
        needs = {task.name: task.predecessors for task in workflow.tasks}
        self.buckets = buckets(needs, workflow.stages, plan.trigger)
        #: As each wrap sees them.
        self.inner = groups(self.buckets, self.place)

    def add(self, node: Node) -> int:
        self.made.append(node)
        return len(self.made) - 1

    def await_flows(self, flows: Iterable[Flow]) -> None:
        """What tasks await of streams comes to them by no engine, but from wrap to wrap."""
        for awaited, awaits in flows:
            wrap, _ = self.place[awaited]
            is_far = any(self.place[each][0] != wrap for each in awaits)
            delay_ms = self.way.cost.ms if is_far else 0.0
            numbers = self.numbers(awaits)
            self.add(Node(delay_ms, wrap, numbers, gathers=False, starts=self.numbers([awaited])))

    def numbers(self, tasks: Iterable[str]) -> list[int]:
        return sorted(self.number[task] for task in tasks)

    def by_place(self, tasks: Iterable[str], level: int) -> list[tuple[int, list[str]]]:
        """Tasks by their wraps (level 0) or processes (1), in order."""
        found: dict[int, list[str]] = {}
        for task in tasks:
            found.setdefault(self.place[task][level], []).append(task)
        return sorted(found.items())

    def evaluated_by_processes(
        self, index: int, tasks: Sequence[str]
    ) -> tuple[list[list[str]], list[str]]:
        """What further processes see for themselves that they can start, and what is left."""
        alone, left = list[list[str]](), list[str]()
        for process, own in self.by_place(tasks, 1):
            if process and self.inner[own[0]].bucket != index:
                alone.append(own)
            else:
                left += own
        return alone, left

    def begin_when_called(self, home: Node) -> None:
        """What calls others begins with its own tasks when it has, where that takes time."""
        sending_ms = self.platform.send_ms * len(home.calls)
        if home.starts and sending_ms:
            home.then.append(self.add(Node(sending_ms, waits=1, starts=home.starts)))
            home.starts = []

    def awaiting(self, node: Node, own: Sequence[int], others: Iterable[int]) -> int:
        """`node` where its wrap awaits tasks of its own, and other nodes.

        Its own results are gathered as soon as they are there, whatever others still do.
        """
        others = [*others]
        if own and others:
            others.append(self.add(Node(wrap=node.wrap, awaits=[*own])))
            own = []
        node.awaits, node.waits = [*own], len(others)
        number = self.add(node)
        for other in others:
            self.made[other].then.append(number)
        return number

    def sending(self, node: Node, megabytes: float, ends: Ends) -> Node:
        """`node`, which fires when so much has been sent by the path that objects take.

        What a client computes counts nowhere. A connection between two wraps sends one after
        another; through the gateway, and by a store, each goes by itself.
        """
        node.sends_ms = megabytes * self.way.cost.ms_per_mb
        wraps = [wrap for wrap in ends if wrap is not None]
        node.wrap, node.to = wraps[0], wraps[-1]
        if self.way.path == "direct":
            node.queue = self.queues.setdefault(ends, len(self.queues))
        return node
