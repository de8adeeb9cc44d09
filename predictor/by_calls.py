"""A plan whose home or client calls the other wraps, as nodes of an execution.

There is a call for each group of tasks (`chiron.wrap.core.triggers.groups`), which returns the
objects when its last task has ended. The engine of a group's wrap, or the further process of a
group, evaluates the buckets within the group. A call carries the objects that its tasks need, and
returns those needed elsewhere; with a store, their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from chiron.predictor.execution import Node
from chiron.predictor.nodes import Ends, Nodes, Place
from chiron.predictor.paths import taken_by
from chiron.workflow.model import names_in
from chiron.wrap.core.triggers import Bucket, Group, groups


class Carried(NamedTuple):
    """An object that goes with a call, and its share of the path: half, to or from a store."""

    size_bytes: int
    share: float


class ByCalls(Nodes):
    """Builds the nodes of a plan, bucket by bucket."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._by_client = self.plan.orchestrator == "client"
        #: The groups as the home sees them: another wrap is one place.
        self._outer = groups(self.buckets, {task: self._seen(task) for task in self.place})
        self._members = dict[Group[Place], list[str]]()
        for task, group in self._outer.items():
            self._members.setdefault(group, []).append(task)
        self._answer = frozenset(names_in(self.workflow.output))
        #: By group, the nodes at which all called tasks have ended, and at which the call is back.
        self._ends = dict[Group[Place], int]()
        self._returns = dict[Group[Place], int]()

    def connect(self) -> int:
        """Build all nodes, and return the number of the reply's."""
        for index, bucket in enumerate(self.buckets):
            self._connect(index, bucket)
        return self._at_home(Node(), self.place)

    def _connect(self, index: int, bucket: Bucket[str]) -> None:
        """Add the nodes that start a bucket's tasks; one node starts the home's tasks."""
        home = Node(self.platform.stage_ms if bucket.awaits else self.platform.request_ms)
        if self._by_client:
            home.delay_ms = 0.0
        for wrap, all_tasks in self.by_place(bucket.starts, 0):
            processes, tasks = self.evaluated_by_processes(index, all_tasks)
            for own in processes:
                self._evaluated(wrap, bucket, own, gathers=False)
            if self._is_home(wrap):
                home.starts, home.place = self.numbers(tasks), 1
            elif tasks and self._outer[tasks[0]].bucket != index:
                self._evaluated(wrap, bucket, tasks, gathers=True)
            elif tasks:
                alone = ([task] for task in sorted(tasks, key=self.number.__getitem__))
                called = alone if self._by_client else [tasks]
                home.calls += [self._called(wrap, each) for each in called]
        if home.starts or home.calls:
            self.begin_when_called(home)
            self._at_home(home, bucket.awaits)

    def _evaluated(
        self, wrap: int, bucket: Bucket[str], tasks: Sequence[str], gathers: bool
    ) -> None:
        """Add the start of tasks that a wrap, or a further process of it, evaluates itself."""
        awaits, starts = self.numbers(bucket.awaits), self.numbers(tasks)
        self.add(Node(self.platform.stage_ms, wrap, awaits, gathers, starts=starts))
        if not self._is_home(wrap):
            self.made[self._ends[self._outer[tasks[0]]]].awaits += starts

    def _called(self, wrap: int, tasks: Sequence[str]) -> int:
        """Return the call of a wrap for a group that begins with `tasks`, and add its return."""
        starts, group = self.numbers(tasks), self._outer[tasks[0]]
        caller = None if self._by_client else 0
        called = Node(wrap=wrap, waits=1)
        self.called.append(self.add(called))
        brings = self._carrying(Node(waits=1), self._brought(group), (caller, wrap))
        if brings.sends_ms or brings.delay_ms:
            called.then.append(self.add(brings))
            brings.then.append(self.add(Node(wrap=wrap, waits=1, starts=starts)))
        else:
            called.starts = starts
        ended = Node(wrap=wrap, awaits=[*starts])
        self._ends[group] = self._returns[group] = self.add(ended)
        back = self._carrying(Node(waits=1), self._given(group), (wrap, caller))
        if back.sends_ms or back.delay_ms:
            self._returns[group] = self.add(back)
            ended.then.append(self._returns[group])
        return self.called[-1]

    @cached_property
    def _users(self) -> dict[str, set[Group[Place]]]:
        """By task, the groups that need its object."""
        users: dict[str, set[Group[Place]]] = {task: set() for task in self.place}
        for task in self.workflow.tasks:
            for taken in taken_by(task):
                users[taken].add(self._outer[task.name])
        return users

    def _carrying(self, node: Node, objects: Sequence[Carried], ends: Ends) -> Node:
        """Return `node`, which carries objects; transfers to and from a store are in parallel."""
        megabytes = sum(each.share * each.size_bytes for each in objects) / 1e6
        if self.way.path == "store":
            node.delay_ms += self.way.cost.ms * max((each.share for each in objects), default=0.0)
        return self.sending(node, megabytes, ends)

    def _brought(self, group: Group[Place]) -> list[Carried]:
        """Return the objects that a group needs from elsewhere; the home puts its own in a store.

        The request is never in a store: it goes with the call.
        """
        members, sizes = self._members[group], self.sizes
        if self.way.is_free:
            return []
        if self.workflow.decided:
            return [Carried(sizes.taken[task], 1.0) for task in members]
        tasks = [self.workflow.by_name[task] for task in members]
        reads = self.way.path != "store" and any(task.source is None for task in tasks)
        found = [Carried(sizes.request, 1.0)] if reads else []
        for name in dict.fromkeys(name for task in tasks for name in taken_by(task)):
            if self._outer[name] != group:
                is_there = self.way.path == "store" and not self._is_home(self.place[name][0])
                found.append(Carried(sizes.given[name], 0.5 if is_there else 1.0))
        return found

    def _given(self, group: Group[Place]) -> list[Carried]:
        """Return a group's objects needed elsewhere; the home reads its own inputs from a store."""
        members, given = self._members[group], self.sizes.given
        if self.way.is_free:
            return []
        if self.workflow.decided:
            return [Carried(given[task], 1.0) for task in members]
        found = []
        for task in members:
            users = self._users[task] - {group}
            at_home = task in self._answer or any(self._is_home(user.place[0]) for user in users)
            if users or at_home:
                stays = self.way.path == "store" and not at_home
                found.append(Carried(given[task], 0.5 if stays else 1.0))
        return found

    def _at_home(self, node: Node, awaits: Iterable[str]) -> int:
        """Add `node`, for which the home awaits its own tasks, and the returns of calls."""
        own, returns = list[int](), dict[int, None]()
        for task in awaits:
            if self._is_home(self.place[task][0]):
                own.append(self.number[task])
            else:
                returns[self._returns[self._outer[task]]] = None
        return self.awaiting(node, own, returns)

    def _is_home(self, wrap: int) -> bool:
        return wrap == 0 and not self._by_client

    def _seen(self, task: str) -> Place:
        """Return the place of a task as the home sees it: a process of its own, or another wrap.

        A client calls for every task alone.
        """
        wrap, process = self.place[task]
        if self._by_client:
            return wrap, self.number[task]
        return wrap, process if self._is_home(wrap) else 0
