"""A layout: which task runs in which process of which wrap, before it is made a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from chiron.scheduler.conflicts import NO_CONFLICTS, Conflicts
from chiron.scheduler.memory import (
    BASE_MEMORY_MIB,
    FLASK_MEMORY_MIB,
    PROCESS_MEMORY_MIB,
    imports_mib,
    running_mib,
    runtimes_mib,
)
from chiron.workflow.model import Workflow
from chiron.workflow.paths import DEFAULT_PATH, PathKind
from chiron.workflow.plan import DEFAULT_TRIGGER, Demand, Orchestrator, Plan, Processes, Wrap
from chiron.workflow.profile import Profile
from chiron.wrap.core.triggers import TriggerKind

#: The wraps of one stage, each with its processes.
StageLayout = tuple[Processes, ...]
#: For each stage the wraps that take part: wrap k of one stage and of the next are one sandbox.
Layout = tuple[StageLayout, ...]
#: Whether two processes may be one, by the tasks of each.
GetOn = Callable[[Sequence[str], Sequence[str]], bool]


def plan_from_layout(
    layout: Layout,
    workflow: Workflow,
    profile: Profile,
    *,
    planner: str,
    mechanism: str,
    orchestrator: Orchestrator = "wrap",
    trigger: TriggerKind = DEFAULT_TRIGGER,
    path: PathKind = DEFAULT_PATH,
    conflicts: Conflicts = NO_CONFLICTS,
    node_cpus: int | None = None,
    uniform: bool = False,
    prefix: str = "",
    names: Sequence[str] | None = None,
) -> Plan:
    """The plan, not yet predicted, that deploys `layout`.

    Every wrap gets as many CPUs as it runs processes in a stage (Chiron §6: a whole CPU is the unit
    of allocation) but no more than a node has, where that is known. With `uniform`, threads that
    run in parallel count like processes. It gets memory for all functions that it may run at once:
    a process is there from its first task to its last. Wraps are called by `names`, or else by the
    workflow, `prefix` and number. No process has tasks of different stages that `conflicts` forbid
    it; those of one stage are as `layout` has them.
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
            conflicts,
            uniform,
        )
        for index in range(count)
    ]
    return Plan(
        format=2,
        workflow=workflow.name,
        planner=planner,
        orchestrator=orchestrator,
        trigger=trigger,
        path=path,
        wraps=tuple(wraps),
        cpus=sum(wrap.cpus for wrap in wraps),
    )


def wrap_name(workflow: str, suffix: str) -> str:
    """A name for OpenFaaS: the workflow's, shortened where the whole passes 63, and `suffix`."""
    name = f"{workflow[: max(0, 62 - len(suffix))]}-{suffix}"
    return name[-63:].lstrip("-0123456789")


def over_stages(stages: Sequence[Processes], get_on: GetOn = lambda _, __: True) -> Processes:
    """The processes of a wrap that runs those of `stages` one stage after another.

    Its main process is that of all stages with which it may `get_on`, by their tasks. Each of a
    stage's further ones is the first of earlier stages with which it may, and that no other one of
    its stage is; or, where there is none, a process more.
    """
    main: tuple[str, ...] = ()
    further: list[tuple[str, ...]] = []
    for first, *others in stages:
        if get_on(main, first):
            main += first
        else:
            others.insert(0, first)
        unused = list(range(len(further)))
        for process in others:
            place = next((p for p in unused if get_on(further[p], process)), None)
            if place is None:
                further.append(process)
            else:
                unused.remove(place)
                further[place] += process
    return (main, *further)


def aligned(layout: Layout, workflow: Workflow) -> Layout:
    """The same, each stage's processes in the places from which most of what they need comes.

    So a task goes on where its predecessor ended, and what runs beside it is not waited for.
    """
    place_of: dict[str, tuple[int, int]] = {}
    found: list[StageLayout] = []
    for stage in layout:
        wraps = tuple(
            _aligned(w, processes, place_of, workflow) for w, processes in enumerate(stage)
        )
        for w, processes in enumerate(wraps):
            place_of |= {task: (w, p) for p, process in enumerate(processes) for task in process}
        found.append(wraps)
    return tuple(found)


def _aligned(
    wrap: int, processes: Processes, place_of: Mapping[str, tuple[int, int]], workflow: Workflow
) -> Processes:
    """The processes of one wrap in a stage, by where the tasks before them are."""
    wanted = Counter[tuple[int, int]]()
    for number, process in enumerate(processes):
        for name in chain.from_iterable(workflow.by_name[task].predecessors for task in process):
            its_wrap, place = place_of[name]
            if its_wrap == wrap and place < len(processes):
                wanted[place, number] += 1
    process_at = dict[int, int]()
    left = dict.fromkeys(range(len(processes)))
    for (place, number), _ in wanted.most_common():
        if place not in process_at and number in left:
            process_at[place] = number
            del left[number]
    waiting = iter(left)
    return tuple(
        processes[process_at[place] if place in process_at else next(waiting)]
        for place in range(len(processes))
    )


def widest(stages: Sequence[Processes]) -> int:
    """How many processes a wrap runs in a stage, at most; an empty main process only waits."""
    return max(sum(1 for process in processes if process) for processes in stages)


def parallel_threads(stages: Sequence[Processes], workflow: Workflow, profile: Profile) -> int:
    """How many cores a wrap's threads may use at once in a stage, at most."""

    def cores(process: Sequence[str]) -> int:
        functions = [profile.functions[workflow.function_of(task)] for task in process]
        return len(functions) if all(each.parallel for each in functions) else 1

    return max(sum(map(cores, filter(None, processes))) for processes in stages)


def _wrap(
    name: str,
    mechanism: str,
    stages: list[Processes],
    workflow: Workflow,
    profile: Profile,
    node_cpus: int | None,
    conflicts: Conflicts,
    uniform: bool,
) -> Wrap:
    def get_on(tasks: Sequence[str], others: Sequence[str]) -> bool:
        uses = workflow.function_of
        return conflicts.get_on(map(uses, tasks), map(uses, others))

    processes = over_stages(stages, get_on)
    cpus = max(widest(stages), parallel_threads(stages, workflow, profile) if uniform else 0)
    memory_mib, demand = sized(processes, workflow, profile)
    return Wrap(
        name=name,
        cpus=min(cpus, node_cpus or cpus),
        memory_mib=memory_mib,
        demand=demand,
        mechanism=mechanism,
        processes=processes,
    )


def sized(
    processes: Sequence[Sequence[str]],
    workflow: Workflow,
    profile: Profile,
    idle: Iterable[str] = (),
) -> tuple[int, Demand]:
    """The memory of a wrap with these processes, in MiB, and what those not `idle` take."""
    tasks = chain.from_iterable(processes)
    functions = [profile.functions[workflow.function_of(task)] for task in tasks]
    modules_mib = imports_mib([*functions, *map(profile.functions.__getitem__, idle)])
    modules_mib += runtimes_mib(processes[0], workflow, profile)
    modules_mib += FLASK_MEMORY_MIB if len(processes) > 1 else 0
    request_mib = running_mib(processes, workflow, profile)
    further_mib = PROCESS_MEMORY_MIB * (len(processes) - 1)
    memory_mib = BASE_MEMORY_MIB + modules_mib + request_mib + further_mib
    demand = Demand(
        cpu_ms=round(sum(function.core_ms for function in functions), 4),
        memory_mib=round(request_mib, 2),
        imports_mib=round(modules_mib, 2),
    )
    return int(-(-memory_mib // 16) * 16), demand
