"""Prepares a workflow for measurements: its profile, its SLO and a plan for every variant."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from chiron.deployment.deploy import Progress
from chiron.deployment.launcher import Launcher
from chiron.deployment.measure import (
    CheckedPayload,
    checked_invoke,
    checked_payloads,
    warm_up,
    weighted_cycle,
)
from chiron.evaluation.bench.settings import Scale, Settings
from chiron.evaluation.bench.variants import Variant, apart, variants
from chiron.profiler.calibrate import calibrate
from chiron.profiler.kept_platform import KeptPlatforms
from chiron.profiler.profile import profile
from chiron.profiler.tracer import require_tracing
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.documents import Document, dump, read_document, write_atomically
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

Artefact = TypeVar("Artefact", bound=Document)

PLATFORM_FILE, PROFILE_FILE, SETUP_FILE = "platform.json", "profile.json", "setup.json"
#: The SLO's excess over Faastlane's mean in the paper (Chiron §6.2).
SLACK_MS = 10.0
#: The planner whose latency sets the SLO.
BASELINE = "faastlane"
#: An arbitrary SLO: the plans of a fixed planner do not depend on it.
_ANY_SLO_MS = 1000.0


class Setup(Document):
    """The plans of one workflow, by the labels of their variants.

    ``payload_bytes`` is the mean size of all payloads, by weight. ``baseline_ms`` has Faastlane's
    mean latency by mechanism; it is empty if the user set the SLO. ``slo_ms`` has the SLO of plans
    and requests by mechanism.
    """

    format: int = 1
    workflow: str
    stages: tuple[int, ...]
    payload_bytes: int
    baseline_ms: dict[str, float]
    slo_ms: dict[str, float]
    plans: dict[str, Plan]


class Place(NamedTuple):
    """The launcher that deploys plans, and the platform's constants there."""

    launcher: Launcher
    platform: Platform
    progress: Progress


def require_profiles(files: Iterable[Path]) -> None:
    """Raise ``no-strace`` or ``no-ptrace`` if profiling is necessary and impossible here.

    It is necessary unless all profiles in `files` exist. Call this before anything runs.
    """
    if not all(file.exists() for file in files):
        require_tracing(os.environ)


def place_of(
    launcher: Launcher, out: Path, progress: Progress, platforms: KeptPlatforms | None = None
) -> Place:
    """Return the place of `launcher`, with its constants measured unless `out` has them.

    With `platforms`, constants kept there are used instead of measured if they still hold.
    """

    def measured() -> Platform:
        if platforms is None:
            return calibrate(launcher, progress=progress)
        return platforms.platform(launcher, progress)

    platform = kept(out / PLATFORM_FILE, Platform, measured)
    return Place(launcher, platform, progress)


def prepare(
    folder: WorkflowFolder, place: Place, out: Path, settings: Settings, scale: Scale
) -> Setup:
    """Return the plans of the workflow in `folder`; a profile and plans in `out` are reused.

    Raises the errors of profiling, scheduling and deploying; ``wrong-output``.
    """
    say = place.progress
    functions = kept(
        out / PROFILE_FILE,
        Profile,
        lambda: profile(folder, place.launcher, brief=settings.quick, progress=say),
    )
    return kept(out / SETUP_FILE, Setup, lambda: _setup(folder, place, functions, settings, scale))


def _setup(
    folder: WorkflowFolder, place: Place, functions: Profile, settings: Settings, scale: Scale
) -> Setup:
    workflow, payloads = folder.workflow, folder.payloads()

    def plan(variant: Variant, slo_ms: float) -> Plan:
        asked = settings.model_dump(include={"trigger", "strategy", "percentile"})
        choices = Choices(planner=variant.planner, mechanism=variant.mechanism, **asked)
        return schedule(workflow, functions, place.platform, slo_ms, choices)

    mechanisms, baseline = settings.mechanisms, dict[str, float]()
    if settings.slo_ms is None:
        checked = checked_payloads(folder, functions, check=settings.check)
        plans = {each: plan(Variant(BASELINE, each), _ANY_SLO_MS) for each in mechanisms}
        baseline = _means(folder, place, plans, checked, scale.baseline)
    slos = {each: settings.slo_ms or round(baseline[each] + SLACK_MS, 3) for each in mechanisms}
    chosen = variants(settings.planners, mechanisms)
    return Setup(
        workflow=workflow.name,
        stages=tuple(len(stage) for stage in workflow.stages),
        payload_bytes=round(
            statistics.fmean(
                [len(each.content) for each in payloads], [each.weight for each in payloads]
            )
        ),
        baseline_ms=baseline,
        slo_ms=slos,
        plans={each.label: plan(each, slos[each.mechanism]) for each in chosen},
    )


def _means(
    folder: WorkflowFolder,
    place: Place,
    plans: Mapping[str, Plan],
    checked: Sequence[CheckedPayload],
    samples: int,
) -> dict[str, float]:
    """Return the mean latency of every plan, in milliseconds, measured in turn."""
    launcher = place.launcher
    latencies: dict[str, list[float]] = {name: [] for name in plans}
    with ExitStack() as stack:
        place.progress(f"measuring {BASELINE} for the SLO")
        deployed = {
            name: stack.enter_context(
                launcher.launch(folder.workflow, folder, apart(plan, f"slo-{name}"))
            )
            for name, plan in plans.items()
        }
        warm_up_s = launcher.sources(folder).warm_up_s
        for deployment in deployed.values():
            warm_up(deployment, checked, warm_up_s)
        for payload, check in islice(weighted_cycle(checked), samples):
            for name, deployment in deployed.items():
                latencies[name].append(checked_invoke(deployment, payload.content, check))
    return {name: round(statistics.fmean(row), 3) for name, row in latencies.items()}


def kept(file: Path, artefact: type[Artefact], make: Callable[[], Artefact]) -> Artefact:
    """Return the artefact in `file`; if the file is missing, call `make` and write its result."""
    if file.exists():
        return read_document(artefact, file, file.stem)
    made = make()
    write_atomically(file, dump(made))
    return made
