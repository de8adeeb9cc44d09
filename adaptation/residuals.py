"""residuals.json: the deviations of measured plans from their predictions, with provenance.

The file is beside the profile and the platform of the predictions. A later search with the same
profile and platform learns from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chiron.adaptation.candidates import Residual
from chiron.deployment.background_load import disturbance
from chiron.deployment.verdict import Trial
from chiron.generator.fingerprint import digest
from chiron.pipeline.deploy import Try
from chiron.predictor.speed import at_any_speed
from chiron.workflow.documents import Document, dump, read_document, write_atomically
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

FILE = "residuals.json"


class MeasuredPlan(Document):
    """A measurement of a plan, by its fingerprint, `at` a time (RFC 3339), at ``per_s`` if any."""

    plan: str
    at: str
    percentile: float
    per_s: float | None = None
    tried: Try


class ResidualsFile(Document):
    """The measurements, newest last, and the fingerprints of the predictions' inputs."""

    format: Literal[1] = 1
    profile: str
    platform: str
    measured: tuple[MeasuredPlan, ...] = ()


@dataclass(frozen=True)
class Residuals:
    """The file of a folder, and its content for the same profile and platform."""

    path: Path
    content: ResidualsFile

    @classmethod
    def of(cls, folder: Path, profile: Profile, platform: Platform) -> Residuals:
        """Return the residuals in `folder`; empty if the file is of another profile or calibration.

        The machine's speed at calibration does not matter: predictions are for that speed.
        """
        path = folder / FILE
        calibration = json.dumps(at_any_speed(platform), sort_keys=True)
        empty = ResidualsFile(profile=digest([dump(profile)]), platform=digest([calibration]))
        if not path.exists():
            return cls(path, empty)
        found = read_document(ResidualsFile, path, "residuals")
        same = (found.profile, found.platform) == (empty.profile, empty.platform)
        return cls(path, found if same else empty)

    def known(self, trial: Trial) -> list[Residual]:
        """Return the residuals of such trials, except measurements disturbed by other load."""
        return [
            Residual(tried.cpus, tried.measured_ms / tried.predicted_ms)
            for each in self.content.measured
            if (each.percentile, each.per_s) == (trial.percentile, trial.per_s)
            if not disturbance((tried := each.tried).others)
            if tried.measured_ms and tried.predicted_ms
        ]

    def write(self, tried: Iterable[tuple[Plan, Try]], trial: Trial, at: str) -> None:
        """Write the file; the trials `tried` replace older measurements of their plans."""
        new = [
            MeasuredPlan(
                plan=fingerprint(plan),
                at=at,
                percentile=trial.percentile,
                per_s=trial.per_s,
                tried=each,
            )
            for plan, each in tried
            if each.measured_ms is not None
        ]
        found = {(m.plan, m.percentile, m.per_s): m for m in (*self.content.measured, *new)}
        measured = tuple(sorted(found.values(), key=new.__contains__))
        write_atomically(self.path, dump(self.content.model_copy(update={"measured": measured})))


def fingerprint(plan: Plan) -> str:
    """Return a short name for the deployment of `plan`."""
    return digest(wrap.model_dump_json() for wrap in plan.wraps)
