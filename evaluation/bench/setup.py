"""What a workflow's measurements start from: its profile, its SLO and a plan of every variant."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from evaluation.apart import apart
from evaluation.bench.settings import Scale, Settings
from evaluation.bench.variants import Variant, variants
from generator.launcher import Launcher
from generator.measure import WARM_UP, Check, check_of, checked_invoke
from predictor.predict import predict
from profiler.calibrate import calibrate
from profiler.drift import platform_at, profile_at
from profiler.permission import require_tracing
from profiler.profile import profile
from profiler.reference_loop import machine_ms
from scheduler.schedule import schedule
from workflow.documents import Document, dump, read_document, write_atomically
from workflow.folder import WorkflowFolder
from workflow.plan import Model, Plan
from workflow.platform import Platform
from workflow.profile import Profile

Progress = Callable[[str], None]
Artefact = TypeVar("Artefact", bound=Document)

PLATFORM_FILE, PROFILE_FILE, SETUP_FILE = "platform.json", "profile.json", "setup.json"
#: What the paper allows on top of Faastlane's mean (Chiron §6.2).
SLACK_MS = 10.0
_BASELINE: Model = "faastlane"
#: Any SLO: the plan of a fixed model does not depend on it.
_ANY_SLO_MS = 1000.0


class Setup(Document):
    """The plans of one workflow, by the labels of their variants.

    Attributes
    ----------
    baseline_ms
        Faastlane's mean by mechanism; empty where the SLO was given.
    missed
        That mean divided by its prediction, where it is more.
    slo_ms
        What requests have to meet. Our plans were made for an SLO that is tighter by ``missed``
        where they have headroom: what the model does not see of Faastlane it does not see of ours.
    """

    format: int = 1
    workflow: str
    stages: tuple[int, ...]
    payload_bytes: int
    baseline_ms: dict[str, float]
    missed: dict[str, float]
    slo_ms: dict[str, float]
    plans: dict[str, Plan]


@dataclass(frozen=True)
class Place:
    """Where plans are deployed, and the constants of that place."""

    launcher: Launcher
    platform: Platform
    progress: Progress


def require_profiles(files: Iterable[Path]) -> None:
    """Raise where functions have to be profiled, and cannot be here: before anything runs.

    Raises
    ------
    ChironError
        ``no-strace`` or ``no-ptrace``, unless all the profiles in `files` are there.
    """
    if not all(file.exists() for file in files):
        require_tracing(os.environ)


def place_of(launcher: Launcher, out: Path, progress: Progress) -> Place:
    """The place behind `launcher`, with its constants measured unless `out` has them."""
    file = out / PLATFORM_FILE
    platform = kept(file, Platform, lambda: calibrate(launcher, predict=predict, progress=progress))
    return Place(launcher, platform, progress)


def prepare(
    folder: WorkflowFolder, place: Place, out: Path, settings: Settings, scale: Scale
) -> Setup:
    """The plans of the workflow in `folder`; what `out` already has of it is kept.

    Raises
    ------
    ChironError
        What profiling, scheduling and deploying raise; ``wrong-output``.
    """
    say = place.progress
    functions = kept(
        out / PROFILE_FILE, Profile, lambda: profile(folder, place.launcher, progress=say)
    )
    return kept(out / SETUP_FILE, Setup, lambda: _setup(folder, place, functions, settings, scale))


def _setup(
    folder: WorkflowFolder, place: Place, functions: Profile, settings: Settings, scale: Scale
) -> Setup:
    workflow, body = folder.workflow, folder.payload()
    platform = place.platform

    def plan(variant: Variant, slo_ms: float) -> Plan:
        return schedule(
            workflow,
            functions,
            platform,
            slo_ms,
            model=variant.model,
            mechanism=variant.mechanism,
            strategy=settings.strategy,
            headroom=settings.headroom,
        )

    def baseline_plans() -> dict[str, Plan]:
        return {each: plan(Variant(_BASELINE, each), _ANY_SLO_MS) for each in settings.mechanisms}

    baseline, missed = dict[str, float](), dict[str, float]()
    if settings.slo_ms is None:
        expected = functions.answer_to(body) if settings.check else None
        check = check_of(workflow, expected)
        baseline, loop_ms = _means(folder, place, baseline_plans(), check, scale.baseline)
        # The machine may be slower by now than when functions and platform were measured.
        functions, platform = profile_at(functions, loop_ms), platform_at(platform, loop_ms)
        missed = {each: _missed(baseline[each], now) for each, now in baseline_plans().items()}
    slos = dict[str, float]()
    for each in settings.mechanisms:
        slos[each] = settings.slo_ms or round(baseline[each] + SLACK_MS, 3)
    tighter = missed if settings.headroom else {}
    chosen = variants(settings.models, settings.mechanisms)
    return Setup(
        workflow=workflow.name,
        stages=tuple(len(stage) for stage in workflow.stages),
        payload_bytes=len(body),
        baseline_ms=baseline,
        missed=missed,
        slo_ms=slos,
        plans={
            each.label: plan(each, slos[each.mechanism] / tighter.get(each.mechanism, 1.0))
            for each in chosen
        },
    )


def _missed(measured_ms: float, baseline: Plan) -> float:
    """What a measured mean is more than its prediction, as a factor; 1 where it is not more."""
    if baseline.predicted is None:
        return 1.0
    return round(max(1.0, measured_ms / baseline.predicted.latency_ms), 4)


def _means(
    folder: WorkflowFolder, place: Place, plans: Mapping[str, Plan], check: Check, samples: int
) -> tuple[dict[str, float], float]:
    """The mean latency of every plan, measured in turn, and what the reference loop took beside it.

    All in milliseconds, the loop's the median.
    """
    launcher, body = place.launcher, folder.payload()
    latencies: dict[str, list[float]] = {name: [] for name in plans}
    loops: list[float] = []
    with ExitStack() as stack:
        place.progress(f"measuring {_BASELINE} for the SLO")
        deployed = {
            name: stack.enter_context(
                launcher.launch(folder.workflow, folder, apart(plan, f"slo-{name}"))
            )
            for name, plan in plans.items()
        }
        for _ in range(WARM_UP + samples):
            loops.append(machine_ms())
            for name, deployment in deployed.items():
                latencies[name].append(checked_invoke(deployment, body, check))
    means = {name: round(statistics.fmean(row[WARM_UP:]), 3) for name, row in latencies.items()}
    return means, statistics.median(loops)


def kept(file: Path, artefact: type[Artefact], make: Callable[[], Artefact]) -> Artefact:
    """The artefact in `file`; it is made and written there where it is missing."""
    if file.exists():
        return read_document(artefact, file, file.stem)
    made = make()
    write_atomically(file, dump(made))
    return made
