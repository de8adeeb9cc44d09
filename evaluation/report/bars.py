"""Grouped bars: a metric of every variant by workflow, relative to ours, beside the paper's."""

from __future__ import annotations

from typing import Any

from evaluation.experiments.metric import MetricResult, MetricRow
from evaluation.experiments.slo import SloResult, SloRow
from evaluation.intervals import Interval
from evaluation.report.style import colour, figure, hatch, png

#: Share of a group's width that its bars take.
_FILLED = 0.84


def metric_bars(result: MetricResult, reference: str) -> bytes:
    """A bar a variant, divided by `reference`'s; a diamond is the paper's figure, divided by its.

    Where `reference` was not measured, bars have the metric's own unit.
    """
    labels = list(dict.fromkeys(row.variant for row in result.rows))
    workflows = result.workflows
    ours = {w: row for w in workflows if (row := result.row(w, reference)) and _value(row)}
    made, (axis,) = figure(max(6.0, 2.5 + 1.9 * len(workflows)), 3.6)
    width = _FILLED / len(labels)
    for row in result.rows:
        if row.value is None or (ours and row.workflow not in ours):
            continue
        x = workflows.index(row.workflow) + _offset(labels.index(row.variant), len(labels))
        unit = _value(ours[row.workflow]) if ours else 1.0
        _bar(axis, x, row.value, unit, width, row.variant)
        if ours and (paper := _published(row, ours[row.workflow])) is not None:
            axis.plot(x, paper, "kD", markersize=4)
    axis.set_xticks(range(len(workflows)), workflows)
    of = f"\n÷ {reference}" if ours else f", {result.unit}"
    axis.set_ylabel(f"{result.metric}{of}\n({result.better} is better)")
    if ours:
        axis.axhline(1.0, color="black", linewidth=0.8)
        if any(row.published for row in result.rows):
            axis.plot([], [], "kD", markersize=4, label="paper")
    _legend(axis, labels)
    return png(made)


def slo_bars(result: SloResult) -> bytes:
    """The share of requests above the SLO, a panel for each mechanism."""
    mechanisms = list(dict.fromkeys(row.mechanism for row in result.rows))
    workflows = list(dict.fromkeys(row.workflow for row in result.rows))
    made, axes = figure(max(7.0, 5.0 * len(mechanisms)), 3.4, len(mechanisms))
    for axis, mechanism in zip(axes, mechanisms, strict=True):
        rows = [row for row in result.rows if row.mechanism == mechanism]
        _panel(axis, rows, workflows)
        axis.set_title(mechanism, fontsize=10)
    axes[0].set_ylabel("requests above the SLO, %")
    return png(made)


def _panel(axis: Any, rows: list[SloRow], workflows: list[str]) -> None:
    labels = list(dict.fromkeys(row.variant for row in rows))
    for row in rows:
        x = workflows.index(row.workflow) + _offset(labels.index(row.variant), len(labels))
        _bar(axis, x, row.violations, 0.01, _FILLED / len(labels), row.variant)
    axis.set_xticks(range(len(workflows)), workflows, rotation=20, ha="right")
    _legend(axis, labels)


def _bar(axis: Any, x: float, found: Interval, unit: float, width: float, label: str) -> None:
    """A bar with its interval, in multiples of `unit`."""
    spread = [[(found.value - found.low) / unit], [(found.high - found.value) / unit]]
    style = {"color": colour(label), "hatch": hatch(label), "edgecolor": "white"}
    axis.bar(x, found.value / unit, width * 0.95, **style)
    axis.errorbar(x, found.value / unit, yerr=spread, color="black", linewidth=1, capsize=2)


def _legend(axis: Any, labels: list[str]) -> None:
    for label in labels:
        axis.bar([0], [0], color=colour(label), hatch=hatch(label), edgecolor="white", label=label)
    axis.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _offset(index: int, count: int) -> float:
    return (index - (count - 1) / 2) * _FILLED / count


def _value(row: MetricRow) -> float:
    """The metric; 0 where it was not measured."""
    return row.value.value if row.value else 0.0


def _published(row: MetricRow, reference: MetricRow) -> float | None:
    if row.published is None or not reference.published:
        return None
    return row.published / reference.published
