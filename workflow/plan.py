"""The document plan.json: the placement of tasks in wraps and processes, and its predicted cost."""

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
#: The driver of an execution: the wraps, or the client, which invokes every task itself.
Orchestrator = Literal["wrap", "client"]
DEFAULT_TRIGGER: TriggerKind = "data"
#: The maximum number of replicas of a wrap.
MOST_REPLICAS = 200
#: The default number of starts, in all, of a task whose process or wrap is lost.
DEFAULT_ATTEMPTS = 2
#: The planner of a plan by which functions are profiled: each alone in a wrap of one replica.
ALONE = "alone"
#: The default percentage of requests that must meet an SLO.
DEFAULT_PERCENTILE = 95.0
#: The tasks of every process of a wrap, the main process first.
Processes = tuple[tuple[str, ...], ...]


class Demand(Document):
    """The CPU time and memory that a wrap's functions need for one request.

    ``memory_mib`` is the largest memory in use at one time. Each process counts with the most that
    its tasks can use at once, as it stays until its last task. Further processes add their unshared
    memory beyond the few MiB of any process. ``imports_mib`` is the memory of imported modules, the
    JVM and Node.js, which stays while the wrap runs.
    """

    cpu_ms: Milliseconds
    memory_mib: Annotated[float, Field(ge=0)]
    imports_mib: Annotated[float, Field(ge=0)] = 0.0


class Wrap(Document):
    """Tasks deployed together as one OpenFaaS function; `demand` is None if it was not profiled.

    A process runs its tasks, of any stages, as threads. Their order is topological: tasks that can
    start at once start in this order. The first process is the main process. Only the main process
    may be empty: then it starts the other processes and waits for them, as in SAND. `mechanism` is
    the way to get the other processes, which exist from their first task to their last. `cpus` and
    `memory_mib` are per replica.
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


class Within(Document):
    """The predicted latency of the ``percentile``, and its range."""

    percentile: Percentile
    ms: Milliseconds
    low_ms: Milliseconds
    high_ms: Milliseconds


class PredictedRange(Document):
    """The predicted end-to-end latency of requests on an idle machine.

    Attributes:
        latency_ms, low_ms, high_ms: the median of all requests, whatever their payload, and the
            range in which it is expected.
        within: the percentile by which plans are judged, with its range; None if not judged.
        mean_ms: the mean of all requests.
        warnings: why the prediction is unreliable, a line each: the warnings of profile and
            platform.
    """

    latency_ms: Milliseconds
    low_ms: Milliseconds
    high_ms: Milliseconds
    within: Within | None = None
    mean_ms: Milliseconds | None = None
    warnings: tuple[str, ...] = ()

    @property
    def expected_ms(self) -> float:
        """The latency to compare with the mean of measured requests."""
        return self.latency_ms if self.mean_ms is None else self.mean_ms

    @property
    def expected_range_ms(self) -> tuple[float, float]:
        """The range of `expected_ms`, with the same relative uncertainty as the median."""
        times = self.expected_ms / self.latency_ms if self.latency_ms else 1.0
        return times * self.low_ms, times * self.high_ms

    @property
    def judged_ms(self) -> float:
        """The latency to compare with an SLO."""
        return self.latency_ms if self.within is None else self.within.ms

    @property
    def judged_range_ms(self) -> tuple[float, float]:
        found = self if self.within is None else self.within
        return found.low_ms, found.high_ms

    @property
    def shown(self) -> str:
        """The text for tables, with the range of the last figure.

        A star marks a prediction with warnings, which are printed below.
        """
        low_ms, high_ms = self.judged_range_ms
        within = f", p{self.within.percentile:g} {self.within.ms:.1f}" if self.within else ""
        star = " *" if self.warnings else ""
        return f"p50 {self.latency_ms:.1f}{within} ({low_ms:.1f} to {high_ms:.1f}){star}"


class Prediction(PredictedRange):
    """A predicted latency; ``payloads_ms`` has the median of each of several payloads."""

    payloads_ms: dict[str, Milliseconds] | None = None


class Unforkable(Document):
    """A function that cannot run in further processes of a mechanism, and the reason."""

    function: str
    reason: str
    mechanism: str = "fork"


class Plan(Document):
    """The scheduler's answer.

    With `orchestrator` ``wrap`` the first wrap receives the workflow's requests and calls the other
    wraps. With ``client`` every wrap is one task, and the client calls each wrap when `trigger`
    fires. `planner` labels the origin of the plan; `path` is the transport of objects between
    wraps. A task whose process or wrap is lost is started up to `attempts` times in all.
    `unforkable` and `apart` list what the scheduler kept out of further processes, and out of one
    process or wrap. `cpus` counts one replica of each wrap. `under_load` is set if the
    plan was made for a load; then `meets_slo` refers to that load.
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
        """The distinct mechanisms of the wraps, joined by ``+``."""
        return "+".join(dict.fromkeys(wrap.mechanism for wrap in self.wraps))

    def with_replicas(self, count: int | None) -> Plan:
        """Return the plan with `count` replicas of every wrap; unchanged if `count` is None."""
        if count is None:
            return self
        wraps = tuple(wrap.model_copy(update={"replicas": count}) for wrap in self.wraps)
        return self.model_copy(update={"wraps": wraps})

    def check_against(self, workflow: Workflow) -> None:
        """Raise unless every task of `workflow` is in exactly one process.

        A task of a state machine may be in several processes, which share its instances. All tasks
        of a workflow of buckets must be in one wrap, which holds the buckets.

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
    """Return the name shown to users for the process at index `number` in the plan."""
    return f"process {number + 1}" if number else "main process"
