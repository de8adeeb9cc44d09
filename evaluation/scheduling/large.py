"""Large workflows without equal functions: how long the search takes, and how much memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evaluation.scheduling.command_run import CommandRun, artefacts, run_schedule
from evaluation.scheduling.random_workflows import (
    PLATFORM,
    in_stages,
    random_profile,
    states_of,
    workflow_of,
)
from scheduler.schedule import schedule
from workflow.documents import Document, dump, read_document
from workflow.plan import Plan
from workflow.profile import PeriodKind


@dataclass(frozen=True)
class Case:
    """How many functions in how many stages, and how long the search for a plan may take."""

    functions: int
    stages: int
    bound_s: float


CASES = (Case(200, 1, 10.0), Case(1000, 20, 30.0))
#: Functions that only compute with the GIL or wait, and such that release it too.
KINDS: tuple[tuple[PeriodKind, ...], ...] = (("cpu", "block"), ("cpu", "native", "block"))
#: The SLO as a part of what a single process takes; None: out of reach of any plan, so that the
#: fastest one is asked for.
SPEEDUPS = (4.0, 8.0, None)
_OUT_OF_REACH_MS = 1.0


class LargeCase(Document):
    """One workflow and SLO: the plan, and the command that made it, run once."""

    functions: int
    stages: int
    kinds: tuple[PeriodKind, ...]
    slo_ms: float
    meets_slo: bool
    latency_ms: float
    cpus: int
    wraps: int
    bound_s: float
    command: CommandRun


def schedule_large(cases: Iterable[Case], seed: int) -> Iterator[LargeCase]:
    """A row for every case, mix of kinds and SLO."""
    for case in cases:
        for kinds in KINDS:
            for speedup in SPEEDUPS:
                yield _scheduled(case, kinds, speedup, seed)


def _scheduled(
    case: Case, kinds: tuple[PeriodKind, ...], speedup: float | None, seed: int
) -> LargeCase:
    profile = random_profile(case.functions, kinds, seed)
    stages = in_stages(profile, case.stages)
    workflow = workflow_of(stages)
    one = schedule(workflow, profile, PLATFORM, 1e6, model="faastlane-t").predicted
    if one is None:
        raise ValueError("a schedule is predicted")
    slo_ms = round(one.latency_ms / speedup, 1) if speedup else _OUT_OF_REACH_MS
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
        latency_ms=plan.predicted.latency_ms if plan.predicted else 0.0,
        cpus=plan.cpus,
        wraps=len(plan.wraps),
        bound_s=case.bound_s,
        command=command,
    )
