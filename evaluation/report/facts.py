"""What a reader needs to judge the figures: machine, versions, payloads, drift of the run."""

from __future__ import annotations

from evaluation.experiments.drift import drift_of
from evaluation.experiments.recorded import RunFolder
from evaluation.measurements.requests import REQUESTS
from evaluation.report.tables import Table, number


def facts(folder: RunFolder) -> Table:
    """Machine, versions, commit and settings."""
    run, machine = folder.run, folder.run.machine
    settings = run.settings
    slo = "Faastlane's mean + 10 ms" if settings.slo_ms is None else f"{settings.slo_ms:g} ms"
    rows = [
        ("CPU", f"{machine.cpu}, {number(machine.ghz)} GHz, {machine.cores} cores"),
        ("memory", f"{machine.memory_mib} MiB"),
        ("kernel", machine.kernel),
        ("Python", machine.python),
        ("packages", ", ".join(f"{name} {version}" for name, version in machine.packages.items())),
        ("commit", ", ".join(filter(None, run.commits)) or "unknown"),
        ("gateway", f"{run.target.provider} {run.target.release}".strip()),
        ("models", ", ".join(settings.models)),
        ("mechanisms", ", ".join(settings.mechanisms)),
        ("SLO", slo),
        ("strategy", settings.strategy + (", with headroom" if settings.headroom else "")),
    ]
    return Table("machine and settings", ("", ""), tuple(rows))


def payloads(folder: RunFolder) -> Table:
    """The workflows' shapes and requests, and the machine's drift beside them."""
    rows = []
    for recorded in folder.workflows:
        setup, loops_ms = recorded.setup, recorded.loops_ms(REQUESTS)
        drift = drift_of(loops_ms) if loops_ms else None
        rows.append(
            (
                setup.workflow,
                " + ".join(map(str, setup.stages)),
                str(setup.payload_bytes),
                ", ".join(f"{name} {number(ms)}" for name, ms in setup.slo_ms.items()),
                f"{number(drift.low_ms)} to {number(drift.high_ms)}" if drift else "-",
                f"{drift.trend:.2f}" if drift else "-",
            )
        )
    columns = (
        "workflow", "tasks by stage", "request, bytes", "SLO, ms", "loop, ms (5 to 95 %)",
        "loop, end ÷ begin",
    )  # fmt: skip
    return Table("workflows", columns, tuple(rows))
