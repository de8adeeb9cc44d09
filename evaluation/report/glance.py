"""Who wins where: for every workflow and metric the best variant, and whom ours loses to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.experiments.metric import MetricResult
from evaluation.intervals import Interval, product_mean

Standing = Literal["wins", "even", "loses"]


@dataclass(frozen=True)
class Loss:
    """A rival that is better than ours, and ours divided by it."""

    rival: str
    ratio: Interval


@dataclass(frozen=True)
class Cell:
    """One workflow and metric.

    Attributes
    ----------
    best, best_value
        The variant with the best value.
    ours, value
        The better of our variants; None where none was measured.
    standing
        Of ours: ``loses`` where a rival is better beyond interval and noise, ``wins`` where all
        are worse beyond them.
    """

    best: str
    best_value: float
    ours: str | None = None
    value: float | None = None
    standing: Standing | None = None
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class Average:
    """Ours against one rival over all workflows: the geometric mean of ratios, and the score."""

    rival: str
    ours: str
    mean: float
    better: int
    even: int
    worse: int


def cell(result: MetricResult, workflow: str, ours: Sequence[str]) -> Cell | None:
    """The cell of a workflow; None where nothing was measured."""
    values = {
        row.variant: row.value.value
        for row in result.rows
        if row.workflow == workflow and row.value is not None
    }
    if not values:
        return None
    choose = min if result.better == "lower" else max
    best = choose(values, key=values.__getitem__)
    mine = {label: values[label] for label in ours if label in values}
    if not mine:
        return Cell(best, values[best])
    own = choose(mine, key=mine.__getitem__)
    rivals = _rivals(result, workflow, own, ours)
    verdicts = {rival: result.verdict(workflow, against) for rival, against in rivals.items()}
    losses = [Loss(r, rivals[r]) for r, verdict in verdicts.items() if verdict == "worse"]
    standing: Standing = "loses" if losses else "even"
    if verdicts and set(verdicts.values()) == {"better"}:
        standing = "wins"
    return Cell(best, values[best], own, mine[own], standing, tuple(losses))


def averages(result: MetricResult, ours: Sequence[str]) -> list[Average]:
    """Every rival against each of ours, over the workflows where both were measured."""
    labels = dict.fromkeys(row.variant for row in result.rows if row.variant not in ours)
    pairs = [(rival, own) for rival in labels for own in ours]
    return [found for rival, own in pairs if (found := _average(result, rival, own)) is not None]


def _average(result: MetricResult, rival: str, own: str) -> Average | None:
    rows = [row for row in result.rows if row.variant == rival and own in row.against]
    if not rows:
        return None
    verdicts = [result.verdict(row.workflow, row.against[own]) for row in rows]
    mean = product_mean([row.against[own].value for row in rows])
    score = [verdicts.count(verdict) for verdict in ("better", "even", "worse")]
    return Average(rival, own, mean, *score)


def _rivals(
    result: MetricResult, workflow: str, own: str, ours: Sequence[str]
) -> dict[str, Interval]:
    """Rival -> ours divided by it."""
    return {
        row.variant: row.against[own]
        for row in result.rows
        if row.workflow == workflow and row.variant not in ours and own in row.against
    }
