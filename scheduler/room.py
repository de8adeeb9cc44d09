"""The capacity of a wrap as FaaSFlow counts it: contention, storage quota and memory.

A worker of FaaSFlow is a wrap here, and a container is one of its processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from chiron.predictor.unrolling import Run
from chiron.scheduler.conflicts import Conflicts
from chiron.scheduler.layout import GetOn, sized
from chiron.scheduler.memory import IDLE_MEMORY_MIB
from chiron.scheduler.traffic import Traffic
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Processes
from chiron.workflow.platform import Platform
from chiron.workflow.trace import is_wait

if TYPE_CHECKING:
    from chiron.scheduler.limits import Limits  # which imports the planners


#: The part of a container's memory reserved for bursts (mu), FaaSFlow's default.
RESERVED = 0.2
_MIB = 2**20


@dataclass(frozen=True)
class Room:
    """The tasks of a workflow, and the limits of a wrap that runs some of them."""

    #: The run of the workflow with a payload, completed so that every task occurs.
    run: Run
    #: The transfers between tasks, with all payloads.
    traffic: Traffic
    platform: Platform
    conflicts: Conflicts
    limits: Limits

    def holds(self, tasks: Sequence[str], per_core: int = 1) -> bool:
        """Return whether a wrap with `per_core` processes a core has capacity for `tasks`.

        Processes count only if wraps have cores of their own: on one node another wrap adds none.
        """
        functions = set(map(self._function_of, tasks))
        if any(a in functions and b in functions for a, b in self.conflicts.wrap):
            return False
        if self.kept_mib(tasks) > self.quota_mib(tasks):
            return False
        platform, most_mib = self.platform, self.limits.node_memory_mib
        if not platform.one_node and len(self.processes(tasks)) > per_core * platform.cpus:
            return False
        return most_mib is None or self._memory_mib(tasks) <= most_mib

    def quota_mib(self, tasks: Iterable[str]) -> float:
        """Return Quota(G), the memory that the containers of `tasks` have left for objects.

        That is MEM(v) - S - mu for each instance, Map(v): its memory, less its usage and the
        reserve for bursts.
        """
        return sum(map(self._reclaimed_mib.__getitem__, tasks))

    def kept_mib(self, tasks: Sequence[str]) -> float:
        """Return the objects that a wrap of `tasks` keeps: all that its tasks exchange, at once."""
        inside, takers = frozenset(tasks), self.traffic.takers
        kept = (task for task in tasks if not inside.isdisjoint(takers.get(task, ())))
        return sum(map(self.traffic.given_bytes.__getitem__, kept)) / _MIB

    def objects_mib(self, tasks: Sequence[str]) -> int:
        """Return the same in whole units of memory limits."""
        return int(-(-self.kept_mib(tasks) // 16) * 16)

    def processes(self, tasks: Iterable[str]) -> Processes:
        """Return the processes of a wrap of `tasks`, with their instances.

        Instances that may run at once have a process each. But the instances of one task, Map(v),
        use as many as there are cores, as containers are reused, Scale(v).
        """
        inside, static = frozenset(tasks), self.run.workflow
        functions = self.run.profile.functions

        def get_on(some: Sequence[str], others: Sequence[str]) -> bool:
            uses = static.function_of
            return self.conflicts.get_on(map(uses, some), map(uses, others))

        return chains(
            (name for name, task in self._task_of.items() if task in inside),
            static,
            size_of=lambda name: functions[static.function_of(name)].given_bytes,
            task_of=self._task_of.__getitem__,
            get_on=get_on,
            most=self.platform.cpus,
        )

    @cached_property
    def place_of(self) -> dict[str, int]:
        """The index of every task in topological order."""
        return {task: place for place, task in enumerate(dict.fromkeys(self._task_of.values()))}

    @cached_property
    def units(self) -> list[tuple[str, ...]]:
        """The tasks in topological order; tasks that have to share a wrap are one unit."""
        of = {function: unit for unit in self.conflicts.units() for function in unit}
        units: dict[tuple[str, ...], list[str]] = {}
        for task in self.place_of:
            function = self._function_of(task)
            unit = of[function]
            units.setdefault(unit if len(unit) > 1 else (task, ""), []).append(task)
        return list(map(tuple, units.values()))

    def is_measured(self, task: str) -> bool:
        """Return whether the transfers of `task` were measured."""
        return self._sizes_are_known and task in self.traffic.instances

    @cached_property
    def _sizes_are_known(self) -> bool:
        functions = self.run.profile.functions.values()
        return any(each.given_bytes or each.input_bytes is not None for each in functions)

    @cached_property
    def _task_of(self) -> dict[str, str]:
        """The task of every instance, in topological order."""
        static = self.run.workflow
        names = chain.from_iterable(static.stages)
        tasks = (name for name in names if not is_wait(static.function_of(name)))
        return {name: self.run.task_of(name) for name in tasks}

    @cached_property
    def _first_of(self) -> dict[str, str]:
        return {task: name for name, task in reversed(self._task_of.items())}

    def _function_of(self, task: str) -> str:
        return self.run.workflow.function_of(self._first_of[task])

    @cached_property
    def _reclaimed_mib(self) -> dict[str, float]:
        """The memory that the containers of each task have left."""
        found = {}
        for task, name in self._first_of.items():
            memory_mib, demand = sized([[name]], self.run.workflow, self.run.profile)
            taken_mib = IDLE_MEMORY_MIB + demand.imports_mib + demand.memory_mib
            left_mib = max(0.0, (1 - RESERVED) * memory_mib - taken_mib)
            found[task] = left_mib * max(1.0, self.traffic.instances.get(task, 0.0))
        return found

    def _memory_mib(self, tasks: Sequence[str]) -> int:
        memory_mib, _ = sized(self.processes(tasks), self.run.workflow, self.run.profile)
        return memory_mib + self.objects_mib(tasks)


def chains(
    tasks: Iterable[str],
    workflow: Workflow,
    *,
    size_of: Callable[[str], int],
    task_of: Callable[[str], str],
    get_on: GetOn,
    most: int,
) -> Processes:
    """Return processes for `tasks`, in which tasks that may run at once are separate.

    A task continues in the free process of the predecessor that gives it most data, else in the
    first free process. A process is free if all its tasks end before, as the task needs them, at
    least indirectly. This is greedy: there may be more processes than tasks that can run at once.

    Args:
        tasks: in topological order.
        size_of: the size of a task's output.
        task_of: the task of an instance. Instances of one task share at most `most` processes.
        get_on: whether two processes may be one, by the tasks of each.
    """
    found = list[_Chain]()
    for name in tasks:
        ended, task = workflow.ended_before[name], task_of(name)
        fitting = [each for each in found if get_on(each.tasks, [name])]
        free = [each for each in fitting if each.running <= ended]
        shared = [each for each in fitting if task in each.instances_of]
        if free:
            given = sorted(workflow.by_name[name].predecessors, key=size_of, reverse=True)
            after = (each for before in given for each in free if before in each.running)
            taken = next(after, free[0])
            taken.running.clear()
        elif len(shared) >= most:
            taken = min(shared, key=lambda each: len(each.running))
        else:
            taken = _Chain([], set(), set())
            found.append(taken)
        taken.tasks.append(name)
        taken.running.add(name)
        taken.instances_of.add(task)
    return tuple(tuple(each.tasks) for each in found)


@dataclass
class _Chain:
    """A process: its tasks, its last tasks, which no other needs, and the tasks of instances."""

    tasks: list[str]
    running: set[str]
    instances_of: set[str]
