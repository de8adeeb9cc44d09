"""Profiles a workflow: every function alone, with the inputs that it really gets."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from openfaas.handlers import Handler, find_handler
from openfaas.stack import environment, read_stack
from profiler.forked import with_forks
from profiler.function_profile import function_profile
from profiler.inputs import Reference, find_inputs
from profiler.invocation import Solo
from profiler.launcher import Placed, SoloLauncher
from profiler.payloads import payloads
from profiler.permission import require_tracing
from profiler.sampling import sample
from profiler.sandbox import find_sandbox
from profiler.solo import solo_plan, solo_workflow
from workflow import reference
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder
from workflow.profile import FunctionProfile, Profile

Progress = Callable[[str], None]

SAMPLES = 20
#: How long the workflow may take when it is run for the inputs of its functions, in seconds.
REFERENCE_LIMIT_S = 60.0


class IncompleteProfileError(ChironError):
    """Some functions could not be profiled; `profile` has the others."""

    def __init__(self, profile: Profile, failures: Mapping[str, ChironError]) -> None:
        first = next(iter(failures.values()))
        message = first.message
        if len(failures) > 1 or profile.functions:
            message += f"; the profile lacks {', '.join(failures)}"
        super().__init__(first.code, message, functions=failures, status=first.status)
        self.profile = profile


def profile(
    folder: WorkflowFolder,
    launcher: SoloLauncher,
    *,
    samples: int = SAMPLES,
    progress: Progress | None = None,
    probe_alone: bool = False,
    reference_limit_s: float = REFERENCE_LIMIT_S,
) -> Profile:
    """Measure every function of the workflow in `folder` where `launcher` deploys it.

    Parameters
    ----------
    samples
        About how many untraced runs of each function; slow functions get fewer.
    progress
        Told in a few words what is being done.
    probe_alone
        Whether to make do with the probe of the GIL where strace is missing or may not trace.
    reference_limit_s
        How long the workflow may take when it is run for the inputs of its functions.

    Raises
    ------
    IncompleteProfileError
        Functions fail, or do not end, or are not to be found on this machine; it has the
        profile of all others.
    ChironError
        ``no-strace`` or ``no-ptrace`` before anything is deployed; and what reading the folder
        and deploying raise.

    References
    ----------
    Chiron (SC'23), §3.2.
    """
    say = progress or _nobody
    strace = _strace(say, probe_alone=probe_alone)
    requests = payloads(folder)
    handlers = _handlers(folder)
    alone = solo_workflow(folder.workflow)
    plan = solo_plan(alone)
    say(f"deploying {len(plan.wraps)} functions, each alone")
    with launcher.launch(alone, folder, plan) as deployment:
        say("running the workflow for the inputs of its functions")
        variables = {"gateway_url": deployment.gateway.url}
        how = Reference(handlers, variables, reference_limit_s)
        inputs = find_inputs(folder.workflow, requests, how)
        profiles, failures = {}, inputs.failures
        for function, wrap in zip(alone.functions, deployment.names, strict=True):
            if function in failures:
                continue
            say(f"profiling {function}")
            one = _Alone(deployment, wrap, handlers[function], strace)
            try:
                profiles[function] = one.profile(function, inputs.requests[function], samples)
            except ChironError as error:
                say(error.message)
                failures[function] = error
    _add_forks(_Forks(folder, launcher, inputs.requests, say), profiles, failures)
    measured = Profile(format=1, workflow=folder.workflow.name, functions=profiles)
    if failures:
        raise IncompleteProfileError(measured, failures)
    return measured


@dataclass(frozen=True)
class _Alone:
    """A function that is deployed alone."""

    deployment: Placed
    wrap: str
    handler: reference.Handler
    strace: str | None

    def profile(self, function: str, requests: list[bytes], samples: int) -> FunctionProfile:
        gateway = self.deployment.gateway
        sandbox = find_sandbox(self.wrap, gateway.url)
        solo = Solo(gateway, self.wrap, function, requests)
        taken = sample(solo, sandbox, self.strace, samples)
        return function_profile(taken, sandbox.runtime(), self.handler.folder)


@dataclass(frozen=True)
class _Forks:
    """What it takes to run functions in forked processes."""

    folder: WorkflowFolder
    launcher: SoloLauncher
    requests: Mapping[str, list[bytes]]
    say: Progress


def _add_forks(
    forks: _Forks, profiles: dict[str, FunctionProfile], failures: dict[str, ChironError]
) -> None:
    """Measure what forked processes change; move to `failures` what cannot run there.

    Deployed after the others are gone, since the Community Edition holds 15 functions.
    """
    alone = solo_workflow(forks.folder.workflow)
    forks.say("running them in forked processes")
    with forks.launcher.launch(alone, forks.folder, solo_plan(alone, forked=True)) as deployment:
        for function, wrap in zip(alone.functions, deployment.names, strict=True):
            if function not in profiles:
                continue
            solo = Solo(deployment.gateway, wrap, function, forks.requests[function])
            try:
                profiles[function] = with_forks(profiles[function], solo)
            except ChironError as error:
                forks.say(error.message)
                failures[function] = error
                del profiles[function]


def _strace(say: Progress, *, probe_alone: bool) -> str | None:
    try:
        return require_tracing(os.environ)
    except ChironError as error:
        if not probe_alone:
            raise
        say(f"periods by the probe of the GIL alone: {error.message}")
        return None


def _handlers(folder: WorkflowFolder) -> dict[str, reference.Handler]:
    stack = read_stack(folder.stack_file, os.environ)

    def read(handler: Handler) -> reference.Handler:
        variables = environment(stack.function(handler.function), folder.path)
        return reference.Handler(handler.folder, handler.style, variables)

    names = folder.workflow.functions
    return {name: read(find_handler(stack, name, folder.path)) for name in names}


def _nobody(_: str) -> None:
    """Progress that nobody asked for."""
