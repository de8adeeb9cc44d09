"""Measures one workflow: sets it up, deploys its variants and runs the missing rounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chiron.deployment.measure import checked_payloads
from chiron.evaluation.bench.bench import Leftovers, deploy
from chiron.evaluation.bench.rounds import Measurement, Session
from chiron.evaluation.bench.settings import Run, Scale, Settings
from chiron.evaluation.bench.setup import PROFILE_FILE, Place, Setup, prepare
from chiron.evaluation.bench.variants import (
    distinct,
    function_limit,
    groups,
    our_labels,
    with_replicate,
)
from chiron.generator.generate import Sources
from chiron.workflow.documents import read_document, read_json, write_atomically
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan
from chiron.workflow.profile import Profile

REFUSED_FILE, _DEPLOYED_FILE = "refused.json", "deployed.json"


def measure_workflow(
    folder: WorkflowFolder,
    place: Place,
    out: Path,
    run: Run[Settings],
    scale: Scale,
    measurements: Sequence[Measurement[Any]],
) -> Setup:
    """Measure the missing rounds of `measurements`; their journals are in `out`.

    Raises the errors of the set-up; ``nothing-deployed``; ``wrong-output``.
    """
    name = folder.workflow.name

    def say(line: str) -> None:
        place.progress(f"{name}: {line}")

    named = place._replace(progress=say)
    setup = prepare(folder, named, out, run.settings, scale)
    functions = read_document(Profile, out / PROFILE_FILE, "profile")
    checked = checked_payloads(folder, functions, check=run.settings.check)
    first = distinct(setup.plans)
    plans = {label: plan for label, plan in setup.plans.items() if first[label] == label}
    if scale.replicate:
        ours = [each for each in our_labels(run.settings.mechanisms) if each in first]
        plans = with_replicate(plans, [first[each] for each in ours])
    for number, labels in enumerate(_groups(plans, folder, run.target.provider)):
        missing = [m for m in measurements if m.missing(out, number, scale, len(labels))]
        if not missing:
            continue
        chosen = {label: plans[label] for label in labels}
        leftovers = Leftovers(out / _DEPLOYED_FILE)
        with (
            leftovers.removed_from(place.launcher.gateway),
            deploy(folder, named, chosen, leftovers, checked) as bench,
        ):
            _keep_refused(out, bench.refused, labels)
            session = Session(bench, number, scale, out)
            for measurement in missing:
                measurement.run(session, say)
    return setup


def refused(out: Path) -> dict[str, str]:
    """Return why each variant, by its label, was left out of the last run."""
    file = out / REFUSED_FILE
    return dict(read_json(file, "list")) if file.exists() else {}


def _groups(plans: Mapping[str, Plan], folder: WorkflowFolder, provider: str) -> list[list[str]]:
    """Return the groups of variants that fit side by side on the run's gateway."""
    room = function_limit(provider)
    if room is not None:
        sources = Sources.read(folder)
        room -= len({*sources.supporting, *sources.called})
    return groups({label: len(plan.wraps) for label, plan in plans.items()}, room)


def _keep_refused(out: Path, reasons: Mapping[str, str], labels: Sequence[str]) -> None:
    """Store why variants are missing, and delete the reasons of `labels` that are deployed now."""
    before = {label: why for label, why in refused(out).items() if label not in labels}
    write_atomically(out / REFUSED_FILE, json.dumps({**before, **reasons}, indent=1) + "\n")
