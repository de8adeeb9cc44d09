"""Annotations that describe a deployed function, so that `invoke` needs only the gateway."""

from __future__ import annotations

import json
import math
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count, takewhile
from typing import Any

from chiron.generator.declaration import functions_in, numbered, task_numbers
from chiron.generator.given import PREFIX
from chiron.generator.scale_labels import needed_replicas
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.documents import parse_json, validate
from chiron.workflow.errors import ChironError
from chiron.workflow.load import LoadLatency, LoadWithin
from chiron.workflow.model import Workflow, output_name
from chiron.workflow.plan import Milliseconds, Plan, PredictedRange, Within
from chiron.wrap.core.declaration import NumberedSource

WORKFLOW = f"{PREFIX}workflow"
PLANNER = f"{PREFIX}planner"
ROLE = f"{PREFIX}role"
#: The role of an entry wrap that answers instead of the wrap that clients call.
SUCCESSOR = "successor"
#: The variable with the successor's name, which the wrap that clients call reads at its start.
ROUTE = "chiron_route"
FUNCTIONS = f"{PREFIX}functions"
#: The separately deployed functions that a wrap calls.
CALLED = f"{PREFIX}called"
#: Marks functions deployed because wraps call them; they are removed with the last such wrap.
FOR_WRAPS = f"{PREFIX}for-wraps"
FLOW = f"{PREFIX}flow"
#: The first part of a state machine; further parts are numbered from 1.
MACHINE = f"{PREFIX}machine"
PREDICTION = f"{PREFIX}prediction"
#: The number of replicas of a wrap that the rate of its plan keeps busy.
NEEDED = f"{PREFIX}needed"
#: A Prometheus on Kubernetes uses it to find the metrics of each replica. faas-netes copies
#: annotations to pods, with "false" as the default.
SCRAPE = "prometheus.io.scrape"
#: The fingerprint of a deployment's sources, and the options of its plan.
SOURCE = f"{PREFIX}source"
ASKED = f"{PREFIX}asked"
#: The upper end of an unbounded range: documents have finite numbers.
UNBOUNDED_MS = sys.float_info.max
#: The longest part of a state machine, in characters: faasd stores each annotation as a label of
#: containerd, limited to 4096 bytes with its name.
_PART = 3900
#: The most parts: Kubernetes allows 256 KiB of annotations in all.
_MOST_PARTS = 60


@dataclass(frozen=True)
class TaskFlow:
    """The position of a task that the client calls: its stage, its input, the workflow's output.

    ``fail`` is error and cause if the workflow ends in a Fail state. ``emits`` numbers the outputs
    that it emits, ``streams`` the outputs that it reads as streams.
    """

    task: int
    stage: int
    source: NumberedSource
    output: NumberedSource
    fail: list[str] | None = None
    emits: dict[str, int] = field(default_factory=dict)
    streams: dict[str, int] = field(default_factory=dict)


class DeployedPrediction(PredictedRange):
    """The prediction for a deployed plan: its latency, the CPUs of all replicas, and the SLO.

    ``under_load`` is set if the plan was made for a load. Measured requests are then compared with
    it: their mean lies between that of single requests and that at the load.
    """

    cpus: int
    slo_ms: Milliseconds | None = None
    under_load: LoadLatency | None = None

    @classmethod
    def of(cls, plan: Plan) -> DeployedPrediction | None:
        """Return the prediction for `plan`; None if it has none."""
        if plan.predicted is None:
            return None
        loaded = plan.under_load
        fields = {name: getattr(plan.predicted, name) for name in PredictedRange.model_fields}
        return cls(
            **fields,
            cpus=plan.allocated_cpus,
            slo_ms=plan.slo_ms,
            under_load=LoadLatency(load=loaded.load, within=loaded.within, mean=loaded.mean)
            if loaded
            else None,
        )

    @property
    def per_s(self) -> float | None:
        """The rate that the plan was made for; None if it was made for single requests."""
        return self.under_load.load.per_s if self.under_load else None

    @property
    def alone(self) -> DeployedPrediction:
        """The prediction for single requests."""
        return self.model_copy(update={"under_load": None})

    @property
    def promised(self) -> Within | LoadWithin | None:
        """The percentile by which the plan was judged; None if its queue grows without end."""
        if self.under_load is None or self.within is None:
            return self.within
        return self.under_load.at(self.within.percentile)

    @property
    def judged_ms(self) -> float:
        """The latency to compare with the SLO; infinite if the queue grows without end."""
        if self.under_load is None:
            return super().judged_ms
        return self.promised.ms if self.promised else math.inf

    @property
    def expected_ms(self) -> float:
        mean = self.under_load.mean if self.under_load else None
        return mean.ms if mean else super().expected_ms

    @property
    def expected_range_ms(self) -> tuple[float, float]:
        """The range of the mean: from the least of single requests to the most at the load."""
        if self.under_load is None:
            return super().expected_range_ms
        low_ms, _ = self.alone.expected_range_ms
        mean = self.under_load.mean
        high_ms = mean.high_ms if mean else None
        return low_ms, math.inf if high_ms is None else high_ms

    @property
    def bounds_mean(self) -> bool:
        """Whether any mean is outside that range."""
        low_ms, high_ms = self.expected_range_ms
        return low_ms > 0 or high_ms < UNBOUNDED_MS

    @property
    def expected_shown(self) -> str:
        """That range in words."""
        low_ms, high_ms = self.expected_range_ms
        if not self.bounds_mean:
            return "nothing"
        most = f"{low_ms:.1f} ms or more"
        if math.isfinite(high_ms):
            most = f"{low_ms:.1f} to {high_ms:.1f} ms"
        return f"{most} at up to {self.under_load.load.shown}" if self.under_load else most

    @property
    def shown(self) -> str:
        """The text for tables; a star marks a prediction with warnings, which are printed below."""
        if self.under_load is None or self.within is None:
            return super().shown
        star = " *" if self.warnings else ""
        return f"{self.under_load.shown_at(self.within.percentile)}{star}"


def annotate(plan: Plan, index: int, workflow: Workflow) -> dict[str, str]:
    """Return the annotations of the wrap at `index`; raise ``machine-too-large``."""
    functions = ",".join(functions_in(plan.wraps[index], workflow))
    needed = needed_replicas(plan, index)
    annotations = {
        WORKFLOW: workflow.name,
        PLANNER: plan.planner,
        ROLE: "wrap",
        FUNCTIONS: functions,
        SCRAPE: "true",
        **({} if needed is None else {NEEDED: f"{needed:.4g}"}),
    }
    if plan.orchestrator == "client":
        wrap = plan.wraps[index]
        numbers = task_numbers(workflow)
        task = workflow.by_name[wrap.tasks[0]]
        failure = workflow.failure
        flow = {
            "task": numbers[task.name],
            "stage": workflow.stage_of(task.name),
            "source": numbered(task.source, numbers),
            "output": numbered(workflow.output, numbers),
            "fail": [failure.error, failure.cause] if failure else None,
            "emits": {
                output_name(name): numbers[name] for name in workflow.emitted.get(task.name, ())
            },
            "streams": {name: numbers[each] for name, each in task.streams if each is not None},
        }
        annotations |= {ROLE: "task", FLOW: json.dumps(flow)}
        if index == 0 and workflow.machine is not None:
            annotations |= _machine(workflow)
    elif index == 0:
        annotations[ROLE] = "entry"
    if index == 0 and (predicted := DeployedPrediction.of(plan)):
        told = predicted.model_dump_json(exclude_none=True, exclude_defaults=True)
        annotations[PREDICTION] = told
    return annotations


def _machine(workflow: Workflow) -> dict[str, str]:
    """Return the state machine and the names of its tasks, compressed, in parts."""
    told = json.dumps({"machine": workflow.machine, "tasks": list(workflow.by_name)})
    packed = b64encode(zlib.compress(told.encode(), 9)).decode()
    parts = [packed[start : start + _PART] for start in range(0, len(packed), _PART)]
    if len(parts) > _MOST_PARTS:
        raise ChironError(
            "machine-too-large",
            f"the state machine of {workflow.name} takes {len(packed) >> 10} KiB of annotations, "
            f"and a function can have {_PART * _MOST_PARTS >> 10}: take a planner other than "
            "one-to-one, whose wraps have it in their code",
        )
    return {_part(number): part for number, part in enumerate(parts)}


def _part(number: int) -> str:
    return f"{MACHINE}.{number}" if number else MACHINE


def read_machine(annotations: Mapping[str, str]) -> tuple[dict[str, Any], list[str]] | None:
    """Return the state machine of `annotate` and its tasks' names by number; None without one."""
    parts = list(takewhile(bool, (annotations.get(_part(each), "") for each in count())))
    if not parts:
        return None
    told = parse_json(zlib.decompress(b64decode("".join(parts))), f"annotation {MACHINE}")
    return told["machine"], told["tasks"]


def answering(entry: FunctionStatus, functions: Iterable[FunctionStatus]) -> FunctionStatus:
    """Return the newest successor of `entry`; `entry` itself if it was deployed after them."""
    wanted = identity(entry.annotations)
    behind = [
        function
        for function in functions
        if function.annotations.get(ROLE) == SUCCESSOR
        and identity(function.annotations) == wanted
        and (function.since >= entry.since or function.name == entry.env_vars.get(ROUTE))
    ]
    return max(behind, key=lambda function: function.since, default=entry)


def identity(annotations: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the workflow and the planner of a function with these annotations."""
    return annotations.get(WORKFLOW), annotations.get(PLANNER)


def read_functions(function: FunctionStatus) -> tuple[str, ...]:
    """Return the functions of stack.yaml that a deployed function runs: itself if it is no wrap."""
    return tuple(function.annotations.get(FUNCTIONS, function.name).split(","))


def read_called(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the functions that a wrap with these annotations calls."""
    return tuple(filter(None, annotations.get(CALLED, "").split(",")))


def read_flow(annotations: Mapping[str, str]) -> TaskFlow:
    return TaskFlow(**parse_json(annotations[FLOW], "annotation chiron.flow"))


def read_needed(annotations: Mapping[str, str]) -> float | None:
    """Return the replicas that `annotate` wrote; None if the plan has no rate."""
    return float(annotations[NEEDED]) if NEEDED in annotations else None


def read_prediction(annotations: Mapping[str, str]) -> DeployedPrediction | None:
    """Return the prediction that `annotate` wrote; None if there is none."""
    if PREDICTION not in annotations:
        return None
    what = f"annotation {PREDICTION}"
    return validate(DeployedPrediction, parse_json(annotations[PREDICTION], what), what)
