"""Summarises a run: the best variant by workflow and metric, and the baselines that beat ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from chiron.evaluation.experiments.metric import MetricResult
from chiron.evaluation.experiments.results import Result
from chiron.evaluation.intervals import Interval, product_mean
from chiron.evaluation.report.tables import Table

Standing = Literal["wins", "even", "loses"]


class Loss(NamedTuple):
    """A baseline that is better than our best variant, and ours divided by it."""

    baseline: str
    ratio: Interval


class Cell(NamedTuple):
    """One workflow and metric: the best variant, and the best of ours if one was measured."""

    best: str
    best_value: float
    ours: str | None = None
    value: float | None = None
    #: Ours divided by one-to-one, which ours would replace.
    beside_one_to_one: Interval | None = None
    #: ``loses`` if a baseline is better than ours beyond interval and noise, ``wins`` if all are
    #: worse beyond them.
    standing: Standing | None = None
    #: The losses, the largest first.
    losses: tuple[Loss, ...] = ()


class Average(NamedTuple):
    """Ours against a baseline over all workflows: the geometric mean ratio and the score."""

    baseline: str
    ours: str
    mean: float
    better: int
    even: int
    worse: int


def cell(result: MetricResult, workflow: str, ours: Sequence[str]) -> Cell | None:
    """Return the cell of a workflow; None if nothing was measured."""
    rows = [row for row in result.rows if row.workflow == workflow]
    values = {row.variant: row.value.value for row in rows if row.value is not None}
    if not values:
        return None
    choose = min if result.better == "lower" else max
    best = choose(values, key=values.__getitem__)
    mine = {label: values[label] for label in ours if label in values}
    if not mine:
        return Cell(best, values[best])
    own = choose(mine, key=mine.__getitem__)
    others = [row for row in rows if row.variant not in ours]
    ratios = {row.variant: row.against[own] for row in others if own in row.against}
    verdicts = {baseline: result.verdict(workflow, against) for baseline, against in ratios.items()}
    losses = [Loss(r, ratios[r]) for r, verdict in verdicts.items() if verdict == "worse"]
    losses.sort(key=lambda loss: loss.ratio.value, reverse=result.better == "lower")
    standing: Standing = "loses" if losses else "even"
    if verdicts and set(verdicts.values()) == {"better"}:
        standing = "wins"
    alone = ratios.get("one-to-one")
    return Cell(best, values[best], own, mine[own], alone, standing, tuple(losses))


def averages(
    metrics: Sequence[MetricResult], ours: Sequence[str]
) -> dict[tuple[str, str], list[Average | None]]:
    """Return each metric's average by (baseline, ours), over the workflows that measured both."""
    labels = dict.fromkeys(row.variant for result in metrics for row in result.rows)
    pairs = [(baseline, own) for baseline in labels if baseline not in ours for own in ours]
    found = {pair: [_average(result, *pair) for result in metrics] for pair in pairs}
    return {pair: row for pair, row in found.items() if any(row)}


def averages_table(results: Sequence[Result], ours: Sequence[str]) -> Table | None:
    """Return the averages as a table for the terminal; None if nothing can be compared."""
    metrics = [result for result in results if isinstance(result, MetricResult)]
    rows = [(*pair, *map(_score, row)) for pair, row in averages(metrics, ours).items()]
    title = "ours ÷ baseline, mean over workflows (better/even/worse on)"
    columns = ("baseline", "ours", *(result.experiment for result in metrics))
    return Table(title, columns, tuple(rows)) if rows else None


def _score(found: Average | None) -> str:
    if found is None:
        return "-"
    return f"{found.mean:.2f} ({found.better}/{found.even}/{found.worse})"


def _average(result: MetricResult, baseline: str, own: str) -> Average | None:
    rows = [row for row in result.rows if row.variant == baseline and own in row.against]
    if not rows:
        return None
    verdicts = [result.verdict(row.workflow, row.against[own]) for row in rows]
    mean = product_mean([row.against[own].value for row in rows])
    score = [verdicts.count(verdict) for verdict in ("better", "even", "worse")]
    return Average(baseline, own, mean, *score)
