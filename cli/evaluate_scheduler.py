"""`chiron evaluate scheduler`: how good and how fast the scheduler's search is."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options
from cli.evaluate_options import command_line
from cli.output import emit, progress, table
from evaluation.bench.machine import this_machine
from evaluation.scheduling.exhaustive import compare_small_stages
from evaluation.scheduling.kernel import load_kernel
from evaluation.scheduling.large import CASES, schedule_large
from evaluation.scheduling.laws import try_laws
from evaluation.scheduling.published import compare_published
from evaluation.scheduling.report import Requirement, SchedulingReport


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
    """Compare plans with the best there are, with fixed models and with published ones.

    Small random stages are compared with exhaustive search, random workflows with the fixed
    models, large ones are timed; with --testbed, published workflows with published plans. Times
    of a search are CPU time; only those of large workflows have the loading of the kernel in it.

    \b
    Example:
      chiron evaluate scheduler --testbed testbed
    """
    load_kernel()
    published = []
    for case in compare_published(testbed, samples) if testbed else ():
        progress(f"{case.workflow}: {case.search.cpu_s:.3f} s")
        published.append(case)
    many = []
    wanted = [case for case in CASES if large and (not sizes or str(case.functions) in sizes)]
    for each in schedule_large(wanted, seed):
        progress(
            f"{each.functions} functions, SLO {each.slo_ms:g} ms: {each.command.search_s:.1f} s"
        )
        many.append(each)
    progress(f"{cases} small stages, tried in all ways")
    small = tuple(compare_small_stages(cases, seed))
    progress(f"{cases} workflows, scheduled for several SLOs and models")
    trials = tuple(try_laws(cases, seed))
    report = SchedulingReport.of(
        this_machine(), command_line(), tuple(published), tuple(many), small, trials
    )
    emit(report, output / "scheduler.json", as_json)
    _show(report)


def _show(report: SchedulingReport) -> None:
    if report.published:
        _show_published(report)
    if report.large:
        _show_large(report)
    columns = ["requirement", "bound", "measured", "met"]
    table("what the scheduler has to show", columns, map(_row, report.requirements))


def _show_published(report: SchedulingReport) -> None:
    rows = [
        [
            each.workflow,
            f"{each.slo_ms:g}",
            f"{each.latency_ms:.1f}",
            f"{each.processes} / {each.published_processes}",
            f"{each.ours_at_published_ms:.1f} / {each.published_ms:.1f}",
            f"{each.search.cpu_s:.3f}",
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
            f"{each.command.search_mib:.0f}",
            f"{each.command.peak_mib:.0f}",
        ]
        for each in report.large
    ]
    columns = ["functions in stages", "SLO ms", "ours ms", "CPUs", "wraps"]
    table(
        "distinct functions", [*columns, "search s", "command s", "search MiB", "command MiB"], rows
    )


def _row(requirement: Requirement) -> list[str]:
    met = "yes" if requirement.met else "NO"
    return [requirement.name, requirement.bound, requirement.measured, met]
