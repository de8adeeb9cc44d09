"""Writes the report of a run: each result as JSON, CSV and PNG, and all results as one HTML page.

The page also shows the JSON and CSV files of other verbs in the same folder.
"""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from chiron.evaluation.bench.machine import no_evidence
from chiron.evaluation.bench.settings import RUN_FILE
from chiron.evaluation.bench.setup import PLATFORM_FILE
from chiron.evaluation.experiments.metric import MetricResult
from chiron.evaluation.experiments.published import source
from chiron.evaluation.experiments.recorded import RunFolder, read_run
from chiron.evaluation.experiments.results import EXPERIMENTS, Result, results_of
from chiron.evaluation.optional import PICTURES, missing
from chiron.evaluation.report.glance import Cell, averages, cell
from chiron.evaluation.report.pictures import pictures
from chiron.evaluation.report.tables import (
    Table,
    csv_of,
    facts,
    number,
    payloads,
    table_of,
    with_interval,
)
from chiron.workflow.documents import dump, write_atomically

REPORT_FILE = "report.html"
#: The most rows, and characters of a cell, in the page's table of another verb's file.
_MOST_ROWS, _LONGEST = 40, 80
_NO_RESULTS = (RUN_FILE, PLATFORM_FILE)
#: Title and text of each result's section.
_SECTIONS = {
    "latency": (
        "Latency",
        "End-to-end latency of one request at a time, on the client's clock, after a warm-up "
        "(Chiron Figure 13); error is that of the prediction, (P̂ - P) / P.",
    ),
    "breakdown": (
        "Where the time goes",
        "One traced request of each variant, the one with the median latency. Tracing costs a "
        "little. Waiting is how long handlers were kept from a core, added up; it "
        "lies within the functions' time.",
    ),
    "slo": (
        "SLO",
        "Share of requests that take longer than the SLO for which our plans were made: "
        "Faastlane's mean and 10 ms (Chiron Figure 14). The columns on the right are against "
        "Faastlane's mean in the same rounds, since a machine's speed drifts.",
    ),
    "cpu": (
        "CPU",
        "CPU time of the sandboxes' process trees for one request, beside the CPUs that the "
        "plan is given (Chiron Figure 17 shows those: paper_cpus). Client and gateway are not "
        "in it.",
    ),
    "memory": (
        "Memory",
        "The most memory while requests run, forked processes included (Chiron Figure 16); "
        "idle_mib is between requests.",
    ),
    "throughput": (
        "Throughput",
        "Closed loop: the most requests per second that are answered on the whole machine, "
        "which runs client and gateway as well, by one sandbox of each wrap. per_cpu is that "
        "divided by the plan's CPUs, of which a larger node holds more: so Chiron Figure 16 "
        "computes it. The columns with ms have the CPU time of a request by what uses it.",
    ),
    "load": (
        "Latency under load",
        "Open loop: requests arrive at a constant rate, and a latency counts from when the "
        "request was due. A cross is a rate at which requests were dropped or failed.",
    ),
    "cost": (
        "Cost",
        "USD for a million requests that hold their plan's CPUs and the measured memory as "
        "long as they last, at 0.0000025 USD per GB-s and 0.00001 USD per GHz-s (Chiron "
        "Figure 19). used is with the CPU time that they really used; transitions is what an "
        "orchestrator that bills state transitions takes on top for one-to-one, as the paper "
        "counts it.",
    ),
}


class Section(NamedTuple):
    """The page's section of one result; its pictures are data URIs by their names."""

    id: str
    title: str
    text: str
    images: Mapping[str, str]
    tables: Sequence[Table]


def write_report(out: Path) -> Path:
    """Write the results of the run in the folder `out` as JSON, CSV, PNG and `REPORT_FILE`.

    Metrics that were not measured are left out. Raises ``missing-file`` if the folder has no run.
    """
    folder = read_run(out)
    results = results_of(list(EXPERIMENTS), folder)
    drawn = write_results(results, folder, out)
    write_atomically(out / REPORT_FILE, _render(out, folder, results, drawn))
    return out / REPORT_FILE


def write_results(results: Sequence[Result], folder: RunFolder, out: Path) -> dict[str, bytes]:
    """Write EXPERIMENT.json, .csv and .png of each result to `out`; return the pictures by name.

    Without matplotlib there are no pictures.
    """
    drawn: dict[str, bytes] = {}
    for result in results:
        write_atomically(out / f"{result.experiment}.json", dump(result))
        write_atomically(
            out / f"{result.experiment}.csv",
            csv_of(dict(_flat(row.model_dump(mode="json"), "")) for row in result.rows),
        )
        drawn |= {} if missing(PICTURES) else pictures(result, folder)
    for name, content in drawn.items():
        (out / f"{name}.png").write_bytes(content)
    return drawn


def _flat(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{prefix}{key}.")
        elif item is not None:
            yield f"{prefix}{key}", item


def _render(
    out: Path, folder: RunFolder, results: Sequence[Result], drawn: Mapping[str, bytes]
) -> str:
    """Return the HTML page of `results`, pictures `drawn`, and other verbs' files in `out`."""
    metrics = [result for result in results if isinstance(result, MetricResult)]
    workflows = [each.name for each in folder.workflows]
    cells = {w: [cell(each, w, folder.ours) for each in metrics] for w in workflows}
    images = {name: _uri(content) for name, content in drawn.items()}
    cover = images.pop("latency", None)
    environment = Environment(
        loader=PackageLoader("chiron.evaluation.report", ""),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
    )
    environment.filters |= {"number": number, "ratio": with_interval}
    return environment.get_template("report.html.jinja").render(
        run=folder.run,
        workflows=workflows,
        headline=_headline(cells),
        doubt=no_evidence(folder.run.commits),
        cover=cover,
        metrics=metrics,
        cells=cells if metrics else {},
        averages=averages(metrics, folder.ours),
        sections=[*_of_results(results, images), *_of_others(out, results)],
        tables=[payloads(folder), facts(folder)],
        source=source(),
    )


def _uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _of_results(results: Sequence[Result], images: Mapping[str, str]) -> Iterator[Section]:
    for result in results:
        name, (title, text) = result.experiment, _SECTIONS[result.experiment]
        own = {k: uri for k, uri in images.items() if k == name or k.startswith(f"{name}-")}
        yield Section(name, title, text, own, [table_of(result)])


def _of_others(out: Path, results: Sequence[Result]) -> Iterator[Section]:
    """Yield sections of other verbs' results in `out`: of their JSON, else of their CSV."""
    files = {file.stem: file for file in sorted([*out.glob("*.csv"), *out.glob("*.json")])}
    known = {result.experiment for result in results}
    for name, file in files.items():
        if name in known or file.name in _NO_RESULTS:
            continue
        drawn = sorted({*out.glob(f"{name}.png"), *out.glob(f"{name}-*.png")})
        images = {each.stem: _uri(each.read_bytes()) for each in drawn}
        text = f"What chiron evaluate {name} has found: all of it is in the files {name}.*"
        yield Section(name, name.replace("-", " ").capitalize(), text, images, _tables(file))


def _tables(file: Path) -> list[Table]:
    """Return a table of a CSV's rows, or a table for each list of objects in a JSON."""
    if file.suffix == ".csv":
        with file.open(newline="", encoding="utf-8") as text:
            return [_table(file.name, list(csv.DictReader(text)))]
    content = json.loads(file.read_text(encoding="utf-8"))
    lists = content.items() if isinstance(content, dict) else ()
    return [
        _table(f"{file.stem}: {name.replace('_', ' ')}", [dict(_plain(row)) for row in rows])
        for name, rows in lists
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows)
    ]


def _table(title: str, rows: Sequence[Mapping[str, str]]) -> Table:
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    shown = tuple(tuple(_cut(row.get(c) or "") for c in columns) for row in rows[:_MOST_ROWS])
    more = f", the first {_MOST_ROWS} of {len(rows)} rows" if len(rows) > _MOST_ROWS else ""
    return Table(title + more, columns, shown)


def _plain(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names and texts of plain values in an object, and in the objects in it."""
    for key, value in row.items():
        match value:
            case dict() if not prefix:
                yield from _plain(value, f"{key} ")
            case bool():
                yield prefix + key, "yes" if value else "no"
            case int() | float():
                yield prefix + key, number(value)
            case str():
                yield prefix + key, value


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _headline(cells: Mapping[str, Sequence[Cell | None]]) -> str:
    """Return the sentence on how often our plans are the best."""
    standings = [each.standing for row in cells.values() for each in row if each and each.standing]
    if not standings:
        return "Our planner was not measured against another one."
    wins, even, loses = (standings.count(word) for word in ("wins", "even", "loses"))
    return (
        f"Of {len(standings)} comparisons (workflow and metric) our plans are better than every "
        f"other planner in {wins}, even with the best in {even}, and worse than at least one in "
        f"{loses}."
    )
