"""`chiron evaluate runtime`: measures the costs of the wrap runtime."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from chiron.adaptation.events import Event
from chiron.adaptation.replicas import EVERY_S, Scaler
from chiron.cli import options
from chiron.cli.output import emit, progress, table
from chiron.cli.place import embedded_gateway, launcher_on
from chiron.evaluation.commands.options import begin, command_line, say_what_is_left_out
from chiron.evaluation.runtime.costs import PARTS, QUICK_ROUNDS, ROUNDS, measure_runtime
from chiron.evaluation.runtime.events import measure_events
from chiron.evaluation.runtime.load_step import cases, measure_load_step
from chiron.evaluation.runtime.mapreduce import measure_mapreduce
from chiron.evaluation.runtime.query import query
from chiron.evaluation.runtime.redundant import measure_redundant
from chiron.evaluation.runtime.reruns import measure_reruns
from chiron.evaluation.runtime.rounds import Figure, RuntimeReport
from chiron.evaluation.runtime.servers import SERVERS, missing, redis
from chiron.evaluation.runtime.streams import measure_streams
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionStatus

_COLUMNS = ["what", "median", "p25", "p75", "unit", "samples"]
_OTHERS, _RERUNS, _PATHS, _STEP, _STREAMS = "others", "reruns", "paths", "step", "streams"
#: Rounds of load steps, each of which takes minutes.
_STEPS, _QUICK_STEPS = 3, 2
_QUERY, _REDUNDANT, _EVENTS, _DURABLE = "query", "redundant", "events", "events-durable"
_MAPREDUCE = "mapreduce"
_OF_BUCKETS = (_QUERY, _REDUNDANT, _MAPREDUCE, _EVENTS, _DURABLE)


@click.command("runtime")
@click.option("--quick", is_flag=True, help=f"{QUICK_ROUNDS} rounds instead of {ROUNDS}.")
@click.option(
    "--part",
    "chosen",
    type=click.Choice(
        [*(part.name for part in PARTS), _PATHS, _STREAMS, _RERUNS, _STEP, _OTHERS, *_OF_BUCKETS]
    ),
    multiple=True,
    help=f"Measure this part only; may be repeated. {_PATHS} sends objects from wrap to wrap "
    f"directly, through the gateway and by stores, {_STREAMS} has some write what others read, "
    f"{_OTHERS} compares with Ray and Dask, "
    f"{_RERUNS} has functions crash, {_STEP} has ten times the load all at once. Of workflows of "
    f"buckets, {_QUERY} is a chain of three, {_REDUNDANT} takes two of three answers, "
    f"{_MAPREDUCE} sorts and counts words, {_EVENTS} looks for the most events a second of which "
    f"windows are counted in time, and {_DURABLE} does with Redis, and kills the wrap.",
)
@click.option(
    "--seconds",
    type=options.FiniteRange(min=4),
    default=20.0,
    show_default=True,
    help=f"How long {_EVENTS} and {_DURABLE} hold their rate.",
)
@click.option(
    "--megabytes",
    type=options.FiniteRange(min=1),
    help=f"What {_MAPREDUCE} sorts and counts the words of, in place of 64; what is written to "
    f"each of {_STREAMS}, in place of 1, 16 and 100.",
)
@options.output("out")
@options.as_json
def command(
    quick: bool,
    chosen: tuple[str, ...],
    seconds: float,
    megabytes: float | None,
    output: Path,
    as_json: bool,
) -> None:
    """Measure what a wrap, its threads, workers, processes and remote wraps cost on this machine.

    \b
    Example:
      chiron evaluate runtime --quick
    """
    machine = begin(output)
    parts = [part for part in PARTS if part.name in chosen or not chosen]
    if _OTHERS in chosen:
        from chiron.evaluation.runtime.others import (  # its import creates 100 MB of data
            SYSTEMS,
            others,
        )

        say_what_is_left_out(SYSTEMS)
        parts.append(others())
    if _PATHS in chosen:
        from chiron.evaluation.runtime.paths import paths  # its import creates 100 MB of data

        for line in filter(None, map(missing, SERVERS)):
            progress(f"left out: {line}")
        parts.append(paths())
    if _STREAMS in chosen and (lacking := missing("MinIO")):
        progress(f"left out: {lacking}")
    if _QUERY in chosen:
        parts.append(query())
    with embedded_gateway() as url, Gateway(url) as gateway:
        rounds = QUICK_ROUNDS if quick else ROUNDS
        found = measure_runtime(launcher_on(gateway), rounds, progress, parts)
        if _RERUNS in chosen:
            found += measure_reruns(launcher_on(gateway), rounds, progress)
        if _STEP in chosen:
            steps = _QUICK_STEPS if quick else _STEPS
            scaling = partial(_scaling, gateway)
            found += measure_load_step(launcher_on(gateway), steps, progress, scaling, cases())
        if _STREAMS in chosen:
            found += measure_streams(launcher_on(gateway), rounds, megabytes, progress)
        if _REDUNDANT in chosen:
            found += measure_redundant(launcher_on(gateway), rounds, progress)
        if _MAPREDUCE in chosen:
            found += measure_mapreduce(launcher_on(gateway), rounds, megabytes, progress)
        if _EVENTS in chosen:
            found += measure_events(launcher_on(gateway), seconds, progress)
        if _DURABLE in chosen:
            with redis() as store:
                durable = replace(launcher_on(gateway), store=store)
                found += measure_events(durable, seconds, progress, durable=True)
    report = RuntimeReport(machine=machine, command=command_line(), figures=found)
    emit(report, output / f"{'-'.join(['runtime', *chosen])}.json", as_json)
    show(report)


@contextmanager
def _scaling(gateway: Gateway, names: Sequence[str], by_pressure: bool) -> Iterator[None]:
    """Scale the functions `names` automatically during the block."""
    functions = [FunctionStatus(name=name) for name in names]
    scaler = Scaler(gateway, lambda: functions, _tell, by_pressure=by_pressure)
    over = threading.Event()

    def scale() -> None:
        while not over.is_set():
            scaler.wait(EVERY_S)

    thread = threading.Thread(target=scale)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _tell(event: Event) -> None:
    progress(event.message)


def show(report: RuntimeReport) -> None:
    """Print the report as tables."""
    alone = [figure for figure in report.figures if not figure.system]
    if alone:
        table(_title(alone), _COLUMNS, [_row(figure) for figure in alone])
    compared = [figure for figure in report.figures if figure.system]
    if compared:
        systems = list(dict.fromkeys(figure.system for figure in compared))
        title = f"{_title(compared)} (quartiles)"
        table(title, ["what", *systems], _rows_of_systems(compared, systems))


def _title(figures: Sequence[Figure]) -> str:
    samples = {figure.samples for figure in figures}
    return f"medians of {samples.pop()} rounds" if len(samples) == 1 else "medians"


def _rows_of_systems(figures: Sequence[Figure], systems: Sequence[str]) -> Iterator[list[str]]:
    """Yield a row for each figure, with a cell for every system."""
    found = {(figure.name, figure.system): figure for figure in figures}
    for name, unit in dict.fromkeys((figure.name, figure.unit) for figure in figures):
        cells = (found.get((name, system)) for system in systems)
        of_each = (f"{f.median:.2f} ({f.low:.2f}-{f.high:.2f})" if f else "" for f in cells)
        yield [f"{name}, {unit}" if unit else name, *of_each]


def _row(figure: Figure) -> list[str]:
    found = (f"{value:.2f}" for value in (figure.median, figure.low, figure.high))
    return [figure.name, *found, figure.unit, str(figure.samples)]
