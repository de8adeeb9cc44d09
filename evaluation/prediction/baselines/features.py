"""The baselines' input: the functions in a plan's processes, as a vector, a sequence or a graph.

Some of Gsight's features in Chiron §6.1 need hardware performance counters, which virtual machines
and containers rarely offer: misses of the L1I, L1D, L2 and L3 caches, of both TLBs and of the
branch predictor, memory-level parallelism, occupancy of the last-level cache, instructions per
cycle and memory bandwidth. Lengths of periods, which Chiron's predictor uses too, replace them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from math import log1p
from typing import Literal, NamedTuple, get_args

from chiron.predictor.mechanisms import mechanism_of
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan, Processes
from chiron.workflow.profile import FunctionProfile, PeriodKind, Profile

#: The functions that run as the threads of one process, in the order in which they start.
Process = tuple[FunctionProfile, ...]


class WrapShape(NamedTuple):
    """The work of one wrap in one stage; `remote` if the orchestrator calls it by the network."""

    cpus: int
    remote: bool
    processes: tuple[Process, ...]


@dataclass(frozen=True)
class Sample:
    """One measured plan, without the names of its tasks and functions.

    ``stages`` has the wraps of every stage, in the order of their calls.
    ``measured_ms`` is the median of the end-to-end latencies.
    """

    workflow: str
    mechanism: str
    stages: tuple[tuple[WrapShape, ...], ...]
    measured_ms: float

    @property
    def structure(self) -> str:
        """The numbers of threads of every process of every wrap, whatever they run."""
        sizes = [
            [(wrap.remote, sorted(map(len, wrap.processes))) for wrap in stage]
            for stage in self.stages
        ]
        return f"{self.workflow} {sizes}"

    @property
    def solo_ms(self) -> float:
        """The sum over the stages of their longest solo latency: no plan can be faster."""
        return sum(max(f.latency_ms for p in _processes(s) for f in p) for s in self.stages)


def sample_of(
    name: str, plan: Plan, workflow: Workflow, profile: Profile, measured_ms: float
) -> Sample:
    """Return the sample of a plan of `workflow`, which tables call `name`."""
    stages = tuple(
        tuple(
            WrapShape(
                cpus=plan.wraps[index].cpus,
                remote=index > 0 or plan.orchestrator == "client",
                processes=tuple(
                    tuple(profile.functions[workflow.function_of(task)] for task in process)
                    for process in processes
                ),
            )
            for index, processes in parts_of(plan, stage)
        )
        for stage in workflow.stages
    )
    return Sample(name, plan.mechanisms, stages, measured_ms)


def parts_of(plan: Plan, tasks: Collection[str]) -> list[tuple[int, Processes]]:
    """Return the index of each wrap with some of `tasks`, and its processes restricted to them.

    The main process comes first, even if empty. Other processes without tasks are left out.
    """
    wanted, found = frozenset(tasks), list[tuple[int, Processes]]()
    for index, wrap in enumerate(plan.wraps):
        main, *further = (tuple(t for t in each if t in wanted) for each in wrap.processes)
        others = tuple(filter(None, further))
        if main or others:
            found.append((index, (main, *others)))
    return found


def delay_ms(sample: Sample) -> float:
    """Return the latency beyond the sum of the stages' longest solo latencies.

    On the published testbed this target generalises best to a held-out workflow: errors are 15 to
    33 %. Targets like the latency, or its ratio to the solo latencies, have errors of 47 to 115 %.
    """
    return sample.measured_ms - sample.solo_ms


def latency_ms(delay: float, sample: Sample) -> float:
    """Return the latency of `sample` with `delay`: at least half its solo latency."""
    return max(sample.solo_ms + delay, sample.solo_ms / 2)


#: System calls that wait for a disk; all others that block count as waiting for a network or a
#: timer, since reading a socket and reading a file look alike.
_DISK = frozenset(
    ["open", "openat", "stat", "fstat", "fcntl", "ioctl", "lseek", "fsync", "fdatasync", "close",
     "rename", "unlink", "mkdir", "getdents64"]
)  # fmt: skip


def _blocked_ms(function: FunctionProfile, disk: bool) -> float:
    return sum(
        period.duration_ms
        for period in function.periods
        if period.kind == "block" and (period.syscall in _DISK) == disk
    )


def _longest_ms(function: FunctionProfile, kind: str) -> float:
    return max((p.duration_ms for p in function.periods if p.kind == kind), default=0.0)


def _busy_share(function: FunctionProfile) -> float:
    busy_ms = function.time_ms("cpu") + function.time_ms("native")
    return busy_ms / function.latency_ms if function.latency_ms else 0.0


#: Name -> feature; times and sizes are logarithms. Chiron §6.1's names are in brackets.
_FEATURES: dict[str, Callable[[FunctionProfile], float]] = {
    "solo latency": lambda f: log1p(f.latency_ms),
    "time with the GIL": lambda f: log1p(f.time_ms("cpu")),
    "time computing without the GIL": lambda f: log1p(f.time_ms("native")),
    "time blocked": lambda f: log1p(f.time_ms("block")),
    "CPU utilization": _busy_share,
    "longest time with the GIL": lambda f: log1p(_longest_ms(f, "cpu")),
    "longest time blocked": lambda f: log1p(_longest_ms(f, "block")),
    "periods": lambda f: log1p(len(f.periods)),
    "system calls that block (context switches)": lambda f: log1p(
        sum(period.kind == "block" for period in f.periods)
    ),
    "time in disk calls (disk IO)": lambda f: log1p(_blocked_ms(f, disk=True)),
    "time in other calls (network bandwidth)": lambda f: log1p(_blocked_ms(f, disk=False)),
    "memory (memory utilization)": lambda f: log1p(f.memory_mib),
    "files": lambda f: log1p(len(f.files_read) + len(f.files_written)),
    "bytes in and out (network bandwidth)": lambda f: log1p((f.input_bytes or 0) + f.output_bytes),
}
NAMES = tuple(_FEATURES)


def function_features(function: FunctionProfile) -> list[float]:
    """Return the features of one function in the order of `NAMES`."""
    return [feature(function) for feature in _FEATURES.values()]


def plan_features(sample: Sample) -> list[float]:
    """Return counts, solo times, and the mean and maximum of each function feature.

    Times are logarithms, and also shares of the sum of the longest solo latencies. Shares let
    models that learnt from fast functions predict slow functions.
    """
    solo_ms = sample.solo_ms
    times = _times_ms(sample)
    tasks = [f for stage in sample.stages for process in _processes(stage) for f in process]
    columns = list(zip(*map(function_features, tasks), strict=True))
    return [
        *_counts(sample),
        log1p(solo_ms),
        *map(log1p, times),
        *(time / solo_ms if solo_ms else 0.0 for time in times),
        *(sum(column) / len(column) for column in columns),
        *map(max, columns),
    ]


def _counts(sample: Sample) -> list[float]:
    wraps = [wrap for stage in sample.stages for wrap in stage]
    processes = [len(wrap.processes) for wrap in wraps]
    threads = [len(process) for wrap in wraps for process in wrap.processes]
    return [
        float(mechanism_of(sample.mechanism).lasting),
        len(sample.stages),
        sum(wrap.remote for wrap in wraps),
        sum(processes) - len(processes),
        max(processes),
        sum(threads),
        max(threads),
        sum(len(wrap.processes[0]) for wrap in wraps),
        max(len(wrap.processes) / wrap.cpus for wrap in wraps),
    ]


def _times_ms(sample: Sample) -> list[float]:
    """Return, for each kind of time, sums over the stages: slowest, all and first processes."""
    stages = [_processes(stage) for stage in sample.stages]
    return [
        total
        for measure in (_latency_ms, _of_kind("cpu"), _of_kind("native"), _of_kind("block"))
        for total in (
            sum(max(map(measure, processes)) for processes in stages),
            sum(sum(map(measure, processes)) for processes in stages),
            sum(measure(processes[0]) for processes in stages),
        )
    ]


def _processes(stage: tuple[WrapShape, ...]) -> list[Process]:
    return [process for wrap in stage for process in wrap.processes]


def _latency_ms(process: Process) -> float:
    return sum(function.latency_ms for function in process)


def _of_kind(kind: PeriodKind) -> Callable[[Process], float]:
    return lambda process: sum(function.time_ms(kind) for function in process)


NodeKind = Literal["workflow", "stage", "wrap", "process", "task"]
_KINDS = get_args(NodeKind)


@dataclass
class Graph:
    """Feature rows of equal length, and an edge (node, parent) for each node but the first."""

    nodes: list[list[float]] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def add(
        self,
        parent: int | None,
        kind: NodeKind,
        place: int,
        children: int,
        pool: float,
        remote: float = 0.0,
        cpus: int = 0,
        function: FunctionProfile | None = None,
    ) -> int:
        """Add a node, and return its number."""
        features = function_features(function) if function else [0.0] * len(NAMES)
        kinds = [float(kind == each) for each in _KINDS]
        self.nodes.append([*kinds, place, log1p(children), pool, remote, cpus, *features])
        number = len(self.nodes) - 1
        if parent is not None:
            self.edges.append((number, parent))
        return number


def plan_graph(sample: Sample) -> Graph:
    """Return the graph of `sample`; node 0 is the workflow.

    A node has its kind, its place among its siblings, the numbers of its children and CPUs, and
    flags for a pool and a remote wrap. A task node also has its function's features.
    """
    graph = Graph()
    pool = float(mechanism_of(sample.mechanism).lasting)
    workflow = graph.add(None, "workflow", 0, len(sample.stages), pool)
    for s, wraps in enumerate(sample.stages):
        stage = graph.add(workflow, "stage", s, len(wraps), pool)
        for w, wrap in enumerate(wraps):
            placed = (pool, float(wrap.remote), wrap.cpus)
            holder = graph.add(stage, "wrap", w, len(wrap.processes), *placed)
            for p, functions in enumerate(wrap.processes):
                process = graph.add(holder, "process", p, len(functions), *placed)
                for t, function in enumerate(functions):
                    graph.add(process, "task", t, 0, *placed, function)
    return graph


def plan_sequence(sample: Sample) -> Graph:
    """Return only the tasks, in the plan's order, with places and sizes of their ancestors."""
    graph = plan_graph(sample)
    parents = dict(graph.edges)
    tasks = [n for n in range(len(graph.nodes)) if graph.nodes[n][_KINDS.index("task")]]
    return Graph([_with_ancestors(graph, task, parents) for task in tasks])


def _with_ancestors(graph: Graph, task: int, parents: dict[int, int]) -> list[float]:
    node, row = task, list(graph.nodes[task])
    while node in parents:
        node = parents[node]
        row += graph.nodes[node][len(_KINDS) : len(_KINDS) + 2]
    return row
