"""Chains: processes in which tasks run one after another, so that no task waits for the GIL."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from chiron.scheduler.layout import GetOn
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Processes


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
