"""The verb `deploy`: profiles, calibrates, schedules, generates and deploys, then measures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from chiron.deployment.deploy import (
    Progress,
    remove_outdated,
    removed_on_failure,
    require_own_names,
    require_planned_names,
)
from chiron.deployment.invoke import Invoker
from chiron.deployment.keeping import keep_changes_in
from chiron.deployment.launcher import Launcher, invoker_for
from chiron.deployment.measure import (
    CheckedPayload,
    Invokable,
    Measurement,
    checked_payloads,
    measure,
)
from chiron.deployment.replicas import await_replicas
from chiron.deployment.verdict import BUDGET_S, Trial, Verdict, measured_line
from chiron.deployment.verify import KnownAnswer, verify
from chiron.generator.annotations import ASKED, SOURCE
from chiron.generator.fingerprint import digest, source_of
from chiron.generator.generate import Sources, generate
from chiron.generator.stack_check import check_triggers
from chiron.generator.stores import require_redis, require_store
from chiron.profiler.holding import holding_profile
from chiron.profiler.kept_platform import KeptPlatforms, platform_of
from chiron.profiler.profile import profile as profile_functions
from chiron.scheduler.choices import Choices
from chiron.scheduler.folder_settings import FolderSettings, read_settings
from chiron.scheduler.planners import PLANNERS
from chiron.scheduler.replicas import require_replicas, schedule_load
from chiron.scheduler.schedule import schedule
from chiron.workflow.apart import broken
from chiron.workflow.belonging import require_own, set_aside
from chiron.workflow.documents import Document, dump, write_atomically
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.load import Load
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

#: Requests that measure a finished deployment which need not prove that it keeps the SLO.
SAMPLES = 50


class Try(Document):
    """One plan that was deployed and measured against the SLO.

    Latencies are those at the SLO's percentile: predicted, expected after the earlier tries, and
    measured. ``verdict`` is that of the sequential test, or ``failed`` if the deployment does not
    work; ``said`` is the reason in words. ``cpus`` and ``memory_mib`` are totals of all replicas.
    At a rate, the client sent ``late`` of the requests late.
    """

    cpus: int
    wraps: int
    memory_mib: int
    mechanism: str
    predicted_ms: float
    expected_ms: float
    measured_ms: float | None = None
    requests: int = 0
    over: int = 0
    late: int = 0
    others: float | None = None
    verdict: Verdict | Literal["failed"]
    said: str


class DeploymentReport(Document):
    """The deployed plan, with its prediction and its measurement.

    ``slo_met`` is whether ``percentile`` percent of the requests were within the SLO, and with
    ``tries`` whether that is sure. ``over`` requests exceeded the SLO; at a rate, the client sent
    ``late`` of them late. If no plan meets the SLO and another version served before, that version
    stays and ``functions`` is empty.
    """

    plan: Plan
    measured: Measurement
    functions: tuple[str, ...]
    slo_met: bool
    percentile: float
    over: int
    late: int = 0
    measured_ms: float
    tries: tuple[Try, ...] = ()

    @property
    def sentence(self) -> str:
        """The promised and the measured latencies."""
        slo_ms, percent = self.plan.slo_ms or 0.0, f"{self.percentile:g}"
        took = f"p{percent} {self.measured_ms:.1f} ms"
        cpus, load = self.plan.allocated_cpus, self.plan.under_load
        measured = measured_line(slo_ms, self.measured.samples, self.over, took, cpus)
        promised = "promised" if self.slo_met else "asked"
        rate = f" at {load.load.shown}" if load else ""
        return f"{promised}: {percent} % of requests within {slo_ms:g} ms{rate}; {measured}"

    @property
    def outcome(self) -> str:
        """Whether the SLO is met, and what is deployed if not."""
        slo = f"the SLO of {self.plan.slo_ms or 0.0:g} ms"
        if self.slo_met:
            return f"{slo} is met"
        if not self.tries:
            return f"{slo} is NOT met"
        stays = (
            "the best one is deployed"
            if self.functions
            else "the version that was deployed before stays (--no-prove replaces it)"
        )
        return f"no plan was measured to keep {slo} ({len(self.tries)} tried): {stays}"


@dataclass(frozen=True)
class DeploymentRequest:
    """A workflow folder to deploy, an SLO, and measurements that can be reused.

    A request to the deployment times out after `timeout_s`, by default derived from the prediction.
    With a `load`, the plan has enough replicas to keep the SLO while requests arrive at that rate.
    `check` compares answers with those of the functions alone. With `behind`, the entry of another
    version forwards requests to this deployment.
    """

    folder: WorkflowFolder
    slo_ms: float
    choices: Choices = field(default_factory=Choices)
    profile: Profile | None = None
    platform: Platform | None = None
    #: Possible files of earlier profiles, and the store of platforms; valid ones are reused.
    profile_files: tuple[Path, ...] = ()
    platforms: KeptPlatforms | None = None
    timeout_s: float | None = None
    samples: int = field(default=SAMPLES)
    check: bool = True
    behind: bool = False
    load: Load | None = None

    @property
    def trial(self) -> Trial:
        """A new trial against the SLO, without requests."""
        per_s = self.load.per_s if self.load else None
        return Trial(self.slo_ms, self.choices.percentile, per_s)

    @property
    def shown_load(self) -> str:
        """The load as a phrase for the end of a sentence; empty without a load."""
        return f" at {self.load.shown}" if self.load else ""

    def marks(self, sources: Sources) -> dict[str, str]:
        """Return the annotations by which `chiron watch` recognises the sources and the request."""
        parts = [dump(self.choices), str(self.slo_ms), str(self.timeout_s)]
        parts += [sources.store] if sources.store else []
        parts += [self.load.shown] if self.load else []
        return {SOURCE: source_of(sources), ASKED: digest(parts)}

    def checked(self, profile: Profile, progress: Progress) -> list[CheckedPayload]:
        """Return the payloads, each with the check of its answers against `profile`.

        `progress` gets a line for each payload whose answer is not in the profile.
        """
        return checked_payloads(self.folder, profile, check=self.check, progress=progress)

    def known_answers(self, profile: Profile) -> list[KnownAnswer]:
        """Return the payloads whose answer `profile` has; none without `check`."""
        payloads = self.folder.payloads() if self.check else ()
        pairs = ((each, self.folder.expected(profile, each.content)) for each in payloads)
        return [(payload, expected) for payload, expected in pairs if expected is not None]


@dataclass(frozen=True)
class Prepared:
    """A request with its profile and platform, its sources, and its payloads with checks."""

    request: DeploymentRequest
    sources: Sources
    profile: Profile
    platform: Platform
    checked: list[CheckedPayload]

    def measure_until_sure(
        self, target: Invokable, plan: Plan, trial: Trial, expected_ms: float
    ) -> Measurement:
        """Measure `target`, which runs `plan`, until `trial` ends; raises ``wrong-output``."""
        self._verify(target, plan)
        limit_s = trial.limit_s(expected_ms)
        return measure(
            *(target, self.checked, trial.max_requests, trial.record, limit_s, trial.per_s),
            warm_up_s=self.sources.warm_up_s,
        )

    def measured(self, target: Invokable, plan: Plan, trial: Trial) -> Measurement:
        """Measure as many requests as were asked for, whatever the verdict of `trial`.

        Fewer requests are sent if they would take longer than `BUDGET_S`.

        Raises the errors of rejected answers.
        """
        self._verify(target, plan)
        return measure(
            *(target, self.checked, self.request.samples),
            lambda *sent: trial.record(*sent) and False,
            *(BUDGET_S, trial.per_s),
            warm_up_s=self.sources.warm_up_s,
        )

    def _verify(self, target: Invokable, plan: Plan) -> None:
        verify(target, self.request.folder.workflow, plan, self.request.known_answers(self.profile))

    @contextmanager
    def deployed(
        self, plan: Plan, launcher: Launcher, out: Path, progress: Progress
    ) -> Iterator[tuple[Invoker, list[str]]]:
        """Deploy `plan` under its own names; yield its invoker and the functions that were created.

        If the block fails, these functions are removed; else wraps of an earlier plan are removed.
        """
        request = self.request
        stack_file = self.generate(plan, out)
        require_own_names(launcher.gateway, stack_file)
        there = {function.name: function for function in launcher.gateway.functions()}
        for line in keep_changes_in(stack_file, there):
            progress(f"warning: {line}")
        count = len(plan.wraps)
        progress(f"building and deploying {count} wrap{'s' * (count > 1)}")
        launcher.build(stack_file)
        created = launcher.deploy(stack_file)
        workflow, gateway = request.folder.workflow, launcher.gateway
        seconds = self.sources.timeout_s(plan, request.timeout_s)
        with (
            removed_on_failure(launcher.gateway, created),
            invoker_for(plan, workflow, gateway, seconds) as invoker,
        ):
            await_replicas(launcher.gateway, plan)
            yield invoker, created
        remove_outdated(launcher.gateway, stack_file)

    def generate(self, plan: Plan, out: Path) -> Path:
        """Write plan.json and build/ of `plan` to `out`; return the path of its stack.yaml."""
        write_atomically(out / "plan.json", dump(plan))
        marks = self.request.marks(self.sources)
        return generate(plan, self.sources, out / "build", self.request.timeout_s, marks=marks)


def prepare(
    request: DeploymentRequest, launcher: Launcher, out: Path, progress: Progress
) -> Prepared:
    """Check the workflow to deploy, and measure the profile and platform that the request lacks.

    Writes profile.json and platform.json to `out`.
    """
    request.folder.payloads()  # raises its errors before anything is measured
    if request.load is not None:
        require_replicas(request.folder.workflow, request.choices)
    sources = checked_sources(request, launcher, progress)
    require_planned_names(launcher.gateway, sources, request.choices.planner)
    require_store(request.choices.path, sources.store)
    buckets = request.folder.workflow.buckets
    if buckets is not None and buckets["durable"]:
        require_redis(sources.store)
    profile, platform = measured_parts(request, launcher, out, progress)
    checked = request.checked(profile, progress)
    return Prepared(request, sources, profile, platform, checked)


def deploy(
    request: DeploymentRequest, launcher: Launcher, out: Path, progress: Progress
) -> DeploymentReport:
    """Find, generate, deploy and measure the cheapest deployment that is predicted to meet the SLO.

    Writes profile.json, platform.json, plan.json and build/ to `out`. `progress` is called with a
    line for every step.

    Raises the errors of every step; nothing stays half-deployed.
    """
    prepared = prepare(request, launcher, out, progress)
    plan = plan_for(prepared.request, prepared.profile, prepared.platform, progress)
    trial = request.trial
    with prepared.deployed(plan, launcher, out, progress) as (invoker, _):
        rate = request.shown_load
        progress(f"invoking {request.samples} times{rate}, for {BUDGET_S:g} s at most")
        measured = prepared.measured(invoker, plan, trial)
    if trial.void_reason:
        progress(f"warning: {trial.void_reason}")
    return DeploymentReport(
        plan=plan,
        measured=measured,
        functions=tuple(wrap.name for wrap in plan.wraps),
        slo_met=trial.void_reason is None and trial.latency_ms <= request.slo_ms,
        percentile=trial.percentile,
        over=trial.over,
        late=trial.late,
        measured_ms=trial.latency_ms,
    )


def checked_sources(request: DeploymentRequest, launcher: Launcher, progress: Progress) -> Sources:
    """Return the sources to deploy; `progress` gets warnings on ignored settings of stack.yaml.

    Raises ``inner-trigger`` and the errors of reading the sources, before anything is measured.
    """
    sources = launcher.sources(request.folder)
    if PLANNERS[request.choices.planner].orchestrator != "client":
        check_triggers(sources.stack, request.folder.workflow)
    for warning in (*sources.warnings, *launcher.warnings(sources, request.load)):
        progress(f"warning: {warning}")
    return sources


def find_plan(
    request: DeploymentRequest, launcher: Launcher, out: Path, progress: Progress
) -> tuple[Plan, Profile]:
    """Return the plan for `request` and its profile; measures the profile and platform if missing.

    Writes profile.json, platform.json and plan.json to `out`.
    """
    profile, platform = measured_parts(request, launcher, out, progress)
    plan = plan_for(request, profile, platform, progress)
    write_atomically(out / "plan.json", dump(plan))
    return plan, profile


def measured_parts(
    request: DeploymentRequest, launcher: Launcher, out: Path, progress: Progress
) -> tuple[Profile, Platform]:
    """Return the profile and platform of `request`: given, reused if still valid, or measured now.

    Writes them to `out`, and renames files of another workflow there.
    """
    for name in ("profile.json", "plan.json"):
        if aside := set_aside(out / name, request.folder.workflow.name):
            progress(f"{out / name} is of another workflow: it is {aside} now")
    profile = request.profile or _reusable_profile(request, launcher, progress)
    if profile is None:
        profile = profile_functions(request.folder, launcher, brief=True, progress=progress)
    require_own(profile, request.folder.workflow, "the profile")
    write_atomically(out / "profile.json", dump(profile))
    platform = platform_of(request.platform, request.platforms, launcher, progress)
    write_atomically(out / "platform.json", dump(platform))
    return profile, platform


def _reusable_profile(
    request: DeploymentRequest, launcher: Launcher, progress: Progress
) -> Profile | None:
    if not request.profile_files:
        return None
    return holding_profile(request.profile_files, request.folder, launcher.place, progress)


_SchedulingInputs = tuple[Workflow, Profile, Platform, float, Choices, FolderSettings]


def scheduling_inputs(
    request: DeploymentRequest, profile: Profile, platform: Platform
) -> _SchedulingInputs:
    """Return the scheduler's arguments for `request`."""
    folder = request.folder
    if request.behind:
        way_ms = platform.request_ms + platform.rpc_ms
        platform = platform.model_copy(update={"request_ms": way_ms})
    settings = read_settings(folder, os.environ)
    return folder.workflow, profile, platform, request.slo_ms, request.choices, settings


def plan_for(
    request: DeploymentRequest, profile: Profile, platform: Platform, progress: Progress
) -> Plan:
    """Return the plan for `request` that is predicted to meet the SLO, or else the fastest."""
    choices = request.choices
    rate = request.shown_load
    progress(f"scheduling: {choices.planner}, {choices.mechanism}, SLO {request.slo_ms:g} ms{rate}")
    inputs = scheduling_inputs(request, profile, platform)
    plan = (
        schedule_load(*inputs[:4], request.load, *inputs[4:]) if request.load else schedule(*inputs)
    )
    for each in broken(plan, request.folder.workflow, plan.apart):  # fixed layouts ignore rules
        progress(f"warning: {each.line}")
    return plan
