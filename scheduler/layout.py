"""A layout: which task runs in which process of which wrap, before it becomes a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from chiron.predictor.mechanisms import DEFAULT_MECHANISM, mechanism_of
from chiron.scheduler.conflicts import NO_CONFLICTS, Conflicts
from chiron.scheduler.memory import (
    AT_ONCE,
    BASE_MEMORY_MIB,
    FLASK_MEMORY_MIB,
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
#: The wraps of each stage; wrap k of every stage is the same sandbox.
Layout = tuple[StageLayout, ...]
#: Whether two processes, given by their tasks, may become one.
GetOn = Callable[[Sequence[str], Sequence[str]], bool]
#: The longest name of a wrap: Kubernetes allows 63 characters, and faas-netes names a volume of its
#: secrets NAME-projected-secrets.
LONGEST_NAME = 45


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
    """Return the plan, not yet predicted, that deploys `layout`.

    Every wrap gets a CPU for each process of its widest stage (Chiron §6: a whole CPU is the unit
    of allocation), at most `node_cpus`. With `uniform`, threads that run in parallel count like
    processes. Its memory suffices for all functions that may run at once: a process exists from its
    first task to its last. Wraps are named by `names`, or by the workflow, `prefix` and number. No
    process has tasks of different stages that `conflicts` separate; a single stage stays as in
    `layout`.
    """
    count = max(len(stage) for stage in layout)
    wraps = [
        _wrap(
            names[index] if names else numbered_name(workflow.name, prefix, index),
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


def numbered_name(workflow: str, prefix: str, index: int) -> str:
    """Return the name of the wrap at `index` in a plan of the planner with this `prefix`."""
    return wrap_name(workflow, f"{prefix}wrap{index + 1}")


def wrap_name(workflow: str, suffix: str) -> str:
    """Return a name for a wrap: `workflow`, shortened to `LONGEST_NAME` in all, and `suffix`."""
    name = f"{workflow[: max(0, LONGEST_NAME - 1 - len(suffix))]}-{suffix}"
    return name[-LONGEST_NAME:].lstrip("-0123456789")


def over_stages(stages: Sequence[Processes], get_on: GetOn = lambda _, __: True) -> Processes:
    """Return the processes of a wrap that runs `stages` one after another.

    A stage's main process joins the wrap's main process if `get_on` allows that. Every other
    process joins the first further process that `get_on` allows and no other process of its stage
    has joined; without one, it is a further process itself.
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
    """Return `layout` with each stage's processes moved to where most of their predecessors ran.

    So a task follows its predecessor at once, without waiting for tasks that ran beside that.
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
    """Return the processes of one wrap in a stage, placed by the tasks before them."""
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
    """Return the most processes a wrap runs in a stage; an empty main process does not count."""
    return max(sum(1 for process in processes if process) for processes in stages)


def parallel_threads(stages: Sequence[Processes], workflow: Workflow, profile: Profile) -> int:
    """Return the most cores that a wrap's threads can use at once in a stage."""

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
    memory_mib, demand = sized(processes, workflow, profile, mechanism=mechanism)
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
    mechanism: str = DEFAULT_MECHANISM,
) -> tuple[int, Demand]:
    """Return a wrap's memory in MiB, with functions in `idle` loaded, and its tasks' demand."""
    tasks = chain.from_iterable(processes)
    functions = [profile.functions[workflow.function_of(task)] for task in tasks]
    modules_mib = imports_mib([*functions, *map(profile.functions.__getitem__, idle)])
    modules_mib += runtimes_mib(processes[0], workflow, profile)
    modules_mib += FLASK_MEMORY_MIB if len(processes) > 1 else 0
    request_mib = running_mib(processes, workflow, profile)
    further_mib = AT_ONCE * mechanism_of(mechanism).further_mib * (len(processes) - 1)
    memory_mib = BASE_MEMORY_MIB + modules_mib + request_mib + further_mib
    demand = Demand(
        cpu_ms=round(sum(function.core_ms for function in functions), 4),
        memory_mib=round(request_mib, 2),
        imports_mib=round(modules_mib, 2),
    )
    return int(-(-memory_mib // 16) * 16), demand
