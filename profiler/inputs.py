"""What every function of a workflow gets: found by running the workflow with the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workflow.data import resolve
from workflow.errors import ChironError
from workflow.model import Task, Workflow
from workflow.reference import Handler, run_reference


@dataclass(frozen=True)
class Reference:
    """How to run functions without deploying them; each run may take `limit_s` seconds."""

    handlers: Mapping[str, Handler]
    environment: Mapping[str, str]
    limit_s: float


def find_inputs(
    workflow: Workflow,
    payloads: Sequence[bytes],
    reference: Reference,
    failures: dict[str, ChironError],
) -> dict[str, list[bytes]]:
    """The inputs of the first task that uses a function, one for each of `payloads`.

    Where the workflow fails, what comes before the failure and beside it still has its inputs, and
    `failures` gets why the others have none.
    """
    requests: dict[str, list[bytes]] = {}
    for payload in payloads:
        inputs = _whole(workflow, payload, reference)
        if inputs is None:
            inputs = _task_by_task(workflow, payload, reference, failures)
        for function in workflow.functions:
            first = next(task.name for task in workflow.tasks if task.function == function)
            if first in inputs:
                requests.setdefault(function, []).append(inputs[first].encode())
    return requests


def _whole(workflow: Workflow, payload: bytes, reference: Reference) -> dict[str, str] | None:
    try:
        return run_reference(
            workflow,
            reference.handlers,
            payload,
            environment=reference.environment,
            timeout_s=reference.limit_s,
        ).inputs
    except ChironError as error:
        if error.code == "bad-request":
            raise
        return None


def _task_by_task(
    workflow: Workflow, payload: bytes, reference: Reference, failures: dict[str, ChironError]
) -> dict[str, str]:
    """The inputs that are known when every task runs in a process of its own."""
    inputs: dict[str, str] = {}
    outputs: dict[str, str] = {}
    for task in (workflow.by_name[name] for stage in workflow.stages for name in stage):
        missing = [name for name in task.predecessors if name not in outputs]
        if missing:
            if task.function not in failures:
                failures[task.function] = _unreached(task, workflow.by_name[missing[0]])
            continue
        inputs[task.name] = resolve(task.source, payload.decode(), outputs)
        try:
            outputs[task.name] = _alone(task, inputs[task.name], reference)
        except ChironError as error:
            if task.function not in failures:
                failures[task.function] = error
    return inputs


def _alone(task: Task, text: str, reference: Reference) -> str:
    alone = Workflow(task.function, (Task(task.name, task.function, None),), task.name)
    try:
        return run_reference(
            alone,
            reference.handlers,
            text.encode(),
            environment=reference.environment,
            timeout_s=reference.limit_s,
        ).output
    except ChironError as error:
        message = error.message if error.functions else f"function {task.function}: {error.message}"
        named = [task.function]
        raise ChironError(error.code, message, functions=named, status=error.status) from None


def _unreached(task: Task, before: Task) -> ChironError:
    message = (
        f"function {task.function} has no input to be profiled with: {before.function}, "
        "which comes before it, failed"
    )
    return ChironError("no-input", message, functions=[task.function])
