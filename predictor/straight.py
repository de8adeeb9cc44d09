"""A plan whose wraps trigger each other, as nodes of an execution.

The home calls each other wrap once, to begin, and gets one notice when all its tasks have ended.
Every wrap's engine evaluates its own tasks' buckets. It sends objects, or only notices that tasks
have ended, to the wraps whose buckets await them.

References
----------
FaaSFlow (ASPLOS'22): engines of workers that trigger each other. Pheromone (NSDI'23): objects that
go straight to the workers whose buckets await them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chiron.predictor.execution import Node
from chiron.predictor.nodes import Nodes
from chiron.predictor.paths import takers

_HOME = 0


class Straight(Nodes):
    """Builds the nodes of a plan: messages to wraps, starts of tasks, and their ends."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._takers = takers(self.plan, self.workflow)
        #: By task, the wraps to notify of its end: their buckets await it, or they need its object.
        self._told = {task: {*wraps} for task, wraps in self._takers.items()}
        for bucket in self.buckets:
            wraps = {self.place[task][0] for task in bucket.starts}
            for task in bucket.awaits:
                self._told[task] |= wraps - {self.place[task][0]}
        #: By wrap, the node with which it begins, except the home.
        self._begun = {wrap: self._told_to_begin(wrap) for wrap in range(1, len(self.plan.wraps))}
        #: By task, the node at which its wrap can send its object; with the target, where it
        #: arrives.
        self._gathered = dict[str, int]()
        self._arrived = dict[tuple[str, int], int]()

    def connect(self) -> int:
        """Build all nodes, and return the number of the reply's."""
        for task, (wrap, _) in self.place.items():
            targets = sorted(self._told[task])
            if targets:
                self._gathered[task] = self.add(Node(wrap=wrap, awaits=[self.number[task]]))
                for target in targets:
                    self._arrived[task, target] = self._sent(task, wrap, target)
        self._begin()
        for index, bucket in enumerate(self.buckets[1:], start=1):
            for wrap, tasks in self.by_place(bucket.starts, 0):
                self._connect(index, wrap, tasks)
        ends = [self._ended(wrap) for wrap in self._begun]
        answer = (n for (_, wrap), n in self._arrived.items() if wrap == _HOME)
        return self._in_wrap(Node(), self._tasks_of(_HOME), [*ends, *answer])

    def _begin(self) -> None:
        """Add the start of the request: tasks of the home, and calls of other wraps."""
        home = Node(self.platform.request_ms, calls=[*self.called])
        for wrap, tasks in self.by_place(self.buckets[0].starts, 0):
            if wrap == _HOME:
                home.starts, home.place = self.numbers(tasks), 1
            else:
                self._in_wrap(Node(wrap=wrap, starts=self.numbers(tasks)), (), [self._begun[wrap]])
        self.begin_when_called(home)
        self.add(home)

    def _connect(self, index: int, wrap: int, all_tasks: Sequence[str]) -> None:
        """Add the nodes that start a wrap's tasks of a bucket that awaits others."""
        awaits, stage_ms = self.buckets[index].awaits, self.platform.stage_ms
        processes, tasks = self.evaluated_by_processes(index, all_tasks)
        for own in processes:
            numbers = self.numbers(awaits)
            self.add(Node(stage_ms, wrap, numbers, gathers=False, starts=self.numbers(own)))
        if tasks:
            needed = (self.workflow.by_name[task].predecessors for task in tasks)
            awaited = dict.fromkeys((*awaits, *(name for names in needed for name in names)))
            node = Node(stage_ms, wrap, starts=self.numbers(tasks))
            own_tasks = [task for task in awaited if self.place[task][0] == wrap]
            others = [self._arrived[t, wrap] for t in awaited if self.place[t][0] != wrap]
            if not own_tasks and wrap != _HOME:
                others.append(self._begun[wrap])
            self._in_wrap(node, own_tasks, others)

    def _told_to_begin(self, wrap: int) -> int:
        """Return the node at which a wrap knows the execution, and has the request if needed."""
        called = Node(wrap=wrap, waits=1)
        number = self.add(called)
        self.called.append(number)
        reads = any(self.workflow.by_name[task].source is None for task in self._tasks_of(wrap))
        request = Node(waits=1)
        if reads and self.sending(request, self.sizes.request / 1e6, (_HOME, wrap)).sends_ms:
            number = self.add(request)
            called.then.append(number)
        return number

    def _sent(self, task: str, wrap: int, target: int) -> int:
        """Return the node at which another wrap has a task's object, or the notice of its end."""
        megabytes = self.sizes.given[task] / 1e6 if target in self._takers[task] else 0.0
        node = Node(self.way.cost.ms, waits=1)
        number = self.add(self.sending(node, megabytes, (wrap, target)))
        self.made[self._gathered[task]].then.append(number)
        return number

    def _ended(self, wrap: int) -> int:
        """Return the node at which the home is notified that another wrap's tasks have ended."""
        return self._in_wrap(Node(self.platform.rpc_ms / 2, wrap), self._tasks_of(wrap))

    def _in_wrap(self, node: Node, tasks: Sequence[str], others: Iterable[int] = ()) -> int:
        """Add `node`, whose wrap awaits its own tasks, and other nodes."""
        leaving = [self._gathered[task] for task in tasks if task in self._gathered]
        staying = self.numbers(task for task in tasks if task not in self._gathered)
        return self.awaiting(node, staying, [*leaving, *others])

    def _tasks_of(self, wrap: int) -> tuple[str, ...]:
        return self.plan.wraps[wrap].tasks
