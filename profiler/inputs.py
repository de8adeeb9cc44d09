"""What every function of a workflow gets and gives: its tasks run one after another, each alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from workflow.data import bytes_of, resolve, text_of
from workflow.errors import ChironError
from workflow.model import Workflow

#: Runs a function, alone where it is deployed, on an input; its output.
Run = Callable[[str, str], str]
#: Characters of an input that an error shows.
_SHOWN = 80


@dataclass
class WorkflowRun:
    """One run of a workflow: the inputs and outputs of the tasks that ran.

    ``output`` is the workflow's; None where a task that it needs did not run.
    """

    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    output: str | None = None


def run_alone(
    workflow: Workflow, request: bytes, run: Run, failures: dict[str, ChironError]
) -> WorkflowRun:
    """Run every task of `workflow` in the order of the stages, on what others gave to `request`.

    Where a function fails, `failures` gets why; so it does for those that come after it and have
    no input, while the others still run. Functions that `failures` has already are not run.

    Raises ``not-text`` as `workflow.data.resolve` does.
    """
    text = text_of(request)
    done = WorkflowRun()
    for task in (workflow.by_name[name] for stage in workflow.stages for name in stage):
        if task.function in failures:
            continue
        missing = [name for name in task.predecessors if name not in done.outputs]
        if missing:
            message = (
                f"function {task.function} has no input to be profiled with: "
                f"{workflow.function_of(missing[0])}, which comes before it, failed"
            )
            failures[task.function] = ChironError("no-input", message, functions=[task.function])
            continue
        done.inputs[task.name] = resolve(task.source, text, done.outputs)
        try:
            done.outputs[task.name] = run(task.function, done.inputs[task.name])
        except ChironError as error:
            asked = done.inputs[task.name]
            shown = asked if len(asked) <= _SHOWN else f"{asked[:_SHOWN]}..."
            message = f"{error.message}; its input was {shown or 'empty'}"
            failures[task.function] = ChironError(
                error.code, message, functions=error.functions, status=error.status
            )
    if len(done.outputs) == len(workflow.tasks):
        done.output = resolve(workflow.output, text, done.outputs)
    return done


def inputs_of(workflow: Workflow, runs: Iterable[WorkflowRun]) -> dict[str, list[bytes]]:
    """The inputs of the first task that uses a function, one for each of `runs`."""
    requests: dict[str, list[bytes]] = {}
    for run in runs:
        for function in workflow.functions:
            first = next(task.name for task in workflow.tasks if task.function == function)
            if first in run.inputs:
                requests.setdefault(function, []).append(bytes_of(run.inputs[first]))
    return requests
