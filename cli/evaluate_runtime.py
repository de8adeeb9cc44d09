"""`chiron evaluate runtime`: what the wrap runtime costs."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options
from cli.evaluate_options import command_line
from cli.output import emit, progress, table
from cli.place import embedded_gateway, launcher_on
from evaluation.bench.machine import this_machine
from evaluation.runtime.costs import PARTS, QUICK_ROUNDS, ROUNDS, measure_runtime
from evaluation.runtime.rounds import Figure, RuntimeReport
from openfaas.client import Gateway

_COLUMNS = ["what", "median", "p25", "p75", "unit"]


@click.command("runtime")
@click.option("--quick", is_flag=True, help=f"{QUICK_ROUNDS} rounds instead of {ROUNDS}.")
@click.option(
    "--part",
    "chosen",
    type=click.Choice([part.name for part in PARTS]),
    multiple=True,
    help="Measure this part only; may be repeated.",
)
@options.output("out")
@options.as_json
def command(quick: bool, chosen: tuple[str, ...], output: Path, as_json: bool) -> None:
    """Measure what a wrap, its threads, workers, processes and remote wraps cost on this machine.

    \b
    Example:
      chiron evaluate runtime --quick
    """
    with embedded_gateway() as url, Gateway(url) as gateway:
        rounds = QUICK_ROUNDS if quick else ROUNDS
        parts = [part for part in PARTS if part.name in chosen or not chosen]
        found = measure_runtime(launcher_on(gateway), rounds, progress, parts)
    report = RuntimeReport(machine=this_machine(), command=command_line(), figures=found)
    emit(report, output / f"{'-'.join(['runtime', *chosen])}.json", as_json)
    _show(report)


def _show(report: RuntimeReport) -> None:
    samples = report.figures[0].samples
    table(f"medians of {samples} rounds", _COLUMNS, [_row(figure) for figure in report.figures])


def _row(figure: Figure) -> list[str]:
    found = (f"{value:.2f}" for value in (figure.median, figure.low, figure.high))
    return [figure.name, *found, figure.unit]
