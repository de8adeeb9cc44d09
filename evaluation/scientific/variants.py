"""The compared variants: plans of several planners, some with another trigger or path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from chiron.predictor.predict import Predictor, predict
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

#: A platform on which only the tasks take time.
_COSTS_NOTHING = Platform(
    format=1, name="costs nothing", cpus=1, one_node=True, rpc_ms=0.0, invoke_ms=0.0, ipc_ms=0.0,
    process_startup_ms=0.0, process_block_ms=0.0, pool_dispatch_ms=0.0, thread_startup_ms=0.0,
    switch_cost_ms=0.0,
)  # fmt: skip
#: The most wraps of a plan, except one-to-one's: FaaSFlow was measured with 7 workers.
WORKERS = 7
#: The step by which node memory shrinks: memory limits are multiples of it.
_STEP_MIB = 16
#: Any SLO: the strategy asks for the fastest plan.
_ANY_SLO_MS = 1e6


class Variant(NamedTuple):
    """The fastest plan of a planner, with `changes` of the plan's fields."""

    planner: str
    changes: Mapping[str, Any] = {}


#: The baseline of all: the client drives every task, like a master, and passes all data.
BASELINE = "one-to-one"
OURS = "pgp"
#: As published: objects stay in memory within a wrap, and pass to other wraps through a store.
FAASFLOW = "faasflow"
#: FaaSFlow with emitted outputs that leave only when their task ends, as if the end triggered.
BY_STAGE = "faasflow by stage"
#: DataFlower: the same groups, with emitted outputs that leave at once.
DATAFLOWER = "faasflow, direct"
_BY_WRAPS = {"orchestrator": "wrap", "trigger": "data"}
#: Label -> variant.
VARIANTS = {
    BASELINE: Variant("one-to-one"),
    "one-to-one, wraps": Variant("one-to-one", _BY_WRAPS),
    "one-to-one, store": Variant("one-to-one", {**_BY_WRAPS, "path": "store"}),
    FAASFLOW: Variant("faasflow", {"path": "store"}),
    BY_STAGE: Variant("faasflow", {"path": "store", "trigger": "stage"}),
    DATAFLOWER: Variant("faasflow"),
    OURS: Variant("pgp"),
    "pgp by stage": Variant("pgp", {"trigger": "stage"}),
}


def plans_of(
    workflow: Workflow, profile: Profile, platform: Platform, nodes: int = 1
) -> dict[str, Plan]:
    """Return the plan of every variant, with its prediction.

    The nodes' memory shrinks until FaaSFlow's groups need `nodes` of them. Otherwise a small
    workflow would be one group, and no data would pass between nodes.
    """
    made: dict[str, Plan] = {}

    def plan_of(planner: str, node_memory_mib: int | None) -> Plan:
        choices = Choices(
            planner=planner,
            mechanism="auto",
            strategy="latency",
            max_functions=WORKERS,
            node_memory_mib=node_memory_mib,
        )
        return schedule(workflow, profile, platform, _ANY_SLO_MS, choices)

    made[FAASFLOW] = plan_of(FAASFLOW, None)
    node_mib = None
    while len(made[FAASFLOW].wraps) < min(nodes, len(workflow.tasks)):
        node_mib = (node_mib or max(wrap.memory_mib for wrap in made[FAASFLOW].wraps)) - _STEP_MIB
        made[FAASFLOW] = plan_of(FAASFLOW, node_mib)
    plans = {}
    for label, variant in VARIANTS.items():
        if variant.planner not in made:
            made[variant.planner] = plan_of(variant.planner, node_mib)
        plan = made[variant.planner].model_copy(update=dict(variant.changes))
        predicted = predict(plan, workflow, profile, platform)
        plans[label] = plan.model_copy(update={"predicted": predicted})
    return plans


def between_bytes(plan: Plan, workflow: Workflow, profile: Profile) -> int:
    """Return the bytes that tasks pass to other wraps: each output once for each wrap."""
    wrap_of = {task: wrap.name for wrap in plan.wraps for task in wrap.tasks}
    given = {
        (before, wrap_of[task.name])
        for task in workflow.tasks
        for before in task.predecessors
        if wrap_of[before] != wrap_of[task.name]
    }
    functions = (profile.functions[workflow.function_of(before)] for before, _ in given)
    return sum(function.output_bytes for function in functions)


def critical_path_ms(workflow: Workflow, profile: Profile) -> float:
    """Return the length of the critical path of solo latencies, as if there were enough cores."""
    ends: dict[str, float] = {}
    for stage in workflow.stages:
        for name in stage:
            task = workflow.by_name[name]
            begin = max((ends[each] for each in task.predecessors), default=0.0)
            ends[name] = begin + profile.functions[task.function].latency_ms
    return round(max(ends.values()), 3)


def computing_ms(workflow: Workflow, profile: Profile) -> float:
    """Return the computing time of all tasks: divided by the cores it bounds any plan's latency."""
    functions = (profile.functions[task.function] for task in workflow.tasks)
    periods = (period for function in functions for period in function.periods)
    spent = (p.duration_ms * p.parallelism for p in periods if p.kind != "block")
    return round(sum(spent), 3)


def unhindered_ms(workflow: Workflow, profile: Profile, cores: int) -> float:
    """Return the latency of tasks that share `cores`, if only the tasks take time.

    With a core for each task this is the critical path. It is not a lower bound: another order on
    the cores than in turn may be faster.
    """
    tasks = tuple((task,) for stage in workflow.stages for task in stage)
    wrap = Wrap(
        name="unhindered", cpus=cores, memory_mib=1, mechanism="pool", processes=((), *tasks)
    )
    plan = Plan(format=2, workflow=workflow.name, planner="unhindered", wraps=(wrap,), cpus=cores)
    costs_nothing = _COSTS_NOTHING.model_copy(update={"cpus": cores})
    return round(Predictor(profile, costs_nothing).plan_ms(plan, workflow), 3)
