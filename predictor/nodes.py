"""The nodes of an execution under construction: what all ways to wire a plan share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chiron.predictor.execution import Node
from chiron.predictor.moments import Flow
from chiron.predictor.paths import Sizes, Way
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.wrap.core.triggers import buckets, groups

#: The wrap of a task, and its process in that wrap.
Place = tuple[int, int]
#: The sending and the receiving wrap; None is a client.
Ends = tuple[int | None, int | None]


class Nodes:
    """The nodes built so far, and their inputs.

    Args:
        way, sizes: the path of objects to other wraps, and the sizes of objects.
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
        #: The buckets as each wrap evaluates them.
        self.inner = groups(self.buckets, self.place)

    def add(self, node: Node) -> int:
        self.made.append(node)
        return len(self.made) - 1

    def await_flows(self, flows: Iterable[Flow]) -> None:
        """Add nodes for the streams that tasks await, which wraps exchange without an engine."""
        for awaited, awaits in flows:
            wrap, _ = self.place[awaited]
            is_far = any(self.place[each][0] != wrap for each in awaits)
            delay_ms = self.way.cost.ms if is_far else 0.0
            numbers = self.numbers(awaits)
            self.add(Node(delay_ms, wrap, numbers, gathers=False, starts=self.numbers([awaited])))

    def numbers(self, tasks: Iterable[str]) -> list[int]:
        return sorted(self.number[task] for task in tasks)

    def by_place(self, tasks: Iterable[str], level: int) -> list[tuple[int, list[str]]]:
        """Return tasks by their wraps (level 0) or processes (level 1), in order."""
        found: dict[int, list[str]] = {}
        for task in tasks:
            found.setdefault(self.place[task][level], []).append(task)
        return sorted(found.items())

    def evaluated_by_processes(
        self, index: int, tasks: Sequence[str]
    ) -> tuple[list[list[str]], list[str]]:
        """Return the tasks that further processes start by themselves, by process, and the rest."""
        alone, left = list[list[str]](), list[str]()
        for process, own in self.by_place(tasks, 1):
            if process and self.inner[own[0]].bucket != index:
                alone.append(own)
            else:
                left += own
        return alone, left

    def begin_when_called(self, home: Node) -> None:
        """Delay a caller's own tasks until it has sent its calls, if sending takes time."""
        sending_ms = self.platform.send_ms * len(home.calls)
        if home.starts and sending_ms:
            home.then.append(self.add(Node(sending_ms, waits=1, starts=home.starts)))
            home.starts = []

    def awaiting(self, node: Node, own: Sequence[int], others: Iterable[int]) -> int:
        """Add `node`, whose wrap awaits its `own` tasks, and `others`, which are nodes.

        Its own results are gathered as soon as they exist, independently of `others`.
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
        """Return `node`, which fires when `megabytes` have been sent by the path that objects take.

        A client's computing is not counted. A connection between two wraps sends its objects in
        turn; through the gateway or a store they go in parallel.
        """
        node.sends_ms = megabytes * self.way.cost.ms_per_mb
        wraps = [wrap for wrap in ends if wrap is not None]
        node.wrap, node.to = wraps[0], wraps[-1]
        if self.way.path == "direct":
            node.queue = self.queues.setdefault(ends, len(self.queues))
        return node
