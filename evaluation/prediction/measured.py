"""Measures plans on a gateway beside their predictions, and how much of the error is noise."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from evaluation.apart import apart
from generator.generate import Sources
from generator.launcher import Deployment, Launcher
from generator.measure import WARM_UP, Measurement, checked_invoke
from generator.reference import reference
from predictor.predict import predict
from profiler.drift import platform_at, profile_at
from profiler.reference_loop import reference_ms
from workflow.documents import Document
from workflow.folder import WorkflowFolder
from workflow.plan import Plan, Prediction
from workflow.platform import Platform
from workflow.profile import Profile

Progress = Callable[[str], None]

#: Plans that are deployed at once: few enough for the memory of a small machine.
BATCH = 8


class PredictedRow(Document):
    """One plan: what was predicted, and what was measured.

    ``loop_ms`` is what the reference loop took meanwhile; the prediction is one for that speed of
    the machine, which drifts by more than predictions are wrong.
    ``again_ms`` is the median of the same plan deployed a second time, for one plan a batch.
    """

    plan: Plan
    predicted: Prediction
    measured: Measurement
    loop_ms: float
    again_ms: float | None = None

    @property
    def error(self) -> float:
        """(P̂ - P) / P of the medians (Chiron §6.1)."""
        return self.predicted.latency_ms / self.measured.p50_ms - 1

    @property
    def noise(self) -> float | None:
        """How far two deployments of this one plan differ, relative to their mean."""
        if self.again_ms is None:
            return None
        mean = (self.measured.p50_ms + self.again_ms) / 2
        return abs(self.measured.p50_ms - self.again_ms) / mean

    @property
    def inside(self) -> bool:
        """Whether the measured median lies in the predicted range."""
        return self.predicted.low_ms <= self.measured.p50_ms <= self.predicted.high_ms


def measure_plans(
    folder: WorkflowFolder,
    launcher: Launcher,
    plans: Sequence[Plan],
    profile: Profile,
    platform: Platform,
    *,
    samples: int,
    progress: Progress,
) -> Iterator[PredictedRow]:
    """A row for every plan; plans of a batch are invoked in turn, each round in another order.

    Raises
    ------
    ChironError
        ``wrong-output`` where a deployment answers other than the reference executor.
    """
    for start in range(0, len(plans), BATCH):
        batch = plans[start : start + BATCH]
        progress(f"measuring plans {start + 1} to {start + len(batch)} of {len(plans)}")
        twice = [*map(apart, batch), apart(batch[0], "again")]
        latencies, loop_ms = _measure_batch(folder, launcher, twice, samples)
        again_ms = statistics.median(latencies.pop())
        now = profile_at(profile, loop_ms), platform_at(platform, loop_ms)
        for index, (plan, row) in enumerate(zip(batch, latencies, strict=True)):
            yield PredictedRow(
                plan=plan,
                predicted=predict(plan, folder.workflow, *now),
                measured=Measurement.of(row),
                loop_ms=loop_ms,
                again_ms=again_ms if index == 0 else None,
            )


def _measure_batch(
    folder: WorkflowFolder, launcher: Launcher, plans: Sequence[Plan], samples: int
) -> tuple[list[list[float]], float]:
    """The latencies of every plan, and the median of the loop, all in milliseconds."""
    body = folder.payload()
    with ExitStack() as stack:
        deployed = [
            stack.enter_context(launcher.launch(folder.workflow, folder, plan)) for plan in plans
        ]
        expected = reference(Sources.read(folder), body, launcher.gateway.url).output
        latencies: list[list[float]] = [[] for _ in plans]
        loops = []
        for number in range(WARM_UP + samples):
            loops.append(reference_ms())
            for index in _order(number, deployed):
                latencies[index].append(checked_invoke(deployed[index], body, expected))
    return [row[WARM_UP:] for row in latencies], round(statistics.median(loops), 4)


def _order(number: int, deployed: Sequence[Deployment]) -> list[int]:
    """Who goes first, second, ... in a round: another one each time, and back and forth."""
    count = len(deployed)
    order = [(number + turn) % count for turn in range(count)]
    return order if number % 2 else order[::-1]
