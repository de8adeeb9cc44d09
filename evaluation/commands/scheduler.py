"""`chiron evaluate scheduler`: the quality and the speed of the scheduler's search."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import click

from chiron.cli import options
from chiron.cli.output import emit, progress, table
from chiron.evaluation.bench.machine import Measured
from chiron.evaluation.commands.options import begin, command_line
from chiron.evaluation.scheduling.command import CASES, LargeCase, schedule_large
from chiron.evaluation.scheduling.exhaustive import SmallStage, compare_small_stages
from chiron.evaluation.scheduling.published import PublishedCase, compare_published


class SchedulingReport(Measured):
    """All cases: published workflows, large workflows, and small stages with exhaustive search."""

    published: tuple[PublishedCase, ...]
    large: tuple[LargeCase, ...]
    small_stages: tuple[SmallStage, ...]


@click.command("scheduler")
@click.option(
    "--testbed",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with a published testbed's profiles and workflows.",
)
@click.option("--cases", type=click.IntRange(min=0), default=200, show_default=True)
@click.option("--samples", type=click.IntRange(min=2), default=5, show_default=True)
@click.option("--large/--no-large", default=True, show_default=True, help="Large workflows too.")
@click.option(
    "--functions",
    "sizes",
    type=click.Choice([str(case.functions) for case in CASES]),
    multiple=True,
    help="Large workflows of so many functions only.",
)
@click.option("--seed", default=1, show_default=True, help="Which workflows are drawn.")
@options.output("out")
@options.as_json
def command(
    testbed: Path | None,
    cases: int,
    samples: int,
    large: bool,
    sizes: tuple[str, ...],
    seed: int,
    output: Path,
    as_json: bool,
) -> None:
    """Compare plans with the best there are and with published ones, and time the search.

    Small random stages are compared with exhaustive search, large workflows are timed; with
    --testbed, published workflows are compared with published plans. Times of a search are CPU
    time; only those of large workflows have the loading of the kernel in it.

    \b
    Example:
      chiron evaluate scheduler --testbed testbed
    """
    machine, published = begin(output), []
    for case in compare_published(testbed, samples) if testbed else ():
        progress(f"{case.workflow}: {case.search_s:.3f} s")
        published.append(case)
    many = []
    wanted = [case for case in CASES if large and (not sizes or str(case.functions) in sizes)]
    for each in schedule_large(wanted, seed):
        progress(
            f"{each.functions} functions, SLO {each.slo_ms:g} ms: {each.command.search_s:.1f} s"
        )
        many.append(each)
    progress(f"{cases} small stages, tried in all ways")
    report = SchedulingReport(
        machine=machine,
        command=command_line(),
        published=tuple(published),
        large=tuple(many),
        small_stages=tuple(compare_small_stages(cases, seed)),
    )
    emit(report, output / "scheduler.json", as_json)
    if report.published:
        _show_published(report)
    if report.large:
        _show_large(report)
    if small := report.small_stages:
        same = fmean(stage.processes == stage.least_processes for stage in small)
        excess = fmean(stage.latency_ms / stage.least_ms - 1 for stage in small)
        progress(
            f"{len(small)} small stages: the fewest processes possible in {same:.1%}, latency "
            f"{excess:.2%} above the least possible in the mean"
        )


def _show_published(report: SchedulingReport) -> None:
    rows = [
        [
            each.workflow,
            f"{each.slo_ms:g}",
            f"{each.latency_ms:.1f}",
            f"{each.processes} / {each.published_processes}",
            f"{each.ours_at_published_ms:.1f} / {each.published_ms:.1f}",
            f"{each.search_s:.3f}",
            "-" if each.published_search_s is None else f"{each.published_search_s:g}",
            f"{each.command.wall_s:.2f}",
        ]
        for each in report.published
    ]
    columns = ["workflow", "SLO ms", "ours ms", "processes", "ms at published"]
    times = ["search s", "published s", "command s"]
    table("ours / published", [*columns, *times], rows)


def _show_large(report: SchedulingReport) -> None:
    rows = [
        [
            f"{each.functions} in {each.stages}, {' '.join(each.kinds)}",
            f"{each.slo_ms:g}",
            f"{each.latency_ms:.1f}",
            str(each.cpus),
            str(each.wraps),
            f"{each.command.search_s:.2f}",
            f"{each.command.wall_s:.2f}",
            f"{each.command.peak_mib:.0f}",
        ]
        for each in report.large
    ]
    columns = ["functions in stages", "SLO ms", "ours ms", "CPUs", "wraps"]
    table("distinct functions", [*columns, "search s", "command s", "MiB"], rows)
