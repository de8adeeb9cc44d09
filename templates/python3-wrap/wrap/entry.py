"""When a task may run: the loop over the workflow's stages, in the wrap that gets its requests."""

from __future__ import annotations

from wrap.data import Data
from wrap.declaration import Entry
from wrap.errors import TaskError
from wrap.messages import Job, Result, Watch, outputs
from wrap.runtime import Runtime
from wrap.stage import run_stage


def run_workflow(
    runtime: Runtime,
    entry: Entry,
    request: str,
    deadline: float,
    watch: Watch,
    execution: str = "",
) -> tuple[str, list[Result]]:
    """The workflow's output for `request`, and how each task went; `execution` marks the log.

    Raises
    ------
    TaskError
        A task failed, or time ran out, or the workflow ends in a Fail state.
    """
    data = Data(request)
    results: list[Result] = []
    for number, remotes in enumerate(entry.stages):
        processes = runtime.wrap.stages.get(number, [])
        placed = [*processes, *remotes.values()]
        inputs = data.inputs(entry.inputs, (task for tasks in placed for task in tasks))
        job = Job(number, inputs, watch=watch, execution=execution)
        found = run_stage(runtime, job, processes, remotes, deadline)
        data.add(outputs(found))
        results += found
    if entry.fail is not None:
        raise TaskError("workflow-failed", ": ".join(entry.fail))
    return data.resolve(entry.output), results
