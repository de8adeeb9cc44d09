"""Workflows at random: no fixed model is better, and a looser SLO costs no more CPUs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import get_args

from evaluation.scheduling.random_workflows import PLATFORM, random_profile, workflow_of
from scheduler.schedule import schedule
from workflow.documents import Document
from workflow.model import Workflow
from workflow.plan import Mechanism, Model, Plan
from workflow.platform import Platform
from workflow.profile import Profile

#: All threads, one process each (with and without the main process running one), and between.
MODELS: tuple[Model, ...] = ("faastlane-t", "sand", "faastlane", "faastlane+")
#: SLOs as shares of the way from the fastest plan to a single process, and some beyond.
_SHARES = (-0.1, 0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
_FUNCTIONS, _STAGES, _WIDEST = 8, 4, 16
#: No plan is as fast as this.
_OUT_OF_REACH_MS = 0.001


class Trial(Document):
    """One workflow: the models that beat ours at some SLO, and SLOs at which CPUs rose."""

    tasks: int
    mechanism: Mechanism
    schedules: int
    better_models: tuple[str, ...]
    dearer_slos_ms: tuple[float, ...]


def try_laws(count: int, seed: int) -> Iterator[Trial]:
    """`count` random workflows, each scheduled for several SLOs."""
    for number in range(count):
        yield _tried(random.Random(f"{seed}-{number}"))  # noqa: S311  (a simulation, no secret)


def _tried(r: random.Random) -> Trial:
    profile = random_profile(_FUNCTIONS, ("cpu", "cpu", "native", "block"), r.randrange(1 << 32))
    names = sorted(profile.functions)
    workflow = workflow_of(
        [r.choices(names, k=r.randint(1, _WIDEST)) for _ in range(r.randint(1, _STAGES))]
    )
    platform = PLATFORM.model_copy(
        update={
            "cpus": r.choice([2, 4, 40]),
            "rpc_ms": r.choice([5.0, 20.0]),
            "process_startup_ms": r.choice([1.0, 13.0]),
            "process_block_ms": r.choice([0.5, 4.0, 15.0]),
        }
    )
    mechanism: Mechanism = r.choice(get_args(Mechanism))
    slos_ms = _slos_ms(workflow, profile, platform, mechanism)
    plans = [schedule(workflow, profile, platform, slo, mechanism=mechanism) for slo in slos_ms]
    fixed = {
        model: schedule(workflow, profile, platform, slos_ms[0], model=model, mechanism=mechanism)
        for model in MODELS
    }
    better = {
        model
        for plan, slo_ms in zip(plans, slos_ms, strict=True)
        for model, other in fixed.items()
        if rank(other, slo_ms) < rank(plan, slo_ms)
    }
    dearer = [loose.slo_ms for tight, loose in pairwise(plans) if loose.cpus > tight.cpus]
    return Trial(
        tasks=len(workflow.tasks),
        mechanism=mechanism,
        schedules=len(plans),
        better_models=tuple(sorted(better)),
        dearer_slos_ms=tuple(ms for ms in dearer if ms is not None),
    )


def rank(plan: Plan, slo_ms: float) -> tuple[float, ...]:
    """Whether a plan misses the SLO, then its CPUs, then its latency: the smaller is the better.

    Of plans that miss the SLO the fastest is the best.
    """
    latency_ms = _latency_ms(plan)
    missed = latency_ms > slo_ms
    return (missed, latency_ms) if missed else (missed, plan.cpus, latency_ms)


def _slos_ms(
    workflow: Workflow, profile: Profile, platform: Platform, mechanism: Mechanism
) -> list[float]:
    """SLOs from out of reach to easy."""
    ends = [
        _latency_ms(schedule(workflow, profile, platform, slo_ms, mechanism=mechanism))
        for slo_ms in (_OUT_OF_REACH_MS, 1e6)
    ]
    fastest_ms, slowest_ms = min(ends), max(ends)
    return sorted({round(fastest_ms + share * (slowest_ms - fastest_ms), 4) for share in _SHARES})


def _latency_ms(plan: Plan) -> float:
    if plan.predicted is None:
        raise ValueError("a schedule is predicted")
    return plan.predicted.latency_ms
