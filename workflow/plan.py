"""plan.json: which task runs in which wrap and process, and what that should cost."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from chiron.workflow.apart import Apart
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError
from chiron.workflow.load import LoadPrediction, Percentile
from chiron.workflow.model import Workflow
from chiron.workflow.names import NAME
from chiron.workflow.paths import DEFAULT_PATH, PathKind
from chiron.wrap.core.triggers import TriggerKind

#: Unlike one function, a whole workflow may take longer than an hour.
Milliseconds = Annotated[float, Field(ge=0)]
#: What drives an execution: the wraps, or the caller, which invokes every task itself.
Orchestrator = Literal["wrap", "client"]
#: What tasks wait for where nothing is said.
DEFAULT_TRIGGER: TriggerKind = "data"
#: Replicas of a wrap, at most.
MOST_REPLICAS = 200
#: How often a task is started, in all, whose process or wrap is lost, where nothing is said.
DEFAULT_ATTEMPTS = 2
#: How many percent of the requests an SLO is for where nothing is said.
DEFAULT_PERCENTILE = 95.0
#: The tasks of every process of a wrap, the main process first.
Processes = tuple[tuple[str, ...], ...]


class Demand(Document):
    """What a wrap's functions take for one request: CPU time, and memory.

    ``memory_mib`` is what can be there at the same time: all processes with the most that the tasks
    of each can take at once, as each process stays for its last task; and what further processes
    take because they share it with no other, beyond the few MiB of any process. ``imports_mib`` is
    what their modules take for as long as the wrap runs, and the JVM and Node.js that they run in.
    """

    cpu_ms: Milliseconds
    memory_mib: Annotated[float, Field(ge=0)]
    imports_mib: Annotated[float, Field(ge=0)] = 0.0


class Wrap(Document):
    """Tasks deployed together as one OpenFaaS function; `demand` is there where it was profiled.

    A process has tasks of any stages, in topological order: that in which they are started where
    several can be at once. They run as its threads. The first process is the main one. It alone
    may be empty: then it only starts the others and waits for them, as in SAND. How the wrap gets
    the others is its `mechanism`; each is there from the first of its tasks to the last. `cpus` and
    `memory_mib` are those of each of its `replicas`.
    """

    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
    cpus: Annotated[int, Field(ge=1)]
    memory_mib: Annotated[int, Field(ge=1)]
    demand: Demand | None = None
    mechanism: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
    replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] = 1
    processes: Annotated[Processes, Field(min_length=1)]

    @field_validator("processes")
    @classmethod
    def _only_the_main_process_is_empty(cls, processes: Processes) -> Processes:
        if not all(processes[1:]) or not any(processes):
            raise ValueError("a process has no task (only a main process with others may)")
        return processes

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks of the wrap, by process."""
        return tuple(task for process in self.processes for task in process)

    def part(self, tasks: Collection[str]) -> Processes:
        """The wrap's processes with those of `tasks` alone; none where it has none of them.

        The main process comes first, even if it has none; others that have none are left out.
        """
        wanted = frozenset(tasks)
        main, *further = (tuple(t for t in each if t in wanted) for each in self.processes)
        others = tuple(filter(None, further))
        return (main, *others) if main or others else ()


class Within(Document):
    """What ``percentile`` percent of the requests take at most, and the range of that."""

    percentile: Percentile
    ms: Milliseconds
    low_ms: Milliseconds
    high_ms: Milliseconds


class PredictedRange(Document):
    """The end-to-end latency of requests that is predicted for an idle machine.

    Attributes:
        latency_ms, low_ms, high_ms: the median of all requests, whatever their payload, and the
            range in which it is expected.
        within: the same of the percentile that plans are judged by; None where nothing was judged.
        mean_ms: the mean of all requests.
        warnings: why it is not to be relied on, a line each: those of profile and platform.
    """

    latency_ms: Milliseconds
    low_ms: Milliseconds
    high_ms: Milliseconds
    within: Within | None = None
    mean_ms: Milliseconds | None = None
    warnings: tuple[str, ...] = ()

    @property
    def expected_ms(self) -> float:
        """What is held against the mean of what requests took."""
        return self.latency_ms if self.mean_ms is None else self.mean_ms

    @property
    def expected_range_ms(self) -> tuple[float, float]:
        """The range of that, which is as uncertain as the median: by the same part of itself."""
        times = self.expected_ms / self.latency_ms if self.latency_ms else 1.0
        return times * self.low_ms, times * self.high_ms

    @property
    def judged_ms(self) -> float:
        """What is held against an SLO."""
        return self.latency_ms if self.within is None else self.within.ms

    @property
    def judged_range_ms(self) -> tuple[float, float]:
        """The range of that."""
        found = self if self.within is None else self.within
        return found.low_ms, found.high_ms

    @property
    def shown(self) -> str:
        """As it is written in tables; with a star where there are warnings to be written below.

        The range is that of the last figure.
        """
        low_ms, high_ms = self.judged_range_ms
        within = f", p{self.within.percentile:g} {self.within.ms:.1f}" if self.within else ""
        star = " *" if self.warnings else ""
        return f"p50 {self.latency_ms:.1f}{within} ({low_ms:.1f} to {high_ms:.1f}){star}"


class Prediction(PredictedRange):
    """A predicted latency; ``payloads_ms`` has the median of each of several payloads."""

    payloads_ms: dict[str, Milliseconds] | None = None


class Unforkable(Document):
    """A function that cannot run in a process that is forked for the request, and the reason."""

    function: str
    reason: str


class Plan(Document):
    """The scheduler's answer.

    With `orchestrator` ``wrap`` the first wrap receives the workflow's requests and calls the
    others; with ``client`` every wrap is one task, and the client calls them all, when `trigger`
    says so.
    `planner` is a label that says how the plan came about, `trigger` what every task waits for,
    `path` how objects get to other wraps. A task whose process or wrap is lost is started up to
    `attempts` times in all. `unforkable` is what the scheduler has kept out of processes that are
    forked for each request, `apart` which functions it has kept out of one process, or one wrap.
    `cpus` are those of one replica of each wrap. `under_load` is there if the plan was made for a
    load: then `meets_slo` is about that.
    """

    format: Literal[2]
    workflow: str
    planner: Annotated[str, Field(pattern=r"^[A-Za-z0-9_+.-]{1,63}$")]
    orchestrator: Orchestrator = "wrap"
    trigger: TriggerKind = DEFAULT_TRIGGER
    path: PathKind = DEFAULT_PATH
    attempts: Annotated[int, Field(ge=1, le=10)] = DEFAULT_ATTEMPTS
    slo_ms: Milliseconds | None = None
    wraps: Annotated[tuple[Wrap, ...], Field(min_length=1)]
    predicted: Prediction | None = None
    cpus: Annotated[int, Field(ge=1)]
    meets_slo: bool | None = None
    under_load: LoadPrediction | None = None
    why: tuple[str, ...] = ()
    unforkable: tuple[Unforkable, ...] = ()
    apart: tuple[Apart, ...] = ()

    @model_validator(mode="after")
    def _wraps_are_sound(self) -> Plan:
        names = [wrap.name for wrap in self.wraps]
        if len(set(names)) < len(names):
            raise ValueError("two wraps have one name")
        if self.cpus != sum(wrap.cpus for wrap in self.wraps):
            raise ValueError("cpus has to be the sum of the wraps' cpus")
        return self

    @property
    def allocated_cpus(self) -> int:
        """The CPUs of all replicas."""
        return sum(wrap.replicas * wrap.cpus for wrap in self.wraps)

    @property
    def mechanisms(self) -> str:
        """The mechanisms of its wraps in a word: each once, joined by ``+``."""
        return "+".join(dict.fromkeys(wrap.mechanism for wrap in self.wraps))

    def with_replicas(self, count: int | None) -> Plan:
        """The same with so many replicas of every wrap; as it is for None."""
        if count is None:
            return self
        wraps = tuple(wrap.model_copy(update={"replicas": count}) for wrap in self.wraps)
        return self.model_copy(update={"wraps": wraps})

    def parts(self, tasks: Collection[str]) -> list[tuple[int, Processes]]:
        """The wraps that have some of `tasks`, as those of a stage: index and `Wrap.part`."""
        wanted = frozenset(tasks)
        parts = ((index, wrap.part(wanted)) for index, wrap in enumerate(self.wraps))
        return [(index, processes) for index, processes in parts if processes]

    def check_against(self, workflow: Workflow) -> None:
        """Raise unless every task of `workflow` is in exactly one process.

        Those of one that decides while it runs may be in several, over which their instances go.
        All of one of buckets are in one wrap, which has the buckets.

        Raises ``unknown-task``, ``repeated-task``, ``missing-task`` or ``several-wraps``.
        """
        known, seen = workflow.by_name, set[str]()
        for w, wrap in enumerate(self.wraps):
            for p, process in enumerate(wrap.processes):
                for place, task in enumerate(process):
                    once = seen if workflow.machine is None else process[:place]
                    _check_task(task, known, once, f"wraps[{w}].processes[{p}]")
                    seen.add(task)
        missing = [task for task in known if task not in seen]
        if missing:
            raise ChironError(
                "missing-task",
                f"the plan leaves out {', '.join(missing[:8])}",
                path="wraps",
                functions=missing,
            )
        if workflow.buckets is not None and (len(self.wraps) > 1 or self.orchestrator == "client"):
            raise ChironError(
                "several-wraps",
                f"the functions of buckets have to be in one wrap, and planner {self.planner} puts "
                "them in several or has the client call them: take another one, or keep nothing "
                "apart in constraints.json",
                path="wraps",
            )


def _check_task(task: str, known: Collection[str], seen: Collection[str], path: str) -> None:
    if task not in known:
        fault, message = "unknown-task", f"the workflow has no task {task!a}"
    elif task in seen:
        fault, message = "repeated-task", f"task {task!a} is in the plan twice"
    else:
        return
    raise ChironError(fault, message, path=path, functions=[task])


def process_name(number: int) -> str:
    """What users read of the process of a wrap that has this place in the plan."""
    return f"process {number + 1}" if number else "main process"
