"""Profiles a workflow: every function alone, with the inputs that it really gets."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from openfaas.handlers import find_handler
from openfaas.requirements import read_requirements
from openfaas.stack import read_stack
from profiler.forked import with_forks
from profiler.function_profile import function_profile
from profiler.inputs import inputs_of, run_alone
from profiler.invocation import Solo
from profiler.launcher import SoloLauncher, Starter
from profiler.payloads import payloads
from profiler.permission import require_tracing
from profiler.placing import alone, alone_under_strace
from profiler.sampling import Beside, sample
from profiler.sandbox import Sandbox, find_sandbox
from profiler.traced_runs import Attached, Launched, Tracer
from workflow.answer import ExpectedAnswer
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder
from workflow.profile import FunctionProfile, Profile

Progress = Callable[[str], None]

SAMPLES = 20
#: For how long functions whose latency varies may be run more often, in seconds: all of them
#: together, and each.
_FURTHER_S = 20.0
_FURTHER_EACH_S = 6.0
#: A workflow that takes longer, in seconds, is run once for what it answers, else three times.
_SLOW_S = 20.0


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
    beside: Beside | None = None,
) -> Profile:
    """Measure every function of the workflow in `folder` where `launcher` deploys it.

    Parameters
    ----------
    samples
        About how many untraced runs of each function; slow functions get fewer, and those whose
        latency varies get more.
    progress
        Told in a few words what is being done.
    probe_alone
        Whether to make do with the probe of the GIL where strace is missing or may not trace.
    beside
        Called after every untraced run: what it measures sees the same machine.

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
    failures = _Failures(say)
    profiles: dict[str, FunctionProfile] = {}
    say(f"deploying {len(handlers)} functions, each alone")
    with ExitStack() as stack:
        running = stack.enter_context(alone(launcher.launch, folder, failures))
        say("running the workflow for the inputs of its functions")
        begun = time.monotonic()
        runs = [run_alone(folder.workflow, each, running.run, failures) for each in requests]
        slow = time.monotonic() - begun > _SLOW_S * len(requests)
        inputs = inputs_of(folder.workflow, runs)
        answers = [runs[0].output]

        def answer_again() -> None:
            if not (failures or slow):
                again = run_alone(folder.workflow, requests[0], running.run, failures)
                answers.append(again.output)

        answer_again()
        solos = running.solos(inputs)
        if failures.keys() >= solos.keys():
            raise IncompleteProfileError(_profile(folder, {}), failures)
        tracers = stack.enter_context(_tracers(strace, launcher, folder, solos, failures))
        further_s = min(_FURTHER_EACH_S, _FURTHER_S / len(solos))
        for function, solo in solos.items():
            if function in failures:
                continue
            say(f"profiling {function}")
            with failures.of(function):
                sandbox = find_sandbox(solo.wrap, solo.gateway.url)
                tracer = tracers(function, sandbox)
                taken = sample(solo, sandbox, tracer, samples, further_s=further_s, beside=beside)
                profiles[function] = function_profile(taken, sandbox.runtime(), handlers[function])
        answer_again()  # clocks have gone on since
    if profiles:
        say("running them in forked processes")
        # Only when the others are gone, since the Community Edition holds 15 functions.
        with alone(launcher.launch, folder, failures, forked=True) as running:
            for function, solo in running.solos(inputs).items():
                with failures.of(function):
                    profiles[function] = with_forks(profiles[function], solo)
    measured = {name: one for name, one in profiles.items() if name not in failures}
    if failures:
        raise IncompleteProfileError(_profile(folder, measured), failures)
    known = ExpectedAnswer.learned(requests[0], [text for text in answers if text is not None])
    if known.varies or known.any_order:
        say(f"answers vary and are not compared at {', '.join(known.varies + known.any_order)}")
    return _profile(folder, measured).model_copy(update={"answer": known})


def _profile(folder: WorkflowFolder, functions: dict[str, FunctionProfile]) -> Profile:
    return Profile(format=1, workflow=folder.workflow.name, functions=functions)


class _Failures(dict[str, ChironError]):
    """Why functions could not be profiled; told as soon as it is known."""

    def __init__(self, say: Progress) -> None:
        super().__init__()
        self._say = say

    def __setitem__(self, function: str, error: ChironError) -> None:
        self._say(error.message)
        super().__setitem__(function, error)

    @contextmanager
    def of(self, function: str) -> Iterator[None]:
        """Keeps what fails in the block as the function's, so that the others go on."""
        try:
            yield
        except ChironError as error:
            self[function] = error


@contextmanager
def _tracers(
    strace: str | None,
    launcher: SoloLauncher,
    folder: WorkflowFolder,
    solos: Mapping[str, Solo],
    failures: dict[str, ChironError],
) -> Iterator[Callable[[str, Sandbox], Tracer | None]]:
    """What runs functions under strace: launched with it where the launcher can do that."""
    if strace is None:
        yield lambda *_: None
    elif isinstance(launcher, Starter):
        with alone_under_strace(strace, launcher, folder, failures) as (traced, outputs):
            yield lambda function, _: Launched(
                traced.solo(function, solos[function].requests), outputs[function]
            )
    else:
        yield lambda function, sandbox: Attached(solos[function], strace, sandbox.pid)


def _strace(say: Progress, *, probe_alone: bool) -> str | None:
    try:
        return require_tracing(os.environ)
    except ChironError as error:
        if not probe_alone:
            raise
        say(f"periods by the probe of the GIL alone: {error.message}")
        return None


def _handlers(folder: WorkflowFolder) -> dict[str, Path]:
    """The handler folder of every function, checked before anything is deployed."""
    stack = read_stack(folder.stack_file, os.environ)
    found = [find_handler(stack, name, folder.path) for name in folder.workflow.functions]
    for handler in found:
        read_requirements(handler.function, handler.folder)  # better now than after measuring
    return {handler.function: handler.folder for handler in found}


def _nobody(_: str) -> None:
    """Progress that nobody asked for."""
