"""What every function of a workflow gets and gives: its tasks run one after another, each alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from deployment.function_error import FunctionFailedError
from workflow.data import bytes_of, resolve, text_of
from workflow.errors import ChironError
from workflow.execute import execute
from workflow.model import Workflow
from workflow.trace import Instance, task_of

#: Runs a function, alone where it is deployed, on an input; its output.
Run = Callable[[str, str], str]
#: Characters of an input that an error shows.
_SHOWN = 80


@dataclass
class WorkflowRun:
    """One run of a workflow: the inputs and outputs of the tasks that ran.

    ``output`` is the workflow's; None where a task that it needs did not run. A workflow that
    decides while it runs has in `trace` what it did; inputs and outputs are those of instances.
    """

    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    output: str | None = None
    trace: tuple[Instance, ...] = ()


def run_alone(
    workflow: Workflow, request: bytes, run: Run, failures: dict[str, ChironError]
) -> WorkflowRun:
    """Run every task of `workflow` in the order of the stages, on what others gave to `request`.

    Where a function fails, `failures` gets why; so it does for those that come after it and have
    no input, while the others still run. Functions that `failures` has already are not run.

    Raises ``not-text`` as `workflow.data.resolve` does.
    """
    if workflow.machine is not None:
        return _decided(workflow, request, run, failures)
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


def _decided(
    workflow: Workflow, request: bytes, run: Run, failures: dict[str, ChironError]
) -> WorkflowRun:
    """What `run_alone` does where the workflow decides: failures may be what it expects."""
    failed = dict[str, ChironError]()

    def run_or_fail(function: str, text: str) -> str:
        try:
            return run(function, text)
        except FunctionFailedError as error:
            failed[function] = error
            raise error.failure from error

    done = execute(workflow, request, run_or_fail)
    if done.error is not None:
        failures.update(failed)
        if not failed:
            raise ChironError("workflow-failed", f"{done.error.name}: {done.error.cause}")
    return WorkflowRun(done.inputs, done.outputs, done.output, tuple(done.trace))


def inputs_of(workflow: Workflow, runs: Sequence[WorkflowRun]) -> dict[str, dict[int, bytes]]:
    """An input of every function, by the places of those of `runs` that reached it.

    It is that of the first task that uses the function, and of several instances of that task the
    one of median length.
    """
    requests: dict[str, dict[int, bytes]] = {}
    for place, run in enumerate(runs):
        known: dict[str, list[str]] = {}
        for name, text in run.inputs.items():
            if not run.trace:
                known[name] = [text]
            elif name in run.outputs:  # what fails shows nothing of how long it takes
                known.setdefault(task_of(name), []).append(text)
        for function in workflow.functions:
            names = (task.name for task in workflow.tasks if task.function == function)
            first = next((name for name in names if name in known), None)
            if first is not None:
                text = sorted(known[first], key=len)[len(known[first]) // 2]
                requests.setdefault(function, {})[place] = bytes_of(text)
    return requests
