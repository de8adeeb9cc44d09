"""Rows: what was measured of a plan, and what is predicted for it at the same speed."""

from __future__ import annotations

from generator.measure import Measurement
from predictor.predict import predict
from profiler.drift import platform_at, profile_at
from workflow.documents import Document
from workflow.model import Workflow
from workflow.plan import Plan, Prediction
from workflow.platform import Platform
from workflow.profile import Profile


class MeasuredRow(Document):
    """One plan and what was measured of it.

    ``loop_ms`` is what the reference loop took meanwhile.
    ``again_ms`` is the median of the same plan deployed a second time, for one plan a batch.
    """

    plan: Plan
    measured: Measurement
    loop_ms: float
    again_ms: float | None = None

    @property
    def noise(self) -> float | None:
        """How far two deployments of this one plan differ, relative to their mean."""
        if self.again_ms is None:
            return None
        mean = (self.measured.p50_ms + self.again_ms) / 2
        return abs(self.measured.p50_ms - self.again_ms) / mean

    def profile(self, functions: Profile) -> Profile:
        """`functions` at the speed that the machine had when this was measured.

        It drifts by more than predictions are wrong.
        """
        return profile_at(functions, self.loop_ms)


class PredictedRow(MeasuredRow):
    """A measured plan and its prediction."""

    predicted: Prediction

    @classmethod
    def of(
        cls, row: MeasuredRow, workflow: Workflow, profile: Profile, platform: Platform
    ) -> PredictedRow:
        """`row` with its prediction for the speed that the machine had when it was measured."""
        place = platform_at(platform, row.loop_ms)
        found = predict(row.plan, workflow, row.profile(profile), place)
        return cls(**dict(row), predicted=found)

    @property
    def error(self) -> float:
        """(P̂ - P) / P of the medians (Chiron §6.1)."""
        return self.predicted.latency_ms / self.measured.p50_ms - 1

    @property
    def inside(self) -> bool:
        """Whether the measured median lies in the predicted range."""
        return self.predicted.low_ms <= self.measured.p50_ms <= self.predicted.high_ms
