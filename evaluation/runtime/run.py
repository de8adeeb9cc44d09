"""Measures what the wrap runtime costs: everything on one embedded gateway, in one run."""

from __future__ import annotations

from collections.abc import Callable

from evaluation.runtime import large_data, overheads
from evaluation.runtime.report import Figure, RuntimeReport, figures
from evaluation.runtime.rounds import interleaved
from generator.launcher import Launcher

ROUNDS, QUICK_ROUNDS = 500, 50

Progress = Callable[[str], None]


def measure_runtime(launcher: Launcher, rounds: int, progress: Progress) -> RuntimeReport:
    """Every figure, of `rounds` rounds (at least two).

    Requests go straight to the processes of the embedded gateway of `launcher`, so that what its
    hop costs is in those figures alone that are about it.

    Raises
    ------
    ChironError
        ``wrong-output`` where an answer is not the reference executor's; ``not-local`` where the
        gateway's functions are no processes of this machine.
    """
    found: list[Figure] = []
    for what, part in (("no-ops", overheads), ("10 MB", large_data)):
        progress(f"deploying {what}")
        with part.probes(launcher) as probes:
            progress(f"{what}: {rounds} rounds of {len(probes)} measurements in turn")
            found += figures(part.QUANTITIES, interleaved(probes, rounds))
    return RuntimeReport(figures=tuple(found))
