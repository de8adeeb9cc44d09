"""A layout: which task runs in which process of which wrap, before it is made a plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

from workflow.model import Workflow
from workflow.plan import Demand, Orchestrator, Plan, Processes, Wrap
from workflow.profile import FunctionProfile, Profile

#: The wraps of one stage, each with its processes.
StageLayout = tuple[Processes, ...]
#: For each stage the wraps that take part: wrap k of one stage and of the next are one sandbox.
Layout = tuple[StageLayout, ...]

#: What a wrap needs before it runs anything: Python, Flask and waitress (34 MiB measured on
#: OpenFaaS with the watchdog), with room to breathe, since a limit that is hit kills.
BASE_MEMORY_MIB = 96
#: Of which an idle wrap takes so much whose functions import nothing.
IDLE_MEMORY_MIB = 44
#: Pages that a further process does not share with its parent.
PROCESS_MEMORY_MIB = 16


def plan_from_layout(
    layout: Layout,
    workflow: Workflow,
    profile: Profile,
    *,
    planner: str,
    mechanism: str,
    orchestrator: Orchestrator = "wrap",
    node_cpus: int | None = None,
    prefix: str = "",
    names: Sequence[str] | None = None,
) -> Plan:
    """The plan, not yet predicted, that deploys `layout`.

    Every wrap gets as many CPUs as it runs processes at once (Chiron §6: a whole CPU is the unit
    of allocation) but no more than a node has, where that is known, and memory for all functions
    that it runs at once. Wraps are called by `names`, or else by the workflow, `prefix` and number.
    """
    count = max(len(stage) for stage in layout)
    wraps = [
        _wrap(
            names[index] if names else wrap_name(workflow.name, f"{prefix}wrap{index + 1}"),
            mechanism,
            [stage[index] for stage in layout if any(stage[index:][:1])],
            workflow,
            profile,
            node_cpus,
        )
        for index in range(count)
    ]
    return Plan(
        format=2,
        workflow=workflow.name,
        planner=planner,
        orchestrator=orchestrator,
        wraps=tuple(wraps),
        cpus=sum(wrap.cpus for wrap in wraps),
    )


def wrap_name(workflow: str, suffix: str) -> str:
    """A name for OpenFaaS: the workflow's, shortened where the whole passes 63, and `suffix`."""
    name = f"{workflow[: max(0, 62 - len(suffix))]}-{suffix}"
    return name[-63:].lstrip("-0123456789")


def over_stages(stages: Sequence[Processes]) -> Processes:
    """The processes of a wrap, of which each is the one in its place in all `stages`."""
    return tuple(tuple(chain(*tasks)) for tasks in zip_longest(*stages, fillvalue=()))


def widest(stages: Sequence[Processes]) -> int:
    """How many processes a wrap runs at once; an empty main process only waits."""
    return max(sum(1 for process in processes if process) for processes in stages)


def _wrap(
    name: str,
    mechanism: str,
    stages: list[Processes],
    workflow: Workflow,
    profile: Profile,
    node_cpus: int | None,
) -> Wrap:
    running = [
        [profile.functions[workflow.function_of(task)] for each in processes for task in each]
        for processes in stages
    ]
    running_mib = [sum(function.memory_mib for function in stage) for stage in running]
    imports_mib = _imports_mib([function for stage in running for function in stage])
    memory_mib = (
        BASE_MEMORY_MIB
        + imports_mib
        + max(
            mib + PROCESS_MEMORY_MIB * (len(processes) - 1)
            for mib, processes in zip(running_mib, stages, strict=True)
        )
    )
    cpu_ms = sum(f.core_ms for stage in running for f in stage)
    return Wrap(
        name=name,
        cpus=min(widest(stages), node_cpus or widest(stages)),
        memory_mib=int(-(-memory_mib // 16) * 16),
        demand=Demand(
            cpu_ms=round(cpu_ms, 4),
            memory_mib=round(max(running_mib), 2),
            imports_mib=round(imports_mib, 2),
        ),
        mechanism=mechanism,
        processes=over_stages(stages),
    )


def _imports_mib(functions: Sequence[FunctionProfile]) -> float:
    """What the modules of all of `functions` take together.

    Those with the same requirements import much the same, which is there once.
    """
    largest: dict[tuple[str, ...], float] = {}
    for function in functions:
        mib = max(0.0, (function.idle_mib or 0.0) - IDLE_MEMORY_MIB)
        key = tuple(sorted(function.requirements))
        largest[key] = max(mib, largest.get(key, 0.0))
    return sum(largest.values())
