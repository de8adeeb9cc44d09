"""A metric of every variant, and ratios of our variants to the others: the form of most results."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from chiron.evaluation.bench.rounds import Measurement
from chiron.evaluation.experiments.published import published_value
from chiron.evaluation.experiments.recorded import Drift, Recorded, RunFolder
from chiron.evaluation.intervals import Interval, Rounds, Statistic, estimate, ratio
from chiron.workflow.documents import Document

_NOT_MEASURED = "not measured"
#: Further figures of each variant, by its label and their names.
Details = dict[str, dict[str, float]]
Better = Literal["lower", "higher"]
Verdict = Literal["better", "worse", "even"]


class MetricRow(Document):
    """The metric of one variant of one workflow.

    ``same_as`` is the variant with the same plan whose samples are used, None if this variant has
    its own. ``value`` is None if it was not measured; ``note`` has the reason. ``against`` has our
    variants' values divided by this value, by our labels. ``published`` is the paper's value for
    its system of this kind.
    """

    workflow: str
    variant: str
    same_as: str | None = None
    value: Interval | None = None
    against: dict[str, Interval] = Field(default_factory=dict)
    wraps: int
    processes: int
    cpus: int
    published: float | None = None
    details: dict[str, float] = Field(default_factory=dict)
    note: str | None = None


class MetricResult(Document):
    """A metric of all workflows, with the noise floor and the machine's drift of each.

    ``noise`` is the value of a plan's second deployment divided by that of its first, in the same
    rounds. A ratio nearer to 1 is no evidence of a difference.
    """

    format: int = 1
    experiment: str
    metric: str
    unit: str
    better: Better
    rows: tuple[MetricRow, ...]
    noise: dict[str, Interval] = Field(default_factory=dict)
    drift: dict[str, Drift] = Field(default_factory=dict)

    def row(self, workflow: str, variant: str) -> MetricRow | None:
        """Return the row of a variant; None if there is none."""
        found = (row for row in self.rows if (row.workflow, row.variant) == (workflow, variant))
        return next(found, None)

    @property
    def workflows(self) -> list[str]:
        """The workflows, in the order of the rows."""
        return list(dict.fromkeys(row.workflow for row in self.rows))

    def verdict(self, workflow: str, against: Interval) -> Verdict:
        """Return whether ours is better than a baseline, by their ratio `against`.

        It is even if 1 is in the ratio's interval, or if two deployments of a plan differ as much.
        """
        noise = self.noise.get(workflow)
        floor = max(_distance(noise.low), _distance(noise.high)) if noise else 0.0
        if not against.excludes(1.0) or _distance(against.value) <= floor:
            return "even"
        return "better" if (against.value < 1) == (self.better == "lower") else "worse"


@dataclass(frozen=True)
class Metric:
    """Computes a metric from the records of a run."""

    #: The verb, and the metric's name in the published figures.
    experiment: str
    metric: str
    unit: str
    #: Returns the values by round of the measured variants of a workflow, by label.
    rounds: Callable[[Recorded], Mapping[str, Rounds]]
    details: Callable[[Recorded], Details]
    #: The measurement that has the metric's samples.
    measurement: Measurement[Any]
    better: Better = "lower"
    statistic: Statistic = statistics.fmean
    #: The reason why a measured variant has no value.
    silent: str = _NOT_MEASURED

    def of(self, folder: RunFolder) -> MetricResult:
        """Return the metric of every variant of every workflow."""
        rows: list[MetricRow] = []
        noise, drift = dict[str, Interval](), dict[str, Drift]()
        for recorded in folder.workflows:
            rounds, details = self.rounds(recorded), self.details(recorded)
            rows += [self._row(recorded, label, rounds, details) for label in recorded.setup.plans]
            first, second = (rounds.get(label) for label in recorded.replicate or ("", ""))
            if first and second and (found := ratio(second, first, self.statistic)):
                noise[recorded.name] = found
            if found_drift := recorded.drift(self.measurement):
                drift[recorded.name] = found_drift
        return MetricResult(
            experiment=self.experiment,
            metric=self.metric,
            unit=self.unit,
            better=self.better,
            rows=tuple(rows),
            noise=noise,
            drift=drift,
        )

    def _row(
        self, recorded: Recorded, label: str, rounds: Mapping[str, Rounds], details: Details
    ) -> MetricRow:
        plan, measured = recorded.setup.plans[label], recorded.first[label]
        values = rounds.get(measured)
        tried = measured in recorded.samples(self.measurement)
        why = recorded.refused.get(measured, self.silent if tried else _NOT_MEASURED)
        return MetricRow(
            workflow=recorded.name,
            variant=label,
            same_as=None if measured == label else measured,
            value=estimate(values, self.statistic) if values else None,
            against=self._against(recorded, label, rounds) if values else {},
            wraps=len(plan.wraps),
            processes=sum(len(wrap.processes) for wrap in plan.wraps),
            cpus=plan.cpus,
            published=published_value(recorded.name, label, self.experiment),
            details=details.get(label, {}),
            note=None if values else why,
        )

    def _against(
        self, recorded: Recorded, label: str, rounds: Mapping[str, Rounds]
    ) -> dict[str, Interval]:
        """Return ours divided by the variant `label`; 1 for a baseline with the same plan."""
        found, measured = dict[str, Interval](), recorded.first[label]
        for ours in recorded.ours:
            first = recorded.first[ours]
            if first == measured:
                if label not in recorded.ours:
                    found[ours] = Interval(value=1.0, low=1.0, high=1.0)
            elif first in rounds and (
                against := ratio(rounds[first], rounds[measured], self.statistic)
            ):
                found[ours] = against
        return found


def _distance(found: float) -> float:
    """Return the distance of a ratio from 1, equal for a ratio and its inverse."""
    return abs(math.log(found)) if found > 0 else math.inf
