"""`chiron evaluate profiler`: the accuracy and stability of profiles of known functions."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.output import emit, progress, table
from chiron.cli.place import Place, place
from chiron.deployment.launcher import Launcher
from chiron.deployment.local_launcher import LocalLauncher
from chiron.evaluation.commands.options import begin, command_line
from chiron.evaluation.profiler import ProfilerReport, check_profiler

_COLUMNS = [
    "function", "cpu", "native", "block", "worst", "profiled", "untraced", "p25", "p75", "error"
]  # fmt: skip


@click.command("profiler")
@click.option("--repeats", type=click.IntRange(min=2), default=5, show_default=True)
@click.option("--samples", type=click.IntRange(min=3), default=20, show_default=True)
@place(options.local)
@click.option("--local-launcher", is_flag=True, help="Run the functions here, without any gateway.")
@options.output("out")
@options.as_json
def command(
    repeats: int,
    samples: int,
    place: Place,
    local_launcher: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Profile functions of which is known what they do, and one of them several times.

    \b
    Example:
      chiron evaluate profiler --local
    """
    machine = begin(output)
    with ExitStack() as stack:
        here: Launcher | LocalLauncher = (
            LocalLauncher(progress) if local_launcher else stack.enter_context(place.connect())
        )
        report = check_profiler(
            here,
            machine=machine,
            command=command_line(),
            repeats=repeats,
            samples=samples,
            progress=progress,
            probe_alone=local_launcher,
        )
    emit(report, output / "profiler.json", as_json)
    _show(report)


def _show(report: ProfilerReport) -> None:
    rows = [
        [
            row.function,
            *(f"{row.found[kind]:.1%}" for kind in ("cpu", "native", "block")),
            f"{row.worst_points:.1f}",
            *(f"{ms:.2f}" for ms in (row.profiled_ms, row.untraced_ms, *row.untraced_spread_ms)),
            f"{row.latency_error:+.1%}",
        ]
        for row in report.functions
    ]
    table("shares, worst error in percentage points, latencies in ms", _COLUMNS, rows)
    progress(f"{len(report.functions)} functions profiled in {report.seconds:.0f} s")
    latencies = ", ".join(f"{latency:.2f}" for latency in report.repeated_ms)
    progress(
        f"{report.repeated} profiled {len(report.repeated_ms)} times in a row: {latencies} ms, "
        f"within {report.repeated_range:.1%}"
    )
