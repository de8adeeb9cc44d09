"""Rows: what was measured of a plan, and what is predicted for it at the same speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from pydantic import Field

from predictor.predict import predict
from profiler import reference_loop
from profiler.drift import platform_slower, profile_at, waiting_in
from workflow.documents import Document
from workflow.model import Workflow
from workflow.plan import Plan, Prediction
from workflow.platform import Platform
from workflow.profile import Profile


class PacedRequest(Document):
    """One request, and how fast the machine was right before and after it.

    Attributes
    ----------
    latency_ms
        On the client's clock.
    loop_ms
        What the reference loop took, on average of the cores.
    uneven
        How much longer it took on the slowest core than on the fastest, as a share.
    """

    latency_ms: float
    loop_ms: float
    uneven: float


class AloneRun(Document):
    """How long a function took alone, and the reference loop beside it, typically."""

    latency_ms: float
    loop_ms: float


class MeasuredRow(Document):
    """One plan and what was measured of it.

    Attributes
    ----------
    requests
        All of its requests.
    again
        Those of the same plan deployed a second time; one plan of a batch is.
    overhead_ms
        What a request whose function does nothing but pause took on top of the pause, in the same
        batch: what requests cost drifts in its own way. None where that was not measured.
    wasted_cores
        As `Platform` has it, in the same batch. None where that was not measured.
    alone
        Functions that mostly wait, in the same batch.
    """

    plan: Plan
    requests: tuple[PacedRequest, ...]
    again: tuple[PacedRequest, ...] = ()
    overhead_ms: float | None = None
    wasted_cores: float | None = None
    alone: dict[str, AloneRun] = Field(default_factory=dict)

    @property
    def steady(self) -> tuple[PacedRequest, ...]:
        """The requests that count."""
        return steady(self.requests)

    @property
    def loop_ms(self) -> float:
        """What the reference loop took beside those, typically."""
        return round(median(each.loop_ms for each in self.steady), 4)

    def profile(self, functions: Profile, loop_ms: float | None = None) -> Profile:
        """`functions` at the speed that the machine had when this was measured, or at `loop_ms`.

        It drifts by more than predictions are wrong. Waits are those of `alone`.
        """
        waiting_ms = {
            name: waiting_in(functions.functions[name], run.latency_ms, run.loop_ms)
            for name, run in self.alone.items()
        }
        return profile_at(functions, loop_ms or self.loop_ms, waiting_ms)

    def platform(self, place: Platform) -> Platform:
        """`place` as it was then: all its constants changed as the request's overhead did."""
        usual_ms = place.request_ms + place.thread_startup_ms + place.switch_cost_ms
        if not self.overhead_ms or not usual_ms:
            return place
        return platform_slower(place, self.overhead_ms / usual_ms)


class PredictedRow(MeasuredRow):
    """A measured plan and its prediction.

    Attributes
    ----------
    measured_ms, again_ms
        The median latency of the steady requests at the one speed of `loop_ms`: a request is
        shorter by what its prediction is for the speed beside it.
    """

    predicted: Prediction
    measured_ms: float
    again_ms: float | None = None

    @classmethod
    def of(
        cls, row: MeasuredRow, workflow: Workflow, profile: Profile, platform: Platform
    ) -> PredictedRow:
        """`row` with its prediction for the speed that the machine had when it was measured."""
        place = row.platform(platform)
        found = predict(row.plan, workflow, row.profile(profile), place)

        def latency_at(loop_ms: float) -> float:
            return predict(row.plan, workflow, row.profile(profile, loop_ms), place).latency_ms

        paced = [*row.steady, *steady(row.again)]
        loops_ms = [min(each.loop_ms for each in paced), max(each.loop_ms for each in paced)]
        ends = [(loop_ms, latency_at(loop_ms)) for loop_ms in loops_ms]
        curve = _through(ends[0], (row.loop_ms, found.latency_ms), ends[1])

        def at_one_speed(requests: Sequence[PacedRequest]) -> float:
            ratio = median(each.latency_ms / curve(each.loop_ms) for each in requests)
            return round(found.latency_ms * ratio, 4)

        return cls(
            **dict(row),
            predicted=found,
            measured_ms=at_one_speed(row.steady),
            again_ms=at_one_speed(steady(row.again)) if row.again else None,
        )

    @property
    def error(self) -> float:
        """(P̂ - P) / P of the medians (Chiron §6.1)."""
        return self.predicted.latency_ms / self.measured_ms - 1

    @property
    def inside(self) -> bool:
        """Whether the measured median lies in the predicted range."""
        return self.predicted.low_ms <= self.measured_ms <= self.predicted.high_ms

    @property
    def noise(self) -> float | None:
        """How far two deployments of this one plan differ, relative to their mean."""
        if self.again_ms is None:
            return None
        mean = (self.measured_ms + self.again_ms) / 2
        return abs(self.measured_ms - self.again_ms) / mean


def steady(requests: Sequence[PacedRequest]) -> tuple[PacedRequest, ...]:
    """Those of `requests` that count: see `profiler.reference_loop.steady`."""
    return reference_loop.steady(requests, lambda each: each.uneven)


_Point = tuple[float, float]


def _through(first: _Point, second: _Point, third: _Point) -> Callable[[float], float]:
    """The function of straight lines from each point, of those in order, to the next."""

    def at(x: float) -> float:
        (left, low), (right, high) = (first, second) if x < second[0] else (second, third)
        return low + (high - low) * (x - left) / (right - left) if right > left else low

    return at
