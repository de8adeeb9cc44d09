"""Formats results, settings and payloads as tables of text, for the terminal and the page."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from chiron.deployment.background_load import busy_line
from chiron.deployment.verdict import measured_line
from chiron.evaluation.experiments.metric import MetricResult, MetricRow
from chiron.evaluation.experiments.recorded import RunFolder
from chiron.evaluation.experiments.results import BreakdownResult, LoadResult, Result, SloResult
from chiron.evaluation.intervals import Interval
from chiron.evaluation.measurements.single import REQUESTS

#: The further figures of a metric that are shares, and their formats.
_SHARES = {"error": "{:+.1%}", "over_slo": "{:.1%}"}
_LOW, _HIGH = "predicted_low_ms", "predicted_high_ms"
#: The meanings of column names in a metric's table.
_MEANINGS = {
    "processes": "most at once",
    "CPUs": "what the plan is given",
    "95 % interval": "bootstrap over rounds",
    "remark": "plan of X: the same plan as X, measured once",
    "paper": "what Chiron reports of its own machine: compare the rows, not this",
    "predicted_ms": "predicted from profile and platform: the median, with its range; of several "
    "payloads the mean",
    "error": "predicted ÷ measured median - 1; of several payloads, the means",
    "over_slo": "requests slower than slo_ms",
    "mib": "memory of the sandboxes in MiB while requests run",
}
Columns = Mapping[str, Callable[[Any], str]]
_WHICH: Columns = {"variant": lambda row: row.variant, "workflow": lambda row: row.workflow}
_SLO: Columns = {
    **_WHICH,
    "requests": lambda row: str(row.requests),
    "mean ms": lambda row: number(row.mean_ms),
    "SLO ms": lambda row: number(row.slo_ms),
    "above it": lambda row: percentages(row.violations),
    "SLO of these rounds": lambda row: number(row.same_run_slo_ms),
    "above that": lambda row: percentages(row.same_run_violations),
}
_LOAD: Columns = {
    **_WHICH,
    "arriving/s": lambda row: number(row.per_s),
    "arrived": lambda row: str(row.arrived),
    "failed": lambda row: f"{row.failed:.1%}",
    "p50 ms": lambda row: number(row.p50_ms) if row.p50_ms else "too few",
    "p95": lambda row: number(row.p95_ms) if row.p95_ms else "too few",
    "p99": lambda row: number(row.p99_ms) if row.p99_ms else "too few",
}
_BREAKDOWN: Columns = {
    **_WHICH,
    "latency ms": lambda row: number(row.typical.latency_ms),
    "functions": lambda row: number(row.typical.functions_ms),
    "starting processes": lambda row: number(row.typical.starting_ms),
    "inside the wrap": lambda row: number(row.typical.wrap_ms),
    "outside: gateway and HTTP": lambda row: number(row.typical.outside_ms),
    "waiting": lambda row: number(row.typical.waiting_ms),
    "handlers' times added up": lambda row: number(row.typical.work_ms),
}


@dataclass(frozen=True)
class Table:
    """A title, the names of the columns, and the cells; the first column has words.

    ``notes`` explain columns; the first ``keys`` columns identify a row.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    keys: int = 1


def table_of(result: Result) -> Table:
    """Return the table of a result of any kind."""
    match result:
        case MetricResult():
            return metric_table(result)
        case SloResult():
            return _table("requests that miss the SLO", result.rows, _SLO)
        case LoadResult():
            return _table("latency at constant arrival rates", result.rows, _LOAD)
        case BreakdownResult():
            traces = max((row.traces for row in result.rows), default=0)
            notes = (
                f"the request of median latency of {traces} traced ones, which are not those of "
                "latency: the two differ as requests do",
                "latency is the sum of the four columns after it; in functions at least one handler"
                " runs",
                "waiting: for a core, over all handlers; it lies within functions",
            )
            title = "where the time of a request goes, ms"
            return replace(_table(title, result.rows, _BREAKDOWN), notes=notes, keys=2)


def _table(title: str, rows: Sequence[Any], columns: Columns) -> Table:
    """Return a table of `rows`; `columns` maps each heading to the function of its cells' text."""
    cells = tuple(tuple(cell(row) for cell in columns.values()) for row in rows)
    return Table(title, tuple(columns), cells)


def metric_table(result: MetricResult) -> Table:
    """Return a table of values, intervals, ratios of ours, the paper's and the further figures."""
    ours = list(dict.fromkeys(label for row in result.rows for label in row.against))
    names = dict.fromkeys(name for row in result.rows for name in row.details)
    columns: Columns = {
        **_WHICH,
        "wraps": lambda row: str(row.wraps),
        "processes": lambda row: str(row.processes),
        "CPUs": lambda row: str(row.cpus),
        result.unit: lambda row: number(row.value.value) if row.value else "-",
        "95 % interval": lambda row: _ends(row.value.low, row.value.high) if row.value else "-",
        **{f"{own} ÷ it": partial(_against, own) for own in ours},
        "paper": lambda row: number(row.published),
        **{n: partial(_detail, n) for n in names if n not in (_LOW, _HIGH)},
        "remark": lambda row: f"plan of {row.same_as}" if row.same_as else row.note or "",
    }
    table = _table(result.metric, result.rows, _lean(columns, result.rows))
    better = "below" if result.better == "lower" else "above"
    notes = [f"{name}: {_MEANINGS[name]}" for name in table.columns if name in _MEANINGS]
    notes += [
        f"{own} ÷ it: {own} divided by the row, in the same rounds: {better} 1 {own} is better"
        for own in ours
    ]
    notes += [_kept(row) for row in result.rows if row.variant in ours and "slo_ms" in row.details]
    if result.noise:
        noise = ", ".join(f"{name} {with_interval(each)}" for name, each in result.noise.items())
        notes.append(f"one plan deployed twice, the second ÷ the first: {noise}")
    for name, drift in result.drift.items():
        if busy := busy_line(drift.others):
            notes.append(f"{name}: {busy}")
    return replace(table, notes=tuple(notes), keys=2)


def _kept(row: MetricRow) -> str:
    """Return the sentence on the SLO of our plan and on its measured requests."""
    about = row.details
    requests, slo_ms = round(about["requests"]), about["slo_ms"]
    over, took = round(about["over_slo"] * requests), f"p95 {about['p95_ms']:.1f} ms"
    measured = measured_line(slo_ms, requests, over, took, row.cpus)
    return f"{row.variant} of {row.workflow}: planned for {slo_ms:g} ms; {measured}"


def _lean(columns: Columns, rows: Sequence[MetricRow]) -> Columns:
    """Return `columns` without the columns that are empty in all rows."""
    return {
        heading: cell
        for heading, cell in columns.items()
        if any(cell(row) not in ("", "-") for row in rows)
    }


def _against(own: str, row: MetricRow) -> str:
    return with_interval(row.against.get(own))


def _detail(name: str, row: MetricRow) -> str:
    """Return the text of a further figure: a share in percent, a prediction with its range."""
    value = row.details.get(name)
    if value is not None and name in _SHARES:
        return _SHARES[name].format(value)
    if name == "predicted_ms" and _LOW in row.details:
        return f"{number(value)} ({_ends(row.details[_LOW], row.details[_HIGH])})"
    return number(value)


def _ends(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}"


def number(value: float | None) -> str:
    """Return `value` in three significant digits or more, integers in full; a dash for None."""
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    size = abs(value)
    return f"{value:.0f}" if size >= 1000 else f"{value:.1f}" if size >= 100 else f"{value:.3g}"


def with_interval(found: Interval | None) -> str:
    """Return the text of a ratio with its interval."""
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})" if found else "-"


def percentages(found: Interval | None) -> str:
    """Return the text of a share with its interval, in percent."""
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})" if found else "-"


def csv_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return CSV with a line for each row, and a column for each field of any row."""
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(
        text, dict.fromkeys(column for row in rows for column in row), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def facts(folder: RunFolder) -> Table:
    """Return a table of machine, versions, commit and settings."""
    run, machine = folder.run, folder.run.machine
    settings = run.settings
    slo = "Faastlane's mean + 10 ms" if settings.slo_ms is None else f"{settings.slo_ms:g} ms"
    rows = [
        ("CPU", f"{machine.cpu}, {number(machine.ghz)} GHz, {machine.cores} cores"),
        ("memory", f"{machine.memory_mib} MiB"),
        ("kernel", machine.kernel),
        ("Python", machine.python),
        ("packages", ", ".join(f"{name} {version}" for name, version in machine.packages.items())),
        ("commit", ", ".join(each or "unknown" for each in run.commits)),
        ("other programs' share", "-" if machine.others is None else f"{machine.others:.1%}"),
        ("gateway", f"{run.target.provider} {run.target.release}".strip()),
        ("planners", ", ".join(settings.planners)),
        ("mechanisms", ", ".join(settings.mechanisms)),
        ("SLO", slo),
        ("trigger", settings.trigger),
        ("strategy", settings.strategy),
        ("the SLO is for", f"{settings.percentile:g} % of requests"),
        *(("warning", line) for line in folder.warnings),
    ]
    return Table("machine and settings", ("", ""), tuple(rows))


def payloads(folder: RunFolder) -> Table:
    """Return a table of the workflows' stages, requests and SLOs, and of the machine's drift."""
    rows = []
    for recorded in folder.workflows:
        setup, drift = recorded.setup, recorded.drift(REQUESTS)
        slos = ", ".join(f"{name} {number(ms)}" for name, ms in setup.slo_ms.items())
        probe = (_ends(drift.low_ms, drift.high_ms), f"{drift.trend:.2f}") if drift else ("-", "-")
        stages = " + ".join(map(str, setup.stages))
        rows.append((setup.workflow, stages, str(setup.payload_bytes), slos, *probe))
    columns = (
        "workflow", "tasks by stage", "request, bytes", "SLO, ms",
        "CPU-speed probe, ms (5 to 95 %)", "probe, end ÷ begin",
    )  # fmt: skip
    return Table("workflows", columns, tuple(rows))
