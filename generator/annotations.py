"""What a deployed function says of itself, so that `invoke` needs nothing but the gateway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from generator.declaration import NumberedSource, numbered, task_numbers
from workflow.documents import parse_json, validate
from workflow.model import Workflow
from workflow.plan import Plan, PredictedRange

_PREFIX = "chiron."
WORKFLOW = f"{_PREFIX}workflow"
MODEL = f"{_PREFIX}model"
ROLE = f"{_PREFIX}role"
FLOW = f"{_PREFIX}flow"
PROMISE = f"{_PREFIX}promise"


@dataclass(frozen=True)
class TaskFlow:
    """The place of a task that the client calls: its stage, its input, the workflow's output.

    ``fail`` is error and cause where the workflow ends in a Fail state.
    """

    task: int
    stage: int
    source: NumberedSource
    output: NumberedSource
    fail: list[str] | None = None


class Promise(PredictedRange):
    """What a plan promises: its CPUs, and the predicted latency."""

    cpus: int


def annotate(plan: Plan, index: int, workflow: Workflow) -> dict[str, str]:
    """The annotations of the wrap at `index`: tasks by number, not by the names users typed."""
    annotations = {WORKFLOW: workflow.name, MODEL: plan.model, ROLE: "wrap"}
    if plan.called_by_client:
        wrap = plan.wraps[index]
        numbers = task_numbers(workflow)
        task = workflow.by_name[wrap.tasks[0]]
        failure = workflow.failure
        flow = {
            "task": numbers[task.name],
            "stage": wrap.stages[0].stage,
            "source": numbered(task.source, numbers),
            "output": numbered(workflow.output, numbers),
            "fail": [failure.error, failure.cause] if failure else None,
        }
        return annotations | {ROLE: "task", FLOW: json.dumps(flow)}
    return annotations | {ROLE: "entry"} | _promised(plan) if index == 0 else annotations


def read_flow(annotations: Mapping[str, str]) -> TaskFlow:
    """The flow that `annotate` wrote."""
    return TaskFlow(**parse_json(annotations[FLOW], "annotation chiron.flow"))


def read_promise(annotations: Mapping[str, str]) -> Promise | None:
    """The promise that `annotate` wrote; None where nothing was predicted."""
    if PROMISE not in annotations:
        return None
    what = f"annotation {PROMISE}"
    return validate(Promise, parse_json(annotations[PROMISE], what), what)


def _promised(plan: Plan) -> dict[str, str]:
    if plan.predicted is None:
        return {}
    predicted = plan.predicted.model_dump(include={"latency_ms", "low_ms", "high_ms"})
    return {PROMISE: json.dumps({"cpus": plan.cpus} | predicted)}
