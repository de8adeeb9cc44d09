"""Plans for workflows that decide at run time, searched payload by payload.

A run with a payload is a graph of instances, which is planned like every other graph
(`chiron.workflow.trace`). The plan is folded from instances to tasks, and judged by all payloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from chiron.predictor.unrolling import Run
from chiron.scheduler.layout import sized
from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Demand, Plan
from chiron.workflow.trace import is_wait, task_of
from chiron.wrap.core.triggers import MOST_AT_ONCE


def outline(static: Workflow) -> Workflow:
    """Return the first instance of each task, after those of the tasks that it needed."""
    first = [
        task for task in static.tasks if task.name.endswith("#1") and not is_wait(task.function)
    ]
    kept = {task.name for task in first}
    tasks = []
    for task in first:
        needed = tuple(each.name for each in first if each.name in static.ancestors[task.name])
        source = needed if len(needed) > 1 else (needed or (None,))[0]
        tasks.append(Task(task.name, task.function, source))
    return Workflow(static.name, tuple(tasks), tuple(sorted(kept)) or None)


def complete(run: Run, workflow: Workflow) -> Run:
    """Return `run`, followed by the tasks of `workflow` that it lacks, one after another."""
    tasks = list(run.workflow.tasks)
    placed = {task_of(task.name) for task in tasks}
    for task in workflow.tasks:
        if task.name not in placed:
            tasks.append(Task(f"{task.name}#0", task.function, tasks[-1].name))
    return run._replace(workflow=replace(run.workflow, tasks=tuple(tasks)))


def folded(plan: Plan, workflow: Workflow, runs: Iterable[Run]) -> Plan:
    """Return a plan of instances as a plan of tasks: a task may run wherever an instance does.

    A task that did not run, as on a rare branch, goes to the main process of the first wrap. Every
    wrap has memory for each of `runs`.
    """
    own = dict.fromkeys(workflow.by_name)
    placed = {task_of(name) for wrap in plan.wraps for name in wrap.tasks}
    unplaced = tuple(task for task in own if task not in placed)
    wraps = []
    for number, wrap in enumerate(plan.wraps):
        main, *further = (_tasks(process, own) for process in wrap.processes)
        if number == 0:
            main += unplaced
        processes = (main, *filter(None, further))
        if any(processes):
            wraps.append(wrap.model_copy(update={"processes": processes}))
    cpus = sum(wrap.cpus for wrap in wraps)
    plan = plan.model_copy(update={"wraps": tuple(wraps), "cpus": cpus})
    return with_memory(plan, workflow, runs)


def with_memory(plan: Plan, workflow: Workflow, runs: Iterable[Run]) -> Plan:
    """Return the plan with wraps that have memory for each of `runs`."""
    loaded = {wrap.name: {workflow.function_of(task) for task in wrap.tasks} for wrap in plan.wraps}
    sizes: dict[str, list[tuple[int, Demand]]] = {wrap.name: [] for wrap in plan.wraps}
    mechanisms = {wrap.name: wrap.mechanism for wrap in plan.wraps}
    for run in runs:
        processes = {wrap.name: wrap.processes for wrap in run.expanded(plan).wraps}
        for name, its in loaded.items():
            some = [_some(process, run) for process in processes.get(name, ((),))]
            mechanism = mechanisms[name]
            sizes[name].append(sized(some, run.workflow, run.profile, its, mechanism))
    wraps = []
    for wrap in plan.wraps:
        memory_mib, demand = max(sizes[wrap.name], key=lambda size: (size[0], size[1].cpu_ms))
        wraps.append(wrap.model_copy(update={"memory_mib": memory_mib, "demand": demand}))
    return plan.model_copy(update={"wraps": tuple(wraps)})


def _tasks(process: Sequence[str], own: dict[str, None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(task_of(name) for name in process if task_of(name) in own))


def _some(process: Sequence[str], run: Run) -> tuple[str, ...]:
    """Return the instances in a process, of each task as many as can exist at once.

    Tasks in a wrap that is idle in `run` are no instances.
    """
    counts: dict[str, int] = {}
    kept = []
    for name in filter(run.workflow.by_name.__contains__, process):
        counts[task_of(name)] = count = counts.get(task_of(name), 0) + 1
        if count <= MOST_AT_ONCE:
            kept.append(name)
    return tuple(kept)
