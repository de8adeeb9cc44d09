"""A plan as what is simulated: which engine starts which tasks when, as nodes of an execution.

The engine of a wrap runs in its main process. It gathers what the others give, and starts the tasks
whose bucket has fired. The engine of the home, which has the request, calls the other wraps: once
for each group of tasks (`workflow.triggers.groups`), whose objects are back when the last of them
has ended. Buckets within such a group are evaluated by the engine of its wrap, and those within a
group of a further process by that process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from predictor.equations import call_computing_ms
from predictor.execution import Calls, Execution, Node
from predictor.mechanisms import mechanism_of
from workflow.model import Workflow
from workflow.plan import Plan
from workflow.platform import Platform
from workflow.triggers import Bucket, Group, buckets, groups

#: Of a task: its wrap, and its process in that.
Place = tuple[int, int]


class Wired(NamedTuple):
    """An execution of a plan, the node with which the client has all, and those that are calls."""

    execution: Execution
    reply: int
    called: frozenset[int]


def wired(plan: Plan, workflow: Workflow, platform: Platform) -> Wired:
    """What happens when `plan` executes `workflow` on `platform`."""
    shared = platform.one_node and plan.cpus > platform.cpus
    each_cpus = [plan.cpus] if shared else [wrap.cpus for wrap in plan.wraps]
    wiring = _Wiring(plan, workflow, platform)
    reply = wiring.connect()
    execution = Execution(
        cores=[min(cpus, platform.cpus) for cpus in each_cpus],
        wraps=[
            (0 if shared else index, mechanism_of(wrap.mechanism).costs(platform))
            for index, wrap in enumerate(plan.wraps)
        ],
        processes=[
            (index, len(process))
            for index, wrap in enumerate(plan.wraps)
            for process in wrap.processes
        ],
        nodes=wiring.nodes,
        calls=_calls(plan, platform, shared),
    )
    return Wired(execution, reply, frozenset(wiring.called))


def _calls(plan: Plan, platform: Platform, shared: bool) -> Calls:
    """Equation (2): a call of the client is a request of its own, which costs what requests do.

    What calls compute counts where wraps share cores with them. A client sends all its calls at
    once then, and they are computed side by side; a wrap sends one after another.
    """
    computing_ms = call_computing_ms(platform) if shared else 0.0
    if plan.orchestrator != "client":
        return Calls(platform.rpc_ms, platform.invoke_ms, computing_ms)
    call_ms = max(platform.rpc_ms, platform.request_ms)
    invoke_ms = 0.0 if shared else platform.invoke_ms
    return Calls(call_ms, invoke_ms, min(computing_ms, call_ms), computing_ms > 0)


class _Wiring:
    """Makes the nodes of a plan, bucket by bucket."""

    def __init__(self, plan: Plan, workflow: Workflow, platform: Platform) -> None:
        self.nodes = list[Node]()
        self.called = list[int]()
        self._platform = platform
        self._by_client = plan.orchestrator == "client"
        self._place: dict[str, Place] = {
            task: (index, process)
            for index, wrap in enumerate(plan.wraps)
            for process, tasks in enumerate(wrap.processes)
            for task in tasks
        }
        self.number = {task: number for number, task in enumerate(self._place)}
        needs = {task.name: task.predecessors for task in workflow.tasks}
        self._buckets = buckets(needs, workflow.stages, plan.trigger)
        #: As the home sees them, to which another wrap is one place, and as each wrap sees its own.
        self._outer = groups(self._buckets, {task: self._seen(task) for task in self._place})
        self._inner = groups(self._buckets, self._place)
        #: By their groups, the nodes with which the home has back what it called for.
        self._returns = dict[Group[Place], int]()

    def connect(self) -> int:
        """Make all nodes; which of them is the reply."""
        for index, bucket in enumerate(self._buckets):
            self._connect(index, bucket)
        return self._at_home(Node(), self._place)

    def _connect(self, index: int, bucket: Bucket[str]) -> None:
        """The nodes that start a bucket's tasks; those of the home's engine are one."""
        home = Node(self._platform.stage_ms if bucket.awaits else self._platform.request_ms)
        if self._by_client:
            home.delay_ms = 0.0
        for wrap, all_tasks in self._by_place(bucket.starts, 0):
            tasks = list[str]()
            for process, own in self._by_place(all_tasks, 1):
                if process and self._inner[own[0]].bucket != index:
                    self._evaluated(wrap, bucket, own, gathers=False)
                else:
                    tasks += own
            if self._is_home(wrap):
                home.starts, home.place = self._numbers(tasks), 1
            elif tasks and self._outer[tasks[0]].bucket != index:
                self._evaluated(wrap, bucket, tasks, gathers=True)
            elif tasks:
                alone = ([task] for task in sorted(tasks, key=self.number.__getitem__))
                called = alone if self._by_client else [tasks]
                home.calls += [self._called(wrap, each) for each in called]
        if home.starts or home.calls:
            self._begin_when_called(home)
            self._at_home(home, bucket.awaits)

    def _evaluated(
        self, wrap: int, bucket: Bucket[str], tasks: Sequence[str], gathers: bool
    ) -> None:
        """What a wrap, or a further process of it, sees for itself that it can start."""
        awaits, starts = self._numbers(bucket.awaits), self._numbers(tasks)
        self._add(Node(self._platform.stage_ms, wrap, awaits, gathers, starts=starts))
        if not self._is_home(wrap):
            self.nodes[self._returns[self._outer[tasks[0]]]].awaits += starts

    def _called(self, wrap: int, tasks: Sequence[str]) -> int:
        """The call of a wrap for a group, which begins with `tasks`; and what it gives back."""
        starts = self._numbers(tasks)
        called = self._add(Node(wrap=wrap, waits=1, starts=starts))
        self.called.append(called)
        self._returns[self._outer[tasks[0]]] = self._add(Node(wrap=wrap, awaits=[*starts]))
        return called

    def _begin_when_called(self, home: Node) -> None:
        """What calls others begins with its own tasks when it has, where that takes time."""
        sending_ms = self._platform.send_ms * len(home.calls)
        if home.starts and sending_ms:
            home.then.append(self._add(Node(sending_ms, waits=1, starts=home.starts)))
            home.starts = []

    def _at_home(self, node: Node, awaits: Iterable[str]) -> int:
        """`node` where the home awaits tasks: its own, and the returns of calls for the others.

        Its own results are gathered as soon as they are there, whatever others still do.
        """
        own, returns = list[int](), set[int]()
        for task in awaits:
            if self._is_home(self._place[task][0]):
                own.append(self.number[task])
            else:
                returns.add(self._returns[self._outer[task]])
        if own and returns:
            returns.add(self._add(Node(awaits=own)))
            own = []
        node.awaits, node.waits = own, len(returns)
        number = self._add(node)
        for other in returns:
            self.nodes[other].then.append(number)
        return number

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _is_home(self, wrap: int) -> bool:
        return wrap == 0 and not self._by_client

    def _seen(self, task: str) -> Place:
        """Where a task runs as the home sees it: in one of its processes, or in another wrap.

        A client calls for every task alone.
        """
        wrap, process = self._place[task]
        if self._by_client:
            return wrap, self.number[task]
        return wrap, process if self._is_home(wrap) else 0

    def _by_place(self, tasks: Sequence[str], level: int) -> list[tuple[int, list[str]]]:
        """Tasks by their wraps (level 0) or processes (1), in order."""
        found: dict[int, list[str]] = {}
        for task in tasks:
            found.setdefault(self._place[task][level], []).append(task)
        return sorted(found.items())

    def _numbers(self, tasks: Iterable[str]) -> list[int]:
        return sorted(self.number[task] for task in tasks)
