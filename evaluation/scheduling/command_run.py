"""The whole command `chiron schedule` in a process of its own: its time and its memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workflow.documents import Document
from workflow.errors import ChironError

#: Says on stdout, which the command leaves empty, how much memory it needed at most.
_COMMAND = """
import sys
from cli.main import main
try:
    main()
finally:
    from evaluation.scheduling.memory import peak_mib
    print(peak_mib())
"""
_LONGEST_S = 300


class CommandRun(Document):
    """Medians of wall and CPU time in seconds, and the most memory of any run."""

    samples: int
    wall_s: float
    cpu_s: float
    peak_mib: float


@contextmanager
def artefacts(workflow: str, profile: str, platform: str) -> Iterator[Path]:
    """A folder with these, for the length of the block."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in (
            ("workflow.json", workflow),
            ("profile.json", profile),
            ("platform.json", platform),
        ):
            (folder / file).write_text(text, encoding="utf-8")
        yield folder


def run_schedule(folder: Path, slo_ms: float, samples: int, warm_ups: int = 1) -> CommandRun:
    """Schedule the artefacts in `folder` `samples` times, after some to fill the caches.

    Raises
    ------
    ChironError
        ``command-failed`` with the command's last line.
    """
    runs = [_run(folder, slo_ms) for _ in range(warm_ups + samples)][warm_ups:]
    return CommandRun(
        samples=samples,
        wall_s=round(statistics.median(run[0] for run in runs), 3),
        cpu_s=round(statistics.median(run[1] for run in runs), 3),
        peak_mib=round(max(run[2] for run in runs), 1),
    )


def _run(folder: Path, slo_ms: float) -> tuple[float, float, float]:
    """Wall and CPU time in seconds, and memory in MiB, of one run in `folder`."""
    root = str(Path(__file__).parents[2])
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, "schedule", ".", f"--slo={slo_ms}ms"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
        timeout=_LONGEST_S,
    )
    wall_s, after = time.perf_counter() - start, os.times()
    if done.returncode:
        message = done.stderr.strip().rpartition("\n")[2]
        raise ChironError("command-failed", f"chiron schedule failed: {message}")
    cpu_s = sum(after[2:4]) - sum(before[2:4])
    return wall_s, cpu_s, float(done.stdout)
