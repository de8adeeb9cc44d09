"""The report of a run: one HTML file with everything in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from evaluation.bench.machine import Machine
from evaluation.bench.settings import Run, Settings
from evaluation.experiments.breakdown import BreakdownResult
from evaluation.experiments.catalogue import EXPERIMENTS, Result, results_of
from evaluation.experiments.explain import explain
from evaluation.experiments.goals import Verdict, verdicts
from evaluation.experiments.metric import MetricResult
from evaluation.experiments.published import source
from evaluation.experiments.recorded import RunFolder, read_run
from evaluation.experiments.slo import SloResult
from evaluation.report.facts import facts, payloads
from evaluation.report.files import write_results
from evaluation.report.glance import Average, Cell, averages, cell
from evaluation.report.sections import Section, extra_sections, result_sections
from evaluation.report.tables import Table, goal_table, number, with_interval
from workflow.documents import write_atomically

REPORT_FILE = "report.html"


@dataclass(frozen=True)
class Explanation:
    """Why a goal is missed."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """What the template shows; ``cells`` has a row a workflow and a column a metric."""

    run: Run[Settings]
    machine: Machine
    workflows: tuple[str, ...]
    headline: str
    metrics: tuple[MetricResult, ...]
    cells: Mapping[str, list[Cell | None]]
    averages: Mapping[tuple[str, str], list[Average | None]]
    goals: Table | None
    explanations: tuple[Explanation, ...]
    sections: tuple[Section, ...]
    payloads: Table
    facts: Table
    source: str


def write_report(out: Path, say: Callable[[str], None]) -> Path:
    """Write report.html, and every result as JSON, CSV and PNG, of the run in the folder `out`.

    What was not measured is left out.

    Raises
    ------
    ChironError
        ``missing-file`` where the folder has no run.
    """
    folder = read_run(out)
    results = results_of(list(EXPERIMENTS), folder)
    drawn = write_results(results, folder, out, say)
    write_atomically(out / REPORT_FILE, render(page_of(out, folder, results, drawn)))
    return out / REPORT_FILE


def page_of(
    out: Path, folder: RunFolder, results: Sequence[Result], drawn: Mapping[str, bytes]
) -> Page:
    """The page of `results`, with the pictures `drawn`, and of what else is in `out`."""
    metrics = {r.experiment: r for r in results if isinstance(r, MetricResult)}
    slo = next((r for r in results if isinstance(r, SloResult)), None)
    parts = next((r for r in results if isinstance(r, BreakdownResult)), None)
    ours = tuple(dict.fromkeys(label for each in folder.workflows for label in each.ours))
    workflows = tuple(each.name for each in folder.workflows)
    cells = {w: [cell(each, w, ours) for each in metrics.values()] for w in workflows}
    found = verdicts(metrics, slo, ours) if ours else []
    known = [result.experiment for result in results]
    return Page(
        run=folder.run,
        machine=folder.run.machine,
        workflows=workflows,
        headline=_headline(cells),
        metrics=tuple(metrics.values()),
        cells=cells if metrics else {},
        averages=_averages(metrics, ours),
        goals=goal_table(found) if found else None,
        explanations=tuple(_explanations(found, metrics, parts, slo)),
        sections=(*result_sections(results, drawn), *extra_sections(out, known)),
        payloads=payloads(folder),
        facts=facts(folder),
        source=source(),
    )


def render(page: Page) -> str:
    """The page as HTML."""
    environment = Environment(
        loader=PackageLoader("evaluation.report", ""),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["ratio"] = with_interval
    return environment.get_template("report.html.jinja").render(page=page)


def _headline(cells: Mapping[str, Sequence[Cell | None]]) -> str:
    """In how many of the comparisons ours wins."""
    standings = [each.standing for row in cells.values() for each in row if each and each.standing]
    if not standings:
        return "Our model was not measured against another one."
    wins, even, loses = (standings.count(word) for word in ("wins", "even", "loses"))
    return (
        f"Of {len(standings)} comparisons (workflow and metric) our plans are better than every "
        f"rival in {wins}, even with the best in {even}, and worse than at least one in {loses}."
    )


def _averages(
    metrics: Mapping[str, MetricResult], ours: Sequence[str]
) -> dict[tuple[str, str], list[Average | None]]:
    """(rival, ours) -> the average of every metric."""
    by_metric = [{(a.rival, a.ours): a for a in averages(r, ours)} for r in metrics.values()]
    pairs = dict.fromkeys(pair for found in by_metric for pair in found)
    return {pair: [found.get(pair) for found in by_metric] for pair in pairs}


def _explanations(
    found: Sequence[Verdict],
    metrics: Mapping[str, MetricResult],
    parts: BreakdownResult | None,
    slo: SloResult | None,
) -> list[Explanation]:
    """Why goals are missed; plans that are another variant's are explained with that."""
    explanations = []
    for verdict in found:
        if verdict.met is not False:
            continue
        own = verdict
        if verdict.metric in metrics:
            rows = {w: metrics[verdict.metric].row(w, verdict.ours) for w in verdict.missed}
            others = [w for w, row in rows.items() if row and row.same_as not in _ours(found)]
            own = verdict.model_copy(update={"missed": tuple(others)})
        lines = explain(own, metrics, parts, slo)
        if lines:
            title = f"{verdict.goal} ({verdict.ours})"
            explanations.append(Explanation(title, tuple(lines)))
    return explanations


def _ours(found: Sequence[Verdict]) -> set[str]:
    return {verdict.ours for verdict in found}
