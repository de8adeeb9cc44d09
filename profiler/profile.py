"""Profiles a workflow: every function alone, with the input that it really gets."""

from __future__ import annotations

import os
from collections.abc import Callable

from openfaas.handlers import Handler, find_handler
from openfaas.stack import environment, read_stack
from profiler.function_profile import function_profile
from profiler.invocation import Solo
from profiler.launcher import Deployment, Launcher
from profiler.permission import require_tracing
from profiler.sampling import sample
from profiler.sandbox import find_sandbox
from profiler.solo import solo_plan, solo_workflow
from workflow import reference
from workflow.folder import WorkflowFolder
from workflow.model import Workflow
from workflow.profile import Profile

Progress = Callable[[str], None]

SAMPLES = 20


def profile(
    folder: WorkflowFolder,
    launcher: Launcher,
    *,
    samples: int = SAMPLES,
    progress: Progress | None = None,
) -> Profile:
    """Measure every function of the workflow in `folder` on the gateway of `launcher`.

    Parameters
    ----------
    samples
        About how many untraced runs of each function; slow functions get fewer.
    progress
        Told in a few words what is being done.

    Raises
    ------
    ChironError
        ``no-strace`` or ``no-ptrace`` before anything is deployed; ``function-failed`` with the
        function's name; ``no-process`` where the functions do not run on this machine; and what
        reading the folder and deploying raise.

    References
    ----------
    Chiron (SC'23), §3.2.
    """
    say = progress or _nobody
    strace = require_tracing(os.environ)
    handlers = _handlers(folder)
    alone = solo_workflow(folder.workflow)
    plan = solo_plan(alone)
    say(f"deploying {len(plan.wraps)} functions, each alone")
    with launcher.launch(alone, folder, plan) as deployment:
        say("running the workflow once for the inputs of its functions")
        inputs = _inputs(folder, handlers, deployment)
        profiles = {}
        for function, wrap in zip(alone.functions, deployment.names, strict=True):
            say(f"profiling {function}")
            sandbox = find_sandbox(wrap, deployment.gateway.url)
            solo = Solo(deployment.gateway, wrap, function, inputs[function])
            taken = sample(solo, sandbox, strace, samples)
            folder_of = handlers[function].folder
            profiles[function] = function_profile(taken, sandbox.runtime(), folder_of)
    return Profile(format=1, workflow=folder.workflow.name, functions=profiles)


def _handlers(folder: WorkflowFolder) -> dict[str, reference.Handler]:
    stack = read_stack(folder.stack_file, os.environ)

    def read(handler: Handler) -> reference.Handler:
        variables = environment(stack.function(handler.function), folder.path)
        return reference.Handler(handler.folder, handler.style, variables)

    names = folder.workflow.functions
    return {name: read(find_handler(stack, name, folder.path)) for name in names}


def _inputs(
    folder: WorkflowFolder, handlers: dict[str, reference.Handler], deployment: Deployment
) -> dict[str, bytes]:
    """What each function gets: the input of the first task that uses it."""
    run = reference.run_reference(
        folder.workflow,
        handlers,
        folder.payload(),
        environment={"gateway_url": deployment.gateway.url},
    )
    return {
        function: run.inputs[_first_task(folder.workflow, function)].encode()
        for function in folder.workflow.functions
    }


def _first_task(workflow: Workflow, function: str) -> str:
    return next(task.name for task in workflow.tasks if task.function == function)


def _nobody(_: str) -> None:
    """Progress that nobody asked for."""
