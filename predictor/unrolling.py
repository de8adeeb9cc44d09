"""A workflow that decides at run time, unrolled into a run; plans then place its instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.profile import FunctionProfile, Period, Profile
from chiron.workflow.trace import Instance, is_wait, task_of, unrolled, wait_of
from chiron.wrap.core.triggers import MOST_AT_ONCE

#: A process of a wrap: the numbers of the wrap and the process.
Place = tuple[int, int]
#: The task of a wrap that has the request and runs nothing for it.
_IDLE = Task(f"{wait_of(Instance())}#0", wait_of(Instance()), None)


class Run(NamedTuple):
    """The run of a workflow with a payload, as a workflow that decides nothing, and its functions.

    ``decided`` is whether it differs from the workflow, whose plan must then be expanded. ``own``
    are the functions of tasks with more or less work than is typical; the profile has both.
    """

    workflow: Workflow
    profile: Profile
    decided: bool
    own: Mapping[str, str] = {}

    def task_of(self, name: str) -> str:
        return task_of(name) if self.decided else name

    def placed(self, plan: Plan) -> tuple[Plan, Workflow]:
        """Return a plan of the workflow's tasks as a plan of the run, and the run's workflow."""
        if not self.decided:
            return plan, self.workflow
        plan = self.expanded(plan)
        tasks = tuple(_bounded(plan, self.workflow))
        if plan.wraps[0].processes == ((_IDLE.name,),):
            tasks = (_IDLE, *tasks)
        tasks = tuple(
            Task(task.name, self.own.get(task.name, task.function), task.source) for task in tasks
        )
        return plan, replace(self.workflow, tasks=tasks)

    def expanded(self, plan: Plan) -> Plan:
        """Return a plan of tasks as a plan of their instances: each in the emptiest process.

        Waits are in the main process of the first wrap. Tasks without an instance are dropped.
        """
        places: dict[str, list[Place]] = {}
        for w, wrap in enumerate(plan.wraps):
            for p, process in enumerate(wrap.processes):
                for task in process:
                    places.setdefault(task, []).append((w, p))
        found: dict[Place, list[str]] = {}
        loads = Counter[Place]()
        for name in self.workflow.by_name:
            place = min(places.get(task_of(name), [(0, 0)]), key=loads.__getitem__)
            loads[place] += 1
            found.setdefault(place, []).append(name)
        home = 0 if plan.orchestrator == "wrap" else None
        wraps = [_expanded(wrap, w, found, w == home) for w, wrap in enumerate(plan.wraps)]
        kept = [wrap for wrap in wraps if any(wrap.processes)]
        return plan.model_copy(update={"wraps": tuple(kept), "cpus": sum(w.cpus for w in kept)})


def run_of(workflow: Workflow, profile: Profile) -> Run:
    """Return the run of `workflow` with the payload of `profile`; itself if it decides nothing.

    If a payload runs no task and waits for nothing, the run waits for 0 ms.

    Raises ``no-trace`` if the profile lacks the payload, and ``unknown-function``.
    """
    if workflow.machine is None:
        return Run(workflow, profile, decided=False)
    if not profile.payloads:
        message = f"the profile does not say what {workflow.name} did: run chiron profile again"
        raise ChironError("no-trace", message, path="payloads")
    trace = profile.payloads[0].trace or (Instance(),)
    static = unrolled(workflow, trace)
    waits = {name: _wait(float(name.split()[1])) for name in static.functions if is_wait(name)}
    profile.require(name for name in static.functions if name not in waits)
    own: dict[str, str] = {}
    scaled: dict[str, FunctionProfile] = {}
    awaited = (each for each in trace if not each.dropped)
    for task, instance in zip(static.tasks, awaited, strict=True):
        if instance.task is not None and instance.wait_ms:  # it timed out
            own[task.name] = name = wait_of(instance)
            scaled[name] = _wait(instance.wait_ms)
        elif instance.work != 1.0:
            own[task.name] = name = f"{task.function}@{instance.work:g}"
            scaled[name] = _scaled(profile.functions[task.function], instance.work)
    functions = {**profile.functions, **waits, **scaled, _IDLE.function: _wait(0.0)}
    known = profile.model_copy(update={"functions": functions, "payloads": ()})
    return Run(static, known, decided=True, own=own)


def _scaled(function: FunctionProfile, work: float) -> FunctionProfile:
    """Return a function of which everything takes `work` times as long."""
    periods = (
        period.model_copy(
            update={"start_ms": work * period.start_ms, "duration_ms": work * period.duration_ms}
        )
        for period in function.periods
    )
    forked_ms = None if function.forked_ms is None else work * function.forked_ms
    times = {"latency_ms": work * function.latency_ms, "forked_ms": forked_ms}
    return function.model_copy(update={**times, "periods": tuple(periods)})


def _wait(wait_ms: float) -> FunctionProfile:
    period = Period(kind="block", start_ms=0.0, duration_ms=wait_ms)
    return FunctionProfile(latency_ms=wait_ms, periods=(period,))


def _bounded(plan: Plan, static: Workflow) -> Iterator[Task]:
    """Yield the tasks; a task waits for another if a place would run too many at once.

    It waits for the task that is MOST_AT_ONCE places before it.
    """
    client = plan.orchestrator == "client"  # it has that many calls in flight at once
    places: dict[str, Place] = {
        name: (0, 0) if client else (number, process if number == 0 else 0)
        for number, wrap in enumerate(plan.wraps)
        for process, names in enumerate(wrap.processes)
        for name in names
    }
    there: dict[Place, list[str]] = {}
    for task in static.tasks:
        if is_wait(task.function):  # a wait runs in no process
            yield task
            continue
        before = there.setdefault(places[task.name], [])
        if len(before) >= MOST_AT_ONCE:
            needed = dict.fromkeys([*task.predecessors, before[-MOST_AT_ONCE]])
            task = Task(task.name, task.function, tuple(needed))
        yield task
        before.append(task.name)


def _expanded(wrap: Wrap, number: int, found: Mapping[Place, Sequence[str]], is_home: bool) -> Wrap:
    main, *further = (tuple(found.get((number, p), ())) for p in range(len(wrap.processes)))
    processes = (main, *filter(None, further))
    if is_home and not any(processes):
        processes = ((_IDLE.name,),)
    return wrap.model_copy(update={"processes": processes})
