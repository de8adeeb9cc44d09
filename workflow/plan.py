"""plan.json: which task runs in which wrap and process, and what that should cost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from workflow.documents import Document
from workflow.errors import ChironError
from workflow.model import Workflow
from workflow.names import NAME

#: Unlike one function, a whole workflow may take longer than an hour.
Milliseconds = Annotated[float, Field(ge=0)]
#: What drives an execution: the wraps, or the caller, which invokes every task itself.
Orchestrator = Literal["wrap", "client"]


class WrapStage(Document):
    """What one wrap does in one stage: the tasks of every process, which run as its threads.

    The first process is the wrap's main process. It alone may be empty: then it only starts the
    others and waits for them, as in SAND.
    """

    stage: Annotated[int, Field(ge=0)]
    processes: Annotated[tuple[tuple[str, ...], ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _only_the_main_process_is_empty(self) -> WrapStage:
        if not all(self.processes[1:]) or not any(self.processes):
            raise ValueError("a process has no task (only a main process with others may)")
        return self


class Demand(Document):
    """What a wrap's functions take for one request: CPU time, and memory in the widest stage.

    ``imports_mib`` is what their modules take for as long as the wrap runs.
    """

    cpu_ms: Milliseconds
    memory_mib: Annotated[float, Field(ge=0)]
    imports_mib: Annotated[float, Field(ge=0)] = 0.0


class Wrap(Document):
    """Tasks deployed together as one OpenFaaS function; `demand` is there where it was profiled."""

    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
    cpus: Annotated[int, Field(ge=1)]
    memory_mib: Annotated[int, Field(ge=1)]
    demand: Demand | None = None
    stages: Annotated[tuple[WrapStage, ...], Field(min_length=1)]

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks of the wrap, by stage and process."""
        return tuple(t for stage in self.stages for process in stage.processes for t in process)


class PredictedRange(Document):
    """The end-to-end latency that is predicted for an idle machine, and its range.

    ``warnings`` says why it is not to be relied on, a line each: those of profile and platform.
    """

    latency_ms: Milliseconds
    low_ms: Milliseconds
    high_ms: Milliseconds
    warnings: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """As it is written in tables; with a star where there are warnings to be written below."""
        star = " *" if self.warnings else ""
        return f"{self.latency_ms:.1f} ({self.low_ms:.1f} to {self.high_ms:.1f}){star}"


class Prediction(PredictedRange):
    """A predicted latency with its parts by stage.

    Of several payloads it is the mean, by weight, and the range is from the low end of the fastest
    to the high end of the slowest; ``payloads_ms`` has the latency of each.
    """

    stages_ms: tuple[Milliseconds, ...]
    payloads_ms: dict[str, Milliseconds] | None = None


class Plan(Document):
    """The scheduler's answer.

    With `orchestrator` ``wrap`` the first wrap receives the workflow's requests and calls the
    others; with ``client`` every wrap is one task, and the client calls them all. `planner` is a
    label that says how the plan came about.
    """

    format: Literal[1]
    workflow: str
    planner: Annotated[str, Field(pattern=r"^[A-Za-z0-9_+.-]{1,63}$")]
    orchestrator: Orchestrator = "wrap"
    mechanism: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
    slo_ms: Milliseconds | None = None
    wraps: Annotated[tuple[Wrap, ...], Field(min_length=1)]
    predicted: Prediction | None = None
    cpus: Annotated[int, Field(ge=1)]
    meets_slo: bool | None = None
    why: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _wraps_are_sound(self) -> Plan:
        names = [wrap.name for wrap in self.wraps]
        if len(set(names)) < len(names):
            raise ValueError("two wraps have one name")
        for wrap in self.wraps:
            stages = [stage.stage for stage in wrap.stages]
            if stages != sorted(set(stages)):
                raise ValueError(f"the stages of {wrap.name} have to be distinct and in order")
        if self.cpus != sum(wrap.cpus for wrap in self.wraps):
            raise ValueError("cpus has to be the sum of the wraps' cpus")
        return self

    def stage(self, number: int) -> list[tuple[int, WrapStage]]:
        """The wraps that take part in a stage: (index of the wrap, what it does there)."""
        return [
            (index, stage)
            for index, wrap in enumerate(self.wraps)
            for stage in wrap.stages
            if stage.stage == number
        ]

    def check_against(self, workflow: Workflow) -> None:
        """Raise unless every task of every stage of `workflow` is in exactly one process.

        Raises ``unknown-task``, ``repeated-task``, ``wrong-stage`` or ``missing-task``.
        """
        stage_of = {task: i for i, stage in enumerate(workflow.stages) for task in stage}
        seen: set[str] = set()
        for w, wrap in enumerate(self.wraps):
            for s, stage in enumerate(wrap.stages):
                for p, process in enumerate(stage.processes):
                    for task in process:
                        path = f"wraps[{w}].stages[{s}].processes[{p}]"
                        _check_task(task, stage.stage, stage_of, seen, path)
                        seen.add(task)
        missing = [task for task in stage_of if task not in seen]
        if missing:
            raise ChironError(
                "missing-task",
                f"the plan leaves out {', '.join(missing[:8])}",
                path="wraps",
                functions=missing,
            )


def _check_task(task: str, stage: int, stage_of: dict[str, int], seen: set[str], path: str) -> None:
    if task not in stage_of:
        fault, message = "unknown-task", f"the workflow has no task {task!a}"
    elif task in seen:
        fault, message = "repeated-task", f"task {task!a} is in the plan twice"
    elif stage_of[task] != stage:
        fault, message = "wrong-stage", f"task {task!a} belongs to stage {stage_of[task]}"
    else:
        return
    raise ChironError(fault, message, path=path, functions=[task])
