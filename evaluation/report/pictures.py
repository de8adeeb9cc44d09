"""The pictures of a result, by the names of their files."""

from __future__ import annotations

from evaluation.bench.variants import TWIN
from evaluation.experiments.breakdown import BreakdownResult
from evaluation.experiments.catalogue import Result
from evaluation.experiments.latency import LATENCY, latency_rounds, pooled
from evaluation.experiments.load import LoadResult
from evaluation.experiments.metric import MetricResult
from evaluation.experiments.recorded import RunFolder
from evaluation.experiments.slo import SloResult
from evaluation.report.bars import metric_bars, slo_bars
from evaluation.report.curves import latency_cdf, load_curves
from evaluation.report.stacks import breakdown_bars

#: What bars are divided by where it was measured.
REFERENCE = "pgp fork"


def pictures(result: Result, folder: RunFolder) -> dict[str, bytes]:
    """PNGs by name; the distribution of latencies is drawn of the first workflow.

    Raises
    ------
    ImportError
        matplotlib is missing.
    """
    match result:
        case MetricResult():
            drawn = {result.experiment: metric_bars(result, REFERENCE)}
            if result.experiment == LATENCY.experiment:
                drawn |= _distribution(folder)
            return drawn
        case SloResult():
            return {"slo": slo_bars(result)}
        case LoadResult():
            return {"load": load_curves(result)}
        case BreakdownResult():
            workflows = dict.fromkeys(row.workflow for row in result.rows)
            return {f"breakdown-{name}": breakdown_bars(result, name) for name in workflows}


def _distribution(folder: RunFolder) -> dict[str, bytes]:
    for recorded in folder.workflows:
        rounds = latency_rounds(recorded)
        latencies = {label: pooled(r) for label, r in rounds.items() if not label.startswith(TWIN)}
        if latencies:
            slo_ms = next(iter(recorded.setup.slo_ms.values()))
            return {f"latency-cdf-{recorded.name}": latency_cdf(recorded.name, latencies, slo_ms)}
    return {}
