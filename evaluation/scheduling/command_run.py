"""The whole command `chiron schedule` in a process of its own: its time and its memory."""

from __future__ import annotations

import json
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

#: Says on stdout, which the command leaves empty, what the search and the whole command needed.
_COMMAND = """
import json, time
from cli import schedule as verb
from cli.main import main
from evaluation.scheduling.memory import peak_mib

search, seen = verb.schedule_as, {}

def observed(*arguments):
    start = time.process_time()
    plan = search(*arguments)
    seen.update(search_s=time.process_time() - start, search_mib=peak_mib())
    return plan

verb.schedule_as = observed
try:
    main()
finally:
    print(json.dumps({**seen, "peak_mib": peak_mib()}))
"""
_LONGEST_S = 300


class CommandRun(Document):
    """Medians of times in seconds, and the most memory of any run.

    The search's time is CPU time and has the loading of the kernel in it; its memory is the most
    that the process had had when the search ended.
    """

    samples: int
    wall_s: float
    cpu_s: float
    search_s: float
    search_mib: float
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
        wall_s=round(statistics.median(run["wall_s"] for run in runs), 3),
        cpu_s=round(statistics.median(run["cpu_s"] for run in runs), 3),
        search_s=round(statistics.median(run["search_s"] for run in runs), 3),
        search_mib=round(max(run["search_mib"] for run in runs), 1),
        peak_mib=round(max(run["peak_mib"] for run in runs), 1),
    )


def _run(folder: Path, slo_ms: float) -> dict[str, float]:
    """Times in seconds and memory in MiB of one run in `folder`, named as in `CommandRun`."""
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
    observed: dict[str, float] = json.loads(done.stdout)
    return observed | {"wall_s": wall_s, "cpu_s": cpu_s}
