"""Plans for workflows that decide while they run: searched for what they did, payload by payload.

What a payload has such a workflow do is a graph of instances, which is planned like every other
(`workflow.trace`). Folded to its tasks, each of these plans is judged by all payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from predictor.unrolling import run_of, with_waits
from scheduler.layout import sized
from workflow.model import Task, Workflow
from workflow.plan import Plan
from workflow.profile import FunctionProfile, Profile
from workflow.trace import task_of

#: So many instances of a task are in a process at once (templates: wrap/instances.py).
_AT_ONCE = 40


def with_unreached(workflow: Workflow, profile: Profile) -> Profile:
    """`profile` with functions that no payload has run, which nothing is known of."""
    unknown = FunctionProfile(latency_ms=0.0, periods=())
    functions = dict.fromkeys(workflow.functions, unknown) | profile.functions
    return profile.model_copy(update={"functions": functions})


def plans_by_payload(
    workflow: Workflow,
    profile: Profile,
    plan: Callable[[Workflow, Profile], Plan],
    *,
    searched: bool,
) -> list[Plan]:
    """The plan that `plan` makes for each thing that a payload has the workflow do.

    A fixed layout is made of the first instance of each task; the others go where that is.
    """
    found: dict[tuple[Task, ...], Plan] = {}
    for share in profile.mix:
        static = run_of(workflow, share.profile)
        if static.tasks not in found:
            known = with_waits(share.profile, static).model_copy(update={"payloads": ()})
            made = plan(static if searched else outline(static), known)
            found[static.tasks] = folded(made, workflow, static, known)
    return list(dict.fromkeys(found.values()))


def sized_for_payloads(plan: Plan, profile: Profile, workflow: Workflow) -> Plan:
    """A plan whose wraps each have one task, with the memory for the payload that needs most."""
    runs = [(run_of(workflow, share.profile), share.profile) for share in profile.mix]
    wraps = []
    for wrap in plan.wraps:
        found = []
        for static, known in runs:
            names = _some([name for name in static.by_name if task_of(name) in wrap.tasks])
            if names:
                found.append(sized([names], static, known))
        memory_mib, demand = max(
            found, key=lambda each: each[0], default=(wrap.memory_mib, wrap.demand)
        )
        wraps.append(wrap.model_copy(update={"memory_mib": memory_mib, "demand": demand}))
    return plan.model_copy(update={"wraps": tuple(wraps)})


def outline(static: Workflow) -> Workflow:
    """The first instance of each task, after those of the tasks that it needed."""
    first = [task for task in static.tasks if task.name.endswith("#1") and " " not in task.function]
    kept = {task.name for task in first}
    tasks = []
    for task in first:
        needed = tuple(each.name for each in first if each.name in static.ancestors[task.name])
        source = needed if len(needed) > 1 else (needed or (None,))[0]
        tasks.append(Task(task.name, task.function, source))
    return Workflow(static.name, tuple(tasks), tuple(sorted(kept)) or None)


def folded(plan: Plan, workflow: Workflow, static: Workflow, profile: Profile) -> Plan:
    """A plan of instances as one of their tasks: each may run wherever some instance of it does.

    What did not run, as a branch that is seldom taken, is in the main process of the first wrap.
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
            memory_mib, demand = sized([_some(each) for each in wrap.processes], static, profile)
            changes = {"processes": processes, "memory_mib": memory_mib, "demand": demand}
            wraps.append(wrap.model_copy(update=changes))
    cpus = sum(wrap.cpus for wrap in wraps)
    return plan.model_copy(update={"wraps": tuple(wraps), "cpus": cpus})


def _tasks(process: Sequence[str], own: dict[str, None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(task_of(name) for name in process if task_of(name) in own))


def _some(process: Sequence[str]) -> tuple[str, ...]:
    """The instances of a process, as many of each task as can be there at once."""
    counts: dict[str, int] = {}
    kept = []
    for name in process:
        counts[task_of(name)] = count = counts.get(task_of(name), 0) + 1
        if count <= _AT_ONCE:
            kept.append(name)
    return tuple(kept)
