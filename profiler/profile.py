"""Profile a workflow: every function alone, with the inputs that the workflow passes to it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from chiron.deployment.background_load import (
    LONG_LOOK_S,
    LOOK_S,
    disturbance,
    mean_share,
    others_share,
)
from chiron.deployment.deploy import Progress
from chiron.deployment.launcher import Launcher
from chiron.deployment.local_launcher import LocalLauncher
from chiron.openfaas.handlers import Handler, read_requirements
from chiron.openfaas.languages import called_in, find_handler, settled
from chiron.openfaas.stack import read_stack
from chiron.openfaas.store_function import with_store_function
from chiron.predictor.mechanisms import DEFAULT_MECHANISM
from chiron.profiler.function_profile import (
    WITH_GIL,
    at_one_speed,
    function_profile,
    lost_in,
    mixed,
    with_code,
    with_forks,
)
from chiron.profiler.holding import profiled_source
from chiron.profiler.inputs import (
    WorkflowRun,
    failures_in,
    inputs_of,
    run_alone,
    typical_tasks,
    weighed,
)
from chiron.profiler.invocation import Solo
from chiron.profiler.progress import Failures, WorkflowRuns
from chiron.profiler.sampling import FEWEST_ROUNDS, Beside, in_turn, sample
from chiron.profiler.sandbox import Sandbox, find_sandbox
from chiron.profiler.solo import Alone, alone, alone_under_strace
from chiron.profiler.tracer import Attached, Launched, Tracer, require_tracing
from chiron.profiler.tried import with_tried
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Workflow
from chiron.workflow.payloads import Payload
from chiron.workflow.profile import FunctionProfile, PayloadProfile, Profile
from chiron.wrap.functions.leftovers import GIL_ENABLED

SAMPLES = 20
#: The time for extra runs of functions whose latency varies, in seconds: for all functions
#: together, and for each function; a brief profile takes `_BRIEFLY` of it.
_FURTHER_S = 20.0
_FURTHER_EACH_S = 6.0
_BRIEFLY = 0.3
#: A workflow that takes longer than this, in seconds, runs once for its answers, not three times.
_SLOW_S = 20.0


class IncompleteProfileError(ChironError):
    """Some functions could not be profiled; `profile` has the other functions."""

    def __init__(self, profile: Profile, failures: Mapping[str, ChironError]) -> None:
        first = next(iter(failures.values()))
        message = first.message
        if len(failures) > 1 or profile.functions:
            message += f"; the profile lacks {', '.join(failures)}"
        super().__init__(first.code, message, functions=failures, status=first.status)
        self.profile = profile


def _unknown(name: str, workflow: Workflow, runs: Sequence[WorkflowRun]) -> str:
    """Return the warning for a function that answered no payload in time."""
    if name in lost_in(workflow, runs):
        return (
            f"function {name} is late, or ends its process, with every payload: its profile has no "
            "more than how long that takes, as computing"
        )
    return (
        f"function {name} is not run with any payload: none reaches it, or a branch beside it "
        "fails first; nothing is known of it but its code and its imports"
    )


def profile(
    folder: WorkflowFolder,
    launcher: Launcher | LocalLauncher,
    *,
    samples: int = SAMPLES,
    brief: bool = False,
    progress: Progress | None = None,
    probe_alone: bool = False,
    beside: Beside | None = None,
) -> Profile:
    """Measure every function of the workflow in `folder` where `launcher` deploys it.

    Args:
        samples: the approximate number of untraced runs of each function, over all payloads. Slow
            functions get fewer runs; functions whose latency varies get more.
        brief: whether varying functions get few further runs: for a deployment, which waits and is
            measured anyway.
        progress: called with a short description of each step.
        probe_alone: whether to use only the GIL probe if strace is missing or may not trace.
        beside: called after every untraced run, so that its own measurement sees the same machine.

    Raises IncompleteProfileError if functions fail, do not end, or are not found on this machine;
    it has the profile of all other functions. Raises ChironError: ``no-strace`` or ``no-ptrace``
    before anything is deployed; and the errors of reading the folder and deploying.

    Source: Chiron (SC'23), §3.2.
    """
    say = progress or (lambda _: None)
    strace = _strace(say, probe_alone=probe_alone)
    taking = _Profiling(folder, launcher, say)
    say(f"deploying each function alone ({len(folder.workflow.functions)})")
    with ExitStack() as stack:
        running = stack.enter_context(alone(launcher.launch, folder, taking.failures))
        solos = taking.run_workflow(running)
        tracers = stack.enter_context(_tracers(strace, launcher, folder, taking.failures))
        further_s = _FURTHER_S * (_BRIEFLY if brief else 1.0)
        profiles = taking.sampled(solos, tracers, samples, further_s, beside)
    if profiles:
        say("running them in forked processes")
        # Only after the other wraps are removed: the Community Edition allows 15 functions.
        with alone(
            launcher.launch, folder, taking.failures, mechanism=DEFAULT_MECHANISM
        ) as running:
            profiles |= taking.forked(running, profiles)
        profiles = taking.tried(profiles)
    return taking.finished(profiles)


class _Profiling:
    """A profile in progress: the observations of the workflow and its functions so far."""

    def __init__(
        self, folder: WorkflowFolder, launcher: Launcher | LocalLauncher, say: Progress
    ) -> None:
        self.failures = Failures(say)
        self._workflow_runs = WorkflowRuns(say)
        self._folder, self._launcher, self._say = folder, launcher, say
        self._payloads = folder.payloads()
        for warning in folder.warnings():
            say(f"warning: {warning}")
        self._handlers = _handlers(folder)
        self._warnings = list[str]()
        self._looks = list[float | None]()
        #: Repeated runs of the workflow with each payload; a slow workflow runs once.
        self._runs: list[list[WorkflowRun]] = []
        self._slow = False

    def run_workflow(self, running: Alone) -> dict[str, Solo]:
        """Run the workflow to collect its functions' inputs; return the functions with inputs."""
        self._running, self._fresh_mib = running, running.resident_mib()
        self._say("running the workflow for the inputs of its functions")
        workflow = self._folder.workflow
        begun = time.monotonic()
        self._run_all()
        self._slow = time.monotonic() - begun > _SLOW_S * len(self._payloads)
        self._run_again()
        self._typical = [typical_tasks(workflow, each) for each in zip(*self._runs, strict=True)]
        self._inputs = inputs_of(self._runs[0], self._typical)
        self._requests = {name: list(each.values()) for name, each in self._inputs.items()}
        for name in workflow.functions:
            if name not in self._inputs and name not in self.failures:
                self._warn(_unknown(name, workflow, self._runs[0]))
        solos = running.solos(self._requests)
        if self.failures and self.failures.keys() >= solos.keys():
            raise IncompleteProfileError(_profile(self._folder, {}), self.failures)
        return solos

    def sampled(
        self,
        solos: Mapping[str, Solo],
        tracers: Callable[[Solo, Sandbox], Tracer | None],
        samples: int,
        further_s: float,
        beside: Beside | None,
    ) -> dict[str, list[FunctionProfile]]:
        """Return each function's profiles, one per payload that reaches it."""
        # Profiling a function takes about as long with several payloads as with one.
        number = len(self._payloads)
        count = min(samples, max(FEWEST_ROUNDS, -(-samples // number)))
        each_s = min(_FURTHER_EACH_S, further_s / max(1, len(solos))) / number

        def runs_of(solo: Solo) -> Generator[None, None, list[FunctionProfile]]:
            sandbox = find_sandbox(solo.wrap, solo.gateway.url, solo.trace_key)
            known = list[FunctionProfile]()
            for one in self._each(solo):
                one.warm_up(self._warm_up_s(solo))
                taken = yield from sample(
                    *(one, sandbox, tracers(one, sandbox), count),
                    fresh_mib=self._fresh_mib.get(solo.function),
                    further_s=each_s,
                    say=self._say,
                    beside=beside,
                )
                handler = self._handlers.get(solo.function)
                known.append(function_profile(taken, sandbox.runtime(), handler))
            if GIL_ENABLED in taken.changes.everywhere:
                self._say(f"warning: {solo.function} {WITH_GIL}")
            self._looks.append(others_share(LOOK_S))
            self._say(f"profiled {solo.function}")
            return known

        self._looks.append(others_share(LONG_LOOK_S))
        going = {name: runs_of(solo) for name, solo in solos.items() if name not in self.failures}
        profiles = in_turn(going, self.failures.of)
        self._run_again()  # later, so that clocks in answers differ
        return profiles

    def forked(
        self, running: Alone, profiles: Mapping[str, Sequence[FunctionProfile]]
    ) -> dict[str, list[FunctionProfile]]:
        """Return the profiles, extended by the functions' behaviour in forked processes."""

        def forks_of(solo: Solo) -> Generator[None, None, list[FunctionProfile]]:
            known = list[FunctionProfile]()
            for each, one in zip(profiles[solo.function], self._each(solo), strict=True):
                one.warm_up(self._warm_up_s(solo))
                known.append((yield from with_forks(each, one, self._say)))
            for reason in {each.unforkable for each in known if each.unforkable}:
                self._say(f"warning: {solo.function} cannot run in forked processes: {reason}")
            return known

        solos = running.solos(self._requests)
        return in_turn({name: forks_of(solo) for name, solo in solos.items()}, self.failures.of)

    def tried(
        self, profiles: Mapping[str, Sequence[FunctionProfile]]
    ) -> dict[str, list[FunctionProfile]]:
        """Return the profiles, extended by which functions run by the mechanisms to try."""
        known = {name: each for name, each in profiles.items() if name not in self.failures}
        return with_tried(known, self._folder, self._launcher.launch, self._each, self._say)

    def finished(self, profiles: Mapping[str, list[FunctionProfile]]) -> Profile:
        """Return the profile; raise IncompleteProfileError if it lacks a function."""
        measured = at_one_speed(
            {name: each for name, each in profiles.items() if name not in self.failures}
        )
        weights = [payload.weight for payload in self._payloads]
        every = [each for runs in self._runs for each in runs]
        unseen = self._unreached | lost_in(self._folder.workflow, every)
        mix = _profile(
            self._folder,
            {name: with_code(each, self._handlers.get(name)) for name, each in unseen.items()}
            | {
                name: mixed(each, [weights[place] for place in self._inputs[name]])
                for name, each in measured.items()
            },
        )
        if self.failures:
            raise IncompleteProfileError(mix, self.failures)
        payloads = tuple(
            self._payload_profile(number, measured) for number in range(len(self._payloads))
        )
        for line in failures_in(self._folder.workflow, every):
            self._warn(line)
        others = mean_share(self._looks)
        if busy := disturbance(others):
            self._warn(f"profile of {mix.workflow}: {busy} while it was taken: profile again")
        known = {"source": profiled_source(self._folder), "place": self._launcher.place}
        found = {"payloads": payloads, "others": others, "warnings": tuple(self._warnings)}
        return mix.model_copy(update=known | found)

    @property
    def _unreached(self) -> dict[str, FunctionProfile]:
        """The functions that no payload ran, of a workflow that decides at run time."""
        names = self._folder.workflow.functions if self._folder.workflow.machine else ()
        return {
            name: FunctionProfile(latency_ms=0.0, periods=(), idle_mib=self._fresh_mib.get(name))
            for name in names
            if name not in self._inputs
        }

    def _each(self, solo: Solo) -> Iterator[Solo]:
        """Yield the function with each of its inputs alone."""
        for place, request in self._inputs[solo.function].items():
            yield solo.with_input(request, fails=self._typical[place][solo.function].fails)

    def _warm_up_s(self, solo: Solo) -> float:
        handler = self._handlers.get(solo.function)
        return handler.warm_up_s if handler else 0.0

    def _payload_profile(
        self, number: int, measured: Mapping[str, Sequence[FunctionProfile]]
    ) -> PayloadProfile:
        payload, runs = self._payloads[number], [each[number] for each in self._runs]
        several, inputs = len(self._payloads) > 1, self._inputs
        return PayloadProfile(
            name=payload.name,
            weight=payload.weight,
            answer=_answer(self._folder, payload, runs, self._say),
            trace=weighed(self._folder.workflow, runs, self._typical[number]),
            functions={
                name: each[list(inputs[name]).index(number)]
                for name, each in measured.items()
                if several and number in inputs[name]
            },
        )

    def _run_all(self) -> None:
        workflow, number = self._folder.workflow, len(self._runs) + 1
        told = [
            (each, self._workflow_runs.number(number, each.name, self._running.run))
            for each in self._payloads
        ]
        self._runs.append(
            [run_alone(workflow, each.content, run, self.failures) for each, run in told]
        )

    def _run_again(self) -> None:
        if not (self.failures or self._slow):
            self._run_all()

    def _warn(self, line: str) -> None:
        self._warnings.append(line)
        self._say(f"warning: {line}")


def _answer(
    folder: WorkflowFolder, payload: Payload, runs: Sequence[WorkflowRun], say: Progress
) -> ExpectedAnswer:
    # With buckets, each function has a list of its runs' answers, in the order of their ends.
    unordered = tuple(folder.workflow.by_name) if folder.workflow.buckets else ()
    texts = [run.output for run in runs if run.output is not None]
    known = ExpectedAnswer.learned(payload.content, texts, unordered)
    if any(run.fails for run in runs):
        known = known.model_copy(update={"fails": True})
        say(f"{payload.name} ends in a Fail state, which is expected of deployments too")
    if known.varies or (not unordered and known.any_order):
        open_ = ", ".join(known.varies + known.any_order)
        say(f"answers to {payload.name} vary and are not compared at {open_}")
    return known


def _profile(folder: WorkflowFolder, functions: dict[str, FunctionProfile]) -> Profile:
    return Profile(format=1, workflow=folder.workflow.name, functions=functions)


@contextmanager
def _tracers(
    strace: str | None,
    launcher: Launcher | LocalLauncher,
    folder: WorkflowFolder,
    failures: dict[str, ChironError],
) -> Iterator[Callable[[Solo, Sandbox], Tracer | None]]:
    """Yield a factory of tracers, which use strace at launch if the launcher supports that."""
    if strace is None:
        yield lambda *_: None
    elif isinstance(launcher, LocalLauncher):
        with alone_under_strace(strace, launcher, folder, failures) as (traced, outputs):
            yield lambda solo, _: Launched(
                traced.solo(solo.function, solo.requests), outputs[solo.function]
            )
    else:
        yield lambda solo, sandbox: Attached(solo, strace, sandbox)


def _strace(say: Progress, *, probe_alone: bool) -> str | None:
    try:
        return require_tracing(os.environ)
    except ChironError as error:
        if not probe_alone:
            raise
        say(f"periods by the probe of the GIL alone: {error.message}")
        return None


def _handlers(folder: WorkflowFolder) -> dict[str, Handler]:
    """Return the handlers of the functions in wraps, checked before anything is deployed."""
    names = folder.workflow.functions
    stack = settled(read_stack(folder.stack_file, os.environ), folder.path)
    stack = with_store_function(stack, names)
    called = called_in(stack, names)
    found = [find_handler(stack, name, folder.path) for name in names if name not in called]
    for handler in found:
        read_requirements(handler)  # to fail before measuring
    return {handler.function: handler for handler in found}
