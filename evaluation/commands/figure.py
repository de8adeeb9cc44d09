"""`chiron evaluate latency` and similar verbs: each measures one metric of all planners."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click

from chiron.cli import options
from chiron.evaluation.commands.options import RunOptions, folders_argument, measuring, single


class _Figure(NamedTuple):
    """A verb's help text and its number of requests one at a time (None: as in a full run)."""

    text: str
    samples: int | None


_FIGURES = {
    "cost": _Figure(
        "Compute what a million requests of every plan cost, by measured latency and memory.",
        100,
    ),
    "cpu": _Figure("Measure the CPU time that a request takes from every plan's sandboxes.", 200),
    "latency": _Figure(
        "Deploy a plan of each planner for the workflows in DIR... and measure them in turn.", 100
    ),
    "memory": _Figure(
        "Measure the memory of every plan's sandboxes, every page once, while requests run.",
        None,
    ),
    "slo": _Figure(
        "Count the requests of each planner that take longer than faastlane's mean + 10 ms.", 500
    ),
    "throughput": _Figure(
        "Find the most requests per second of every plan, and its latency at constant rates.",
        None,
    ),
}


def _command(name: str, figure: _Figure) -> click.Command:
    example = f"\b\nExample:\n  chiron evaluate {name} benchmarks/finra --local"

    @click.command(name, help=f"{figure.text}\n\n{example}")
    @folders_argument
    @measuring
    @options.as_json
    def command(folders: tuple[Path, ...], as_json: bool, run_options: RunOptions) -> None:
        single(name, folders, run_options, as_json=as_json, samples=figure.samples)

    return command


cost, cpu, latency, memory, slo, throughput = (
    _command(name, figure) for name, figure in _FIGURES.items()
)
