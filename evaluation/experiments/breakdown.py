"""Where the time of a request goes in every variant: what explains a ratio."""

from __future__ import annotations

from evaluation.experiments.recorded import Recorded, RunFolder
from evaluation.measurements.breakdown import BREAKDOWN, Breakdown
from workflow.documents import Document


class BreakdownRow(Document):
    """The medians of one variant's traced requests."""

    workflow: str
    variant: str
    traces: int
    typical: Breakdown


class BreakdownResult(Document):
    """All workflows."""

    format: int = 1
    experiment: str = "breakdown"
    rows: tuple[BreakdownRow, ...]


def breakdown(folder: RunFolder) -> BreakdownResult:
    """The typical parts of every variant that was traced."""
    return BreakdownResult(rows=tuple(row for each in folder.workflows for row in _rows(each)))


def _rows(recorded: Recorded) -> list[BreakdownRow]:
    samples = recorded.samples(BREAKDOWN)
    rows = []
    for label in recorded.setup.plans:
        traces = [one for found in samples.get(recorded.first[label], ()) for one in found]
        if traces:
            rows.append(
                BreakdownRow(
                    workflow=recorded.name,
                    variant=label,
                    traces=len(traces),
                    typical=_typical(traces),
                )
            )
    return rows


def _typical(traces: list[Breakdown]) -> Breakdown:
    """The trace whose latency is the median: parts of one request, which add up."""
    ordered = sorted(traces, key=lambda trace: trace.latency_ms)
    return ordered[len(ordered) // 2]
