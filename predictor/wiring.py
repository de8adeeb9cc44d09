"""A plan as nodes of an execution: which engine starts which tasks when.

The engine of a wrap runs in its main process. It gathers results, and starts the tasks whose bucket
has fired. Either the home's engine, which has the request, calls the other wraps
(`chiron.predictor.by_calls`). Or, if wraps can reach each other, all engines trigger each other
(`chiron.predictor.straight`).
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from chiron.predictor.by_calls import ByCalls
from chiron.predictor.equations import call_computing_ms
from chiron.predictor.execution import Calls, Execution
from chiron.predictor.mechanisms import mechanism_of
from chiron.predictor.moments import Flow
from chiron.predictor.paths import Sizes, Way, as_called, way_of, with_bodies
from chiron.predictor.straight import Straight
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.platform import IDLE_MS, Idle, Platform
from chiron.workflow.profile import Profile


class Wired(NamedTuple):
    """An execution of a plan, its node at which the client has the reply, and its call nodes.

    ``request_ms`` is the time of the request's own way, there and back.
    """

    execution: Execution
    reply: int
    called: frozenset[int]
    request_ms: float


def wired(
    plan: Plan,
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    flows: Iterable[Flow] = (),
    shared: bool | None = None,
) -> Wired:
    """Return the execution of `workflow` by `plan` on `platform`, with objects as in `profile`.

    `flows` are the streams that tasks await while they run. `shared`: all wraps share the cores of
    a node; by default, if the wraps have more CPUs than the node has cores.

    Raises ``unknown-path``.
    """
    if shared is None:
        shared = platform.one_node and plan.cpus > platform.cpus
    each_cpus = [plan.cpus] if shared else [wrap.cpus for wrap in plan.wraps]
    way = way_of(plan.path, workflow, platform, plan.orchestrator)
    platform = as_called(as_idle(platform, plan, workflow, profile), way)
    sizes = Sizes(workflow, profile)
    if plan.orchestrator == "wrap":
        platform = with_bodies(platform, workflow, sizes)
    wires = Straight if way.straight else ByCalls
    wiring = wires(plan, workflow, platform, way, sizes)
    reply = wiring.connect()
    wiring.await_flows(flows)
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
        nodes=wiring.made,
        calls=_calls(plan, platform, way, shared),
        queues=len(wiring.queues),
    )
    request_ms = platform.request_ms if plan.orchestrator == "wrap" else 0.0
    return Wired(execution, reply, frozenset(wiring.called), request_ms)


def as_idle(platform: Platform, plan: Plan, workflow: Workflow, profile: Profile) -> Platform:
    """Return `platform` with its constants after idling as long as these functions run.

    A sandbox idles from request to request, as long as all functions and a client's calls together.
    The engine of a wrap idles between stages, as long as a mean function.
    """
    if not platform.idle:
        return platform
    known = profile.functions
    each_ms = [known[task.function].latency_ms for task in workflow.tasks if task.function in known]
    one_ms = fmean(each_ms or [0.0])
    others = len(each_ms[1:]) if plan.orchestrator == "client" else 0
    whole_ms = sum(each_ms) + others * platform.request_ms
    after_ms: dict[Idle, float] = {
        "request_ms": whole_ms,
        "stage_ms": one_ms,
        "rpc_ms": whole_ms,
    }
    constants: dict[str, float] = {
        name: getattr(platform, name) + more_ms * min(1.0, after_ms[name] / IDLE_MS)
        for name, more_ms in platform.idle.items()
    }
    return platform.model_copy(update=constants)


def _calls(plan: Plan, platform: Platform, way: Way, shared: bool) -> Calls:
    """Return the costs of calls by equation (2); a client's call costs as much as a request.

    If wraps trigger each other, a call is one way only. Its computing counts if wraps share cores
    with it. A client then sends all calls at once: client, gateway and wrap compute in turn for all
    of a call. A wrap sends one call after another.
    """
    computing_ms = call_computing_ms(platform) if shared else 0.0
    if way.straight:
        return Calls(platform.rpc_ms / 2, platform.invoke_ms, computing_ms / 2)
    if plan.orchestrator != "client":
        return Calls(platform.rpc_ms, platform.invoke_ms, computing_ms)
    call_ms = max(platform.rpc_ms, platform.request_ms)
    if shared:
        return Calls(call_ms, computing_ms=call_ms, computed=call_ms > 0)
    return Calls(call_ms, platform.invoke_ms)
