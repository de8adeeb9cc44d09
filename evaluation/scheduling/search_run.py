"""One search in a process that does nothing else: its time, with the kernel loaded, and memory."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from evaluation.scheduling.kernel import load_kernel
from evaluation.scheduling.memory import peak_mib
from scheduler.schedule import schedule
from workflow.documents import Document, dump, parse_json, read_document, validate
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder
from workflow.plan import Plan
from workflow.platform import Platform
from workflow.profile import Profile

_LONGEST_S = 300


class SearchRun(Document):
    """CPU and wall time in seconds, the most memory of the process, and the plan."""

    cpu_s: float
    wall_s: float
    peak_mib: float
    plan: Plan


def run_search(folder: Path, slo_ms: float) -> SearchRun:
    """Search a plan for the artefacts in `folder`.

    Raises
    ------
    ChironError
        ``command-failed`` with the last line of what was said.
    """
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(folder.resolve()), str(slo_ms)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=_LONGEST_S,
    )
    if done.returncode:
        message = done.stderr.strip().rpartition("\n")[2]
        raise ChironError("command-failed", f"the search failed: {message}")
    return validate(SearchRun, parse_json(done.stdout, "search"), "search")


def _search(folder: Path, slo_ms: float) -> SearchRun:
    workflow = WorkflowFolder.open(folder).workflow
    profile = read_document(Profile, folder / "profile.json", "profile")
    platform = read_document(Platform, folder / "platform.json", "platform")
    load_kernel()
    cpu, wall = time.process_time(), time.perf_counter()
    plan = schedule(workflow, profile, platform, slo_ms)
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
    return SearchRun(
        cpu_s=round(cpu_s, 4), wall_s=round(wall_s, 4), peak_mib=round(peak_mib(), 1), plan=plan
    )


if __name__ == "__main__":
    print(dump(_search(Path(sys.argv[1]), float(sys.argv[2]))))
