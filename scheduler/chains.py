"""Chains: processes in which tasks run one after another, so that none waits for another's GIL."""

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
    """Processes for `tasks`, of which those that may run at once have one each.

    A task goes on in the process of the one that gives it most, where that is free: where all that
    run there have ended before, since it needs them, if only through others; else in the first one
    that is. This is greedy: there may be more processes than tasks that can ever be at once.

    Args:
        tasks: in topological order.
        size_of: how much a task gives.
        task_of: what a task is an instance of. Those of one share `most` processes where they are
            more.
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
    """A process: its tasks, those of them that none of the others needs, and what they are of."""

    tasks: list[str]
    running: set[str]
    instances_of: set[str]
