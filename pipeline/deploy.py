"""The verb `deploy`: profile, calibrate, schedule, generate, deploy, and measure what came out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from deployment.deploy import remove_outdated, removed_on_failure
from deployment.launcher import Launcher, invoker_for
from deployment.measure import Checked, Measurement, checked_payloads, measure
from deployment.verify import Known, verify
from generator.annotations import ASKED, SOURCE
from generator.fingerprint import digest, source_of
from generator.generate import Sources, generate
from generator.stack_check import check_triggers
from generator.stores import require_redis, require_store
from openfaas.credentials import DEFAULT_GATEWAY
from profiler.calibrate import calibrate
from profiler.profile import profile as profile_functions
from scheduler.choices import Choices
from scheduler.folder_settings import read_settings
from scheduler.planners import PLANNERS
from scheduler.schedule import schedule
from workflow.apart import broken
from workflow.documents import Document, dump, write_atomically
from workflow.folder import WorkflowFolder
from workflow.plan import Plan
from workflow.platform import Platform
from workflow.profile import Profile

Progress = Callable[[str], None]

#: Requests that a finished deployment is measured with.
SAMPLES = 50


class DeploymentReport(Document):
    """What was deployed, and how the prediction compares with the measurement."""

    plan: Plan
    measured: Measurement
    functions: tuple[str, ...]
    slo_met: bool


@dataclass(frozen=True)
class DeploymentRequest:
    """What to deploy: a workflow folder, an SLO, and what need not be measured again.

    A request to what is deployed may take `timeout_s`, or what follows from the prediction.
    `check` says whether answers are held against those of the functions alone, `behind` whether
    the entry of another version is to hand requests on to what is deployed.
    """

    folder: WorkflowFolder
    slo_ms: float
    choices: Choices = field(default_factory=Choices)
    profile: Profile | None = None
    platform: Platform | None = None
    timeout_s: float | None = None
    samples: int = field(default=SAMPLES)
    check: bool = True
    behind: bool = False

    def marks(self, sources: Sources) -> dict[str, str]:
        """The annotations of what is deployed from `sources` for this request.

        By them `chiron watch` tells whether it is still what the user wrote and asked for.
        """
        asked = [dump(self.choices), str(self.slo_ms), str(self.timeout_s)]
        asked += [sources.store] if sources.store else []
        return {SOURCE: source_of(sources), ASKED: digest(asked)}

    def checked(self, profile: Profile, progress: Progress) -> list[Checked]:
        """The payloads, each with what holds answers against what `profile` knows of them.

        `progress` is told of payloads of which it knows nothing.
        """
        return checked_payloads(self.folder, profile, check=self.check, progress=progress)

    def known(self, profile: Profile) -> list[Known]:
        """The payloads of which `profile` knows the answer, unless nothing is to be checked."""
        payloads = self.folder.payloads() if self.check else ()
        pairs = ((each, self.folder.expected(profile, each.content)) for each in payloads)
        return [(payload, expected) for payload, expected in pairs if expected is not None]


def deploy(
    request: DeploymentRequest, launcher: Launcher, out: Path, progress: Progress
) -> DeploymentReport:
    """Find, generate and deploy the cheapest deployment that meets the SLO, then measure it.

    profile.json, platform.json, plan.json and build/ are written to `out`; `progress` is called
    with a line for every step.

    Raises what comes of whichever step fails; nothing stays half-deployed.
    """
    request.folder.payloads()  # what is wrong there is better known before anything is measured
    sources = checked_sources(request, launcher, progress)
    require_store(request.choices.path, sources.store)
    buckets = request.folder.workflow.buckets
    if buckets is not None and buckets["durable"]:
        require_redis(sources.store)
    plan, profile = find_plan(request, launcher, out, progress)
    checked = request.checked(profile, progress)
    marks = request.marks(sources)
    stack_file = generate(plan, sources, out / "build", request.timeout_s, marks=marks)
    count = len(plan.wraps)
    progress(f"building and deploying {count} wrap{'s' * (count > 1)}")
    launcher.build(stack_file)
    created = launcher.deploy(stack_file)
    workflow, url = request.folder.workflow, launcher.gateway.url
    with (
        removed_on_failure(launcher.gateway, created),
        invoker_for(plan, workflow, url, request.timeout_s) as invoker,
    ):
        progress(f"invoking {request.samples} times")
        verify(invoker, workflow, plan, request.known(profile))
        measured = measure(invoker, checked, request.samples)
    remove_outdated(launcher.gateway, stack_file)
    return DeploymentReport(
        plan=plan,
        measured=measured,
        functions=tuple(wrap.name for wrap in plan.wraps),
        slo_met=measured.p95_ms <= request.slo_ms,
    )


def checked_sources(request: DeploymentRequest, launcher: Launcher, progress: Progress) -> Sources:
    """What is to be deployed; `progress` is told what of its stack.yaml has no effect.

    Raises ``inner-trigger``, and what reading the sources raises: before anything is measured.
    """
    sources = launcher.sources(request.folder)
    if PLANNERS[request.choices.planner].orchestrator != "client":
        check_triggers(sources.stack, request.folder.workflow)
    for warning in (*sources.warnings, *_elsewhere(sources, launcher)):
        progress(f"warning: {warning}")
    return sources


def find_plan(
    request: DeploymentRequest, launcher: Launcher, out: Path, progress: Progress
) -> tuple[Plan, Profile]:
    """The plan for `request`, and the profile behind it; measures first what is not brought.

    Writes profile.json, platform.json and plan.json to `out`.
    """
    folder = request.folder
    profile = request.profile or profile_functions(folder, launcher, progress=progress)
    write_atomically(out / "profile.json", dump(profile))
    platform = request.platform or calibrate(launcher, progress=progress)
    write_atomically(out / "platform.json", dump(platform))
    choices = request.choices
    progress(f"scheduling: {choices.planner}, {choices.mechanism}, SLO {request.slo_ms:g} ms")
    settings = read_settings(folder, os.environ)
    if request.behind:
        way_ms = platform.request_ms + platform.rpc_ms
        platform = platform.model_copy(update={"request_ms": way_ms})
    plan = schedule(folder.workflow, profile, platform, request.slo_ms, choices, settings)
    write_atomically(out / "plan.json", dump(plan))
    for each in broken(plan, folder.workflow, plan.apart):  # fixed layouts go by no rules
        progress(f"warning: {each.line}")
    return plan, profile


def _elsewhere(sources: Sources, launcher: Launcher) -> Iterator[str]:
    """A warning where stack.yaml names another gateway than the one that is deployed on.

    As for faas-cli, its default says nothing.
    """
    named, url = sources.stack.provider.gateway.rstrip("/"), launcher.gateway.url
    if named not in ("", DEFAULT_GATEWAY, url) and not launcher.gateway.info().embedded:
        mend = f"this deploys on {url}, as OPENFAAS_URL or -g says: -g {named} deploys there"
        yield f"provider.gateway of stack.yaml is {named}: {mend}"
