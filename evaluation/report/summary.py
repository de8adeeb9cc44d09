"""The end of a full run on the terminal: who wins where, and what was promised."""

from __future__ import annotations

from evaluation.experiments.catalogue import EXPERIMENTS, results_of
from evaluation.experiments.goals import verdicts
from evaluation.experiments.metric import MetricResult
from evaluation.experiments.recorded import RunFolder
from evaluation.experiments.slo import SloResult
from evaluation.report.glance import averages
from evaluation.report.tables import Table, goal_table


def summary_tables(folder: RunFolder) -> list[Table]:
    """Ours divided by every rival on average, and the goals."""
    results = results_of(list(EXPERIMENTS), folder)
    metrics = {r.experiment: r for r in results if isinstance(r, MetricResult)}
    slo = next((r for r in results if isinstance(r, SloResult)), None)
    ours = tuple(dict.fromkeys(label for each in folder.workflows for label in each.ours))
    if not metrics or not ours:
        return []
    return [_ratio_table(metrics, ours), goal_table(verdicts(metrics, slo, ours))]


def _ratio_table(metrics: dict[str, MetricResult], ours: tuple[str, ...]) -> Table:
    found = {name: {(a.rival, a.ours): a for a in averages(r, ours)} for name, r in metrics.items()}
    pairs = dict.fromkeys(pair for by_pair in found.values() for pair in by_pair)
    rows = []
    for rival, own in pairs:
        cells = []
        for by_pair in found.values():
            one = by_pair.get((rival, own))
            cells.append(f"{one.mean:.2f} ({one.better}/{one.even}/{one.worse})" if one else "-")
        rows.append((rival, own, *cells))
    title = "ours ÷ rival, mean over workflows (better/even/worse on)"
    return Table(title, ("rival", "ours", *found), tuple(rows))
