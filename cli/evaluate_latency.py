"""`chiron evaluate latency`: measures deployment models against each other."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from cli import options
from cli.artefacts import read_platform, read_profile
from cli.output import emit, progress, table
from cli.place import connect
from evaluation.latency import Comparison, compare_models
from profiler.calibrate import calibrate
from profiler.profile import profile as profile_functions
from workflow.documents import dump, write_atomically
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder
from workflow.plan import Mechanism, Model

_COLUMNS = [
    "model", "wraps", "processes", "CPUs", "predicted", "p50", "p95", "error", "MiB", "SLO"
]  # fmt: skip


@click.command("latency")
@options.workflow_folder
@options.slo
@click.option("--models", default="one-to-one,sand,faastlane,pgp", show_default=True)
@options.mechanism
@click.option("--samples", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--profile", type=click.Path(path_type=Path), help="Instead of measuring it.")
@click.option("--platform", type=click.Path(path_type=Path), help="Instead of measuring it.")
@options.gateway
@options.tls_no_verify
@options.local
@options.output("out")
@options.as_json
def command(
    folder: Path,
    slo: float,
    models: str,
    mechanism: Mechanism,
    samples: int,
    profile: Path | None,
    platform: Path | None,
    gateway: str | None,
    tls_no_verify: bool,
    local: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Deploy a plan of every model of the workflow in DIR side by side and measure them in turn.

    \b
    Example:
      chiron evaluate latency benchmarks/finra --slo 100ms --local
    """
    opened = WorkflowFolder.open(folder)
    chosen = _models(models)
    with connect(gateway, local=local, tls_no_verify=tls_no_verify) as launcher:
        if profile:
            functions = read_profile(profile)
        else:
            functions = profile_functions(opened, launcher, progress=progress)
            write_atomically(output / "profile.json", dump(functions))
        if platform:
            place = read_platform(platform)
        else:
            place = calibrate(launcher, progress=progress)
            write_atomically(output / "platform.json", dump(place))
        comparison = compare_models(
            opened,
            launcher,
            functions,
            place,
            slo_ms=slo,
            models=chosen,
            mechanism=mechanism,
            samples=samples,
            progress=progress,
        )
    emit(comparison, output / "latency.json", as_json)
    _show(comparison)


def _models(text: str) -> list[Model]:
    known = get_args(Model)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise ChironError(
                "unknown-model", f"{name!a} is no model; there are {', '.join(known)}"
            )
    return [model for model in known if model in names]


def _show(comparison: Comparison) -> None:
    rows = [
        [
            row.plan.model,
            str(len(row.plan.wraps)),
            str(row.processes),
            str(row.plan.cpus),
            f"{row.plan.predicted.latency_ms:.1f}" if row.plan.predicted else "-",
            f"{row.measured.p50_ms:.1f}",
            f"{row.measured.p95_ms:.1f}",
            f"{row.prediction_error:+.0%}",
            f"{row.memory_mib:.0f}",
            "met" if row.slo_met else "missed",
        ]
        for row in comparison.rows
    ]
    slo = f"SLO {comparison.slo_ms:g} ms, times in ms"
    table(f"{comparison.workflow}, {comparison.mechanism}, {slo}", _COLUMNS, rows)
    met = [row.plan.model for row in comparison.rows if row.slo_met]
    progress(f"p95 within the SLO of {comparison.slo_ms:g} ms: {', '.join(met) or 'none'}")
