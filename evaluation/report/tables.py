"""Results as tables of text, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.experiments.breakdown import BreakdownResult
from evaluation.experiments.catalogue import Result
from evaluation.experiments.goals import Verdict
from evaluation.experiments.load import LoadResult
from evaluation.experiments.metric import MetricResult, MetricRow
from evaluation.experiments.slo import SloResult
from evaluation.intervals import Interval
from evaluation.report.style import PARTS


@dataclass(frozen=True)
class Table:
    """A title, the names of the columns, and cells; the first column is of words."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def table_of(result: Result) -> Table:
    """The table of any result."""
    match result:
        case MetricResult():
            return metric_table(result)
        case SloResult():
            return slo_table(result)
        case LoadResult():
            return load_table(result)
        case BreakdownResult():
            return breakdown_table(result)


def metric_table(result: MetricResult) -> Table:
    """Value, interval, the ratios of ours, the paper's figure, and the further figures."""
    ours = list(dict.fromkeys(label for row in result.rows for label in row.against))
    names = list(dict.fromkeys(name for row in result.rows for name in row.details))
    columns = ["variant", "workflow", "wraps", "processes", "CPUs", result.unit, "95 % interval"]
    columns += [*(f"{label} ÷ it" for label in ours), "paper", *names, "remark"]
    rows = []
    for row in result.rows:
        figures = [number(row.details.get(name)) for name in names]
        rows.append(
            (
                row.variant,
                row.workflow,
                str(row.wraps),
                str(row.processes),
                str(row.cpus),
                number(row.value.value) if row.value else "-",
                f"{number(row.value.low)} to {number(row.value.high)}" if row.value else "-",
                *(with_interval(row.against.get(label)) for label in ours),
                number(row.published),
                *figures,
                _remark(row),
            )
        )
    noise = ", ".join(f"{name} {with_interval(each)}" for name, each in result.noise.items())
    title = result.metric + (f"; one plan deployed twice: {noise}" if noise else "")
    return Table(title, tuple(columns), tuple(rows))


def slo_table(result: SloResult) -> Table:
    """Violations of the SLO that was planned for, and of that of the same rounds."""
    rows = [
        (
            row.variant,
            row.workflow,
            str(row.requests),
            number(row.mean_ms),
            number(row.slo_ms),
            percentages(row.violations),
            number(row.same_run_slo_ms),
            percentages(row.same_run_violations),
        )
        for row in result.rows
    ]
    columns = (
        "variant", "workflow", "requests", "mean ms", "SLO ms", "above it",
        "SLO of these rounds", "above it",
    )  # fmt: skip
    return Table("requests that miss the SLO", columns, tuple(rows))


def load_table(result: LoadResult) -> Table:
    """Latencies by arrival rate."""
    rows = [
        (
            row.variant,
            row.workflow,
            number(row.per_s),
            str(row.arrived),
            f"{row.failed:.1%}",
            *(number(each) for each in (row.p50_ms, row.p95_ms, row.p99_ms)),
        )
        for row in result.rows
    ]
    columns = ("variant", "workflow", "arriving/s", "arrived", "failed", "p50 ms", "p95", "p99")
    return Table("latency at constant arrival rates", columns, tuple(rows))


def breakdown_table(result: BreakdownResult) -> Table:
    """The parts of a typical request."""
    rows = [
        (
            row.variant,
            row.workflow,
            number(row.typical.latency_ms),
            *(number(getattr(row.typical, part)) for part in PARTS),
            number(row.typical.waiting_ms),
            number(row.typical.work_ms),
        )
        for row in result.rows
    ]
    names = [name for name, _ in PARTS.values()]
    columns = ("variant", "workflow", "latency ms", *names, "waiting", "handlers' times added up")
    return Table("where the time of a request goes", columns, tuple(rows))


def goal_table(found: Sequence[Verdict]) -> Table:
    """Whether what was promised is kept."""
    words = {True: "met", False: "MISSED", None: "too little measured"}
    rows = [
        (
            verdict.goal,
            verdict.ours,
            number(verdict.limit),
            number(verdict.reached),
            words[verdict.met],
            ", ".join(f"{name} {_short(r)}" for name, r in verdict.by_workflow.items()),
        )
        for verdict in found
    ]
    columns = ("goal", "ours", "limit", "reached", "", "by workflow: ours ÷ rival, or the share")
    return Table("what was promised, with 95 % intervals", columns, tuple(rows))


def number(value: float | None) -> str:
    """Three digits that count, or more where they are there; a dash for nothing."""
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    size = abs(value)
    return f"{value:.0f}" if size >= 1000 else f"{value:.1f}" if size >= 100 else f"{value:.3g}"


def with_interval(found: Interval | None) -> str:
    """A ratio with its interval."""
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})" if found else "-"


def _short(found: Interval) -> str:
    return f"{found.value:.2f} ({found.low:.2f}-{found.high:.2f})"


def percentages(found: Interval | None) -> str:
    """A share with its interval."""
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})" if found else "-"


def _remark(row: MetricRow) -> str:
    if row.same_as:
        return f"the plan of {row.same_as}, measured once"
    return row.note or ""
