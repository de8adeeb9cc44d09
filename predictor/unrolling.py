"""A workflow that decides while it runs, as what it did: a plan of it is one of its instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from workflow.errors import ChironError
from workflow.model import Task, Workflow
from workflow.plan import Plan, Wrap
from workflow.profile import FunctionProfile, Period, Profile
from workflow.trace import Instance, task_of, unrolled, wait_of

#: Of a wrap that has the request and runs nothing for it.
_NOTHING = Instance()


def as_run(plan: Plan, workflow: Workflow, profile: Profile) -> tuple[Plan, Workflow, Profile]:
    """All three as they are; of a workflow that decides, as the payload of `profile` has it run.

    Raises ``no-trace`` where the profile does not say what it did, and ``unknown-function``.
    """
    if workflow.machine is None:
        return plan, workflow, profile
    static = run_of(workflow, profile)
    plan = expanded(plan, static)
    if plan.wraps[0].processes == ((f"{wait_of(_NOTHING)}#0",),):
        nothing = Task(plan.wraps[0].processes[0][0], wait_of(_NOTHING), None)
        static = Workflow(static.name, (nothing, *static.tasks), static.output)
    return plan, static, with_waits(profile, static)


def run_of(workflow: Workflow, profile: Profile) -> Workflow:
    """What a workflow that decides did with the payload of `profile`."""
    trace: Sequence[Instance] = profile.payloads[0].trace if profile.payloads else ()
    if not trace:
        message = f"the profile does not say what {workflow.name} did: run chiron profile again"
        raise ChironError("no-trace", message, path="payloads")
    return unrolled(workflow, trace)


def with_waits(profile: Profile, static: Workflow) -> Profile:
    """`profile` with the functions that stand for waits."""
    waits = {name: _wait(float(name.split()[1])) for name in static.functions if " " in name}
    profile.require(name for name in static.functions if name not in waits)
    return profile.model_copy(update={"functions": {**profile.functions, **waits}})


def _wait(wait_ms: float) -> FunctionProfile:
    period = Period(kind="block", start_ms=0.0, duration_ms=wait_ms)
    return FunctionProfile(latency_ms=wait_ms, periods=(period,))


def expanded(plan: Plan, static: Workflow) -> Plan:
    """A plan of tasks as one of their instances: each in the process that has the fewest so far.

    Waits are in the main process of the first wrap. What has no instance is left out.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for w, wrap in enumerate(plan.wraps):
        for p, process in enumerate(wrap.processes):
            for task in process:
                places.setdefault(task, []).append((w, p))
    found: dict[tuple[int, int], list[str]] = {}
    loads = Counter[tuple[int, int]]()
    for name in static.by_name:
        place = min(places.get(task_of(name), [(0, 0)]), key=loads.__getitem__)
        loads[place] += 1
        found.setdefault(place, []).append(name)
    home = 0 if plan.orchestrator == "wrap" else None
    wraps = [_expanded(wrap, w, found, w == home) for w, wrap in enumerate(plan.wraps)]
    kept = [wrap for wrap in wraps if any(wrap.processes)]
    return plan.model_copy(update={"wraps": tuple(kept), "cpus": sum(w.cpus for w in kept)})


def _expanded(
    wrap: Wrap, number: int, found: Mapping[tuple[int, int], Sequence[str]], is_home: bool
) -> Wrap:
    main, *further = (tuple(found.get((number, p), ())) for p in range(len(wrap.processes)))
    processes = (main, *filter(None, further))
    if is_home and not any(processes):
        processes = ((f"{wait_of(_NOTHING)}#0",),)
    return wrap.model_copy(update={"processes": processes})
