"""How often requests miss the SLO that our plans were made for (Chiron Figure 14)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from evaluation.bench.setup import SLACK_MS
from evaluation.bench.variants import Variant
from evaluation.experiments.latency import latency_rounds, pooled
from evaluation.experiments.recorded import Recorded, RunFolder
from evaluation.intervals import Interval, share
from workflow.documents import Document
from workflow.plan import Mechanism


class SloRow(Document):
    """One variant against the SLO of its mechanism.

    Attributes
    ----------
    slo_ms, violations
        The SLO that plans were made for, and the share of requests that took longer.
    same_run_slo_ms, same_run_violations
        The same with Faastlane's mean of the very rounds in which the requests were sent: the
        machine may have been faster or slower when the SLO was set.
    """

    workflow: str
    mechanism: Mechanism
    variant: str
    requests: int
    mean_ms: float
    slo_ms: float
    violations: Interval
    same_run_slo_ms: float | None = None
    same_run_violations: Interval | None = None


class SloResult(Document):
    """All workflows and mechanisms."""

    format: int = 1
    experiment: str = "slo"
    rows: tuple[SloRow, ...]


def slo(folder: RunFolder) -> SloResult:
    """The violations of every variant that was measured."""
    rows = [
        row
        for recorded in folder.workflows
        for mechanism in folder.run.settings.mechanisms
        for row in _rows(recorded, mechanism)
    ]
    return SloResult(rows=tuple(rows))


def _rows(recorded: Recorded, mechanism: Mechanism) -> list[SloRow]:
    rounds = latency_rounds(recorded)
    slo_ms = recorded.setup.slo_ms[mechanism]
    baseline = rounds.get(recorded.first.get(Variant("faastlane", mechanism).label, ""))
    same_run_ms = statistics.fmean(pooled(baseline)) + SLACK_MS if baseline else None
    rows = []
    for label, plan in recorded.setup.plans.items():
        values = pooled(rounds.get(recorded.first[label], ()))
        if Variant(plan.model, mechanism).label != label or not values:
            continue
        row = SloRow(
            workflow=recorded.name,
            mechanism=mechanism,
            variant=label,
            requests=len(values),
            mean_ms=round(statistics.fmean(values), 3),
            slo_ms=slo_ms,
            violations=_violations(values, slo_ms),
        )
        if same_run_ms is not None:
            update = {
                "same_run_slo_ms": round(same_run_ms, 3),
                "same_run_violations": _violations(values, same_run_ms),
            }
            row = row.model_copy(update=update)
        rows.append(row)
    return rows


def _violations(values: Sequence[float], slo_ms: float) -> Interval:
    return share(sum(ms > slo_ms for ms in values), len(values))
