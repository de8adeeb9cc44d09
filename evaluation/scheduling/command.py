"""The whole command `chiron schedule` in a process of its own: its time, its memory, its limits."""

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

#: Says on stdout, which the command leaves empty, what the search and the whole command needed.
#: (Of a child that has just been forked, getrusage would count the parent's memory.)
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
#: The SLO as a part of what a single process takes; None: out of reach of any plan, so that the
#: fastest one is asked for.
_SPEEDUPS = (4.0, 8.0, None)
_OUT_OF_REACH_MS = 1.0


class CommandRun(Document):
    """Medians of times in seconds, and the most memory of any run.

    The search's time is CPU time and has the loading of the kernel in it.
    """

    samples: int
    wall_s: float
    cpu_s: float
    search_s: float
    peak_mib: float


class Case(NamedTuple):
    """How many functions in how many stages."""

    functions: int
    stages: int


CASES = (Case(200, 1), Case(1000, 20))


class LargeCase(Document):
    """A workflow without equal functions, and an SLO: the plan, and the command that made it."""

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
    """A folder with these, for the length of the block."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / WORKFLOW  # a workflow has its folder's name
        folder.mkdir()
        for file, text in zip(_ARTEFACTS, (workflow, profile, platform), strict=True):
            (folder / file).write_text(text, encoding="utf-8")
        yield folder


def run_schedule(folder: Path, slo_ms: float, samples: int, warm_ups: int = 1) -> CommandRun:
    """Schedule the artefacts in `folder` `samples` times, after some to fill the caches.

    Raises ``command-failed`` with the command's last line.
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
    """Times in seconds and memory in MiB of one run in `folder`, named as in `CommandRun`."""
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
    """A row for every case, mix of kinds and SLO."""
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
