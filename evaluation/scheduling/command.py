"""Runs the whole command `chiron schedule` as a process: its time, its memory, large workflows."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

from chiron.evaluation.scheduling.exhaustive import (
    KINDS,
    PLATFORM,
    WORKFLOW,
    in_stages,
    predicted_ms,
    random_profile,
    states_of,
    workflow_of,
)
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.documents import Document, dump, read_document
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan
from chiron.workflow.profile import PeriodKind

#: Prints the CPU time of the search and the peak memory; the command leaves stdout empty.
#: (For a child that was just forked, getrusage would count the parent's memory.)
_COMMAND = """
import json, re, time
from pathlib import Path
from chiron.cli import schedule as verb
from chiron.cli.main import main

search, seen = verb.schedule, {}

def observed(*arguments):
    start = time.process_time()
    plan = search(*arguments)
    seen.update(search_s=time.process_time() - start)
    return plan

verb.schedule = observed
try:
    main()
finally:
    status = Path("/proc/self/status").read_text(errors="replace")
    print(json.dumps({**seen, "peak_mib": int(re.search(r"VmHWM:\\s*(\\d+)", status)[1]) / 1024}))
"""
_LONGEST_S = 300
_ARTEFACTS = ("workflow.json", "profile.json", "platform.json")
#: The SLO is the latency of a single process divided by this. None: an SLO that no plan meets, so
#: that the search returns the fastest plan.
_SPEEDUPS = (4.0, 8.0, None)
_OUT_OF_REACH_MS = 1.0


class CommandRun(Document):
    """Medians of times in seconds, and the most memory of any run.

    ``search_s`` is CPU time, and includes loading the kernel.
    """

    samples: int
    wall_s: float
    cpu_s: float
    search_s: float
    peak_mib: float


class Case(NamedTuple):
    """The numbers of functions and stages of a workflow."""

    functions: int
    stages: int


CASES = (Case(200, 1), Case(1000, 20))


class LargeCase(Document):
    """A workflow without equal functions and an SLO: the plan, and the run of the command."""

    functions: int
    stages: int
    kinds: tuple[PeriodKind, ...]
    slo_ms: float
    meets_slo: bool
    latency_ms: float
    cpus: int
    wraps: int
    command: CommandRun


@contextmanager
def artefacts(workflow: str, profile: str, platform: str) -> Iterator[Path]:
    """Yield a folder with these documents, for the length of the block."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / WORKFLOW  # the folder's name becomes the workflow's
        folder.mkdir()
        for file, text in zip(_ARTEFACTS, (workflow, profile, platform), strict=True):
            (folder / file).write_text(text, encoding="utf-8")
        yield folder


def run_schedule(folder: Path, slo_ms: float, samples: int, warm_ups: int = 1) -> CommandRun:
    """Schedule the artefacts in `folder` `samples` times, after `warm_ups` that fill the caches.

    Raises ``command-failed`` with the last line of the command's stderr.
    """
    runs = [_run(folder, slo_ms) for _ in range(warm_ups + samples)][warm_ups:]
    medians = {
        name: round(statistics.median(run[name] for run in runs), 3)
        for name in ("wall_s", "cpu_s", "search_s")
    }
    return CommandRun(
        samples=samples, peak_mib=round(max(run["peak_mib"] for run in runs), 1), **medians
    )


def _run(folder: Path, slo_ms: float) -> dict[str, float]:
    """Return times in seconds and memory in MiB of a run in `folder`, named as in `CommandRun`."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, "schedule", ".", f"--slo={slo_ms}ms", "--best-effort"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
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


def schedule_large(cases: Iterable[Case], seed: int) -> Iterator[LargeCase]:
    """Yield a row for each case, mix of kinds and SLO."""
    for case in cases:
        for kinds, speedup in product(KINDS, _SPEEDUPS):
            yield _scheduled(case, kinds, speedup, seed)


def _scheduled(
    case: Case, kinds: tuple[PeriodKind, ...], speedup: float | None, seed: int
) -> LargeCase:
    profile = random_profile(case.functions, kinds, seed)
    stages = in_stages(profile, case.stages)
    workflow = workflow_of(stages)
    one = schedule(workflow, profile, PLATFORM, 1e6, Choices(planner="faastlane-t"))
    slo_ms = round(predicted_ms(one) / speedup, 1) if speedup else _OUT_OF_REACH_MS
    text = json.dumps(states_of(stages))
    with artefacts(text, dump(profile), dump(PLATFORM)) as folder:
        command = run_schedule(folder, slo_ms, samples=1, warm_ups=0)
        plan = read_document(Plan, folder / "plan.json", "plan")
    return LargeCase(
        functions=case.functions,
        stages=case.stages,
        kinds=kinds,
        slo_ms=slo_ms,
        meets_slo=bool(plan.meets_slo),
        latency_ms=predicted_ms(plan),
        cpus=plan.cpus,
        wraps=len(plan.wraps),
        command=command,
    )
