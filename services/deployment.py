"""The verb `deploy`: profile, calibrate, schedule, generate, deploy, and measure what came out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from generator.deploy import deploy_stack, remove_all, remove_outdated
from generator.generate import Sources, generate
from generator.launcher import Launcher, invoker_for
from generator.measure import Measurement, check_of, measure
from predictor.predict import predict
from profiler.calibrate import calibrate
from profiler.profile import profile as profile_functions
from scheduler.choices import Choices
from scheduler.folder_settings import read_settings
from scheduler.schedule import schedule_as
from workflow.answer import ExpectedAnswer
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
    `check` says whether answers are held against those of the functions alone.
    """

    folder: WorkflowFolder
    slo_ms: float
    choices: Choices = field(default_factory=Choices)
    profile: Profile | None = None
    platform: Platform | None = None
    timeout_s: float | None = None
    samples: int = field(default=SAMPLES)
    check: bool = True

    def expected(self, profile: Profile) -> ExpectedAnswer | None:
        """What `profile` knows of the answer to the example request, if that is to be compared."""
        return profile.answer_to(self.folder.payload()) if self.check else None


def deploy(
    request: DeploymentRequest, launcher: Launcher, out: Path, progress: Progress
) -> DeploymentReport:
    """Find, generate and deploy the cheapest deployment that meets the SLO, then measure it.

    Parameters
    ----------
    out
        Where profile.json, platform.json, plan.json and build/ are written.
    progress
        Called with a line for every step.

    Raises
    ------
    ChironError
        Of whichever step fails; nothing stays half-deployed.
    """
    sources = Sources.read(request.folder)
    plan, profile = find_plan(request, launcher, out, progress)
    expected = request.expected(profile)
    if request.check and expected is None:
        progress("answers are not compared: the profile was not taken with this payload.json")
    stack_file = generate(plan, sources, out / "build", request.timeout_s)
    count = len(plan.wraps)
    progress(f"building and deploying {count} wrap{'s' * (count > 1)}")
    launcher.build(stack_file)
    created = deploy_stack(launcher.gateway, stack_file)
    try:
        progress(f"invoking {request.samples} times")
        with invoker_for(
            plan, request.folder.workflow, launcher.gateway.url, request.timeout_s
        ) as invoker:
            check = check_of(request.folder.workflow, expected)
            measured = measure(invoker, request.folder.payload(), request.samples, check)
    except BaseException:
        remove_all(launcher.gateway, created)
        raise
    remove_outdated(launcher.gateway, stack_file)
    return DeploymentReport(
        plan=plan,
        measured=measured,
        functions=tuple(wrap.name for wrap in plan.wraps),
        slo_met=measured.p95_ms <= request.slo_ms,
    )


def find_plan(
    request: DeploymentRequest, launcher: Launcher, out: Path, progress: Progress
) -> tuple[Plan, Profile]:
    """The plan for `request`, and the profile behind it; measures first what is not brought.

    Writes profile.json, platform.json and plan.json to `out`.
    """
    folder = request.folder
    profile = request.profile or profile_functions(folder, launcher, progress=progress)
    write_atomically(out / "profile.json", dump(profile))
    platform = request.platform or calibrate(launcher, predict=predict, progress=progress)
    write_atomically(out / "platform.json", dump(platform))
    choices = request.choices
    progress(f"scheduling: {choices.model}, {choices.mechanism}, SLO {request.slo_ms:g} ms")
    settings = read_settings(folder, os.environ)
    plan = schedule_as(folder.workflow, profile, platform, request.slo_ms, choices, settings)
    write_atomically(out / "plan.json", dump(plan))
    return plan, profile
