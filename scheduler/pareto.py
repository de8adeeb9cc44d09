"""The Pareto front: the plans between which only a person can choose."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Literal

from chiron.predictor.mechanisms import DEFAULT_MECHANISM
from chiron.scheduler.choices import MechanismChoice, Strategy
from chiron.scheduler.options import Job, Option, Options
from chiron.scheduler.prices import PAPER_PRICES, Cost, Prices
from chiron.scheduler.schedule import assess, options_of
from chiron.scheduler.strategies import better, every, fastest, memory_mib
from chiron.workflow.documents import Document
from chiron.workflow.plan import Plan


class ParetoPlan(Document):
    """A plan with all its replicas, the latency that it is judged by, and its cost."""

    latency_ms: float
    cpus: int
    memory_mib: int
    cost: Cost
    plan: Plan


class ParetoFront(Document):
    """The undominated plans in (latency, CPUs, memory), the fastest last."""

    format: Literal[1] = 1
    workflow: str
    slo_ms: float
    plans: tuple[ParetoPlan, ...]


def considered(
    job: Job, mechanism: MechanismChoice = DEFAULT_MECHANISM, seconds: float = math.inf
) -> list[Option]:
    """Return the plans found within `seconds`, few CPUs first; beyond a limit only if all are."""
    options = options_of(job, mechanism)
    end = time.monotonic() + seconds

    def found(beyond_limits: bool) -> list[Option]:
        allowed = (replace(each, beyond_limits=beyond_limits) for each in options)
        plans = (option for each in allowed for option in _worth_it(each))
        return list(takewhile(lambda _: time.monotonic() < end, plans))

    return found(False) or found(True)


def _worth_it(options: Options) -> Iterator[Option]:
    """Yield the plans of `every`, and the fastest, which `every` may skip if stages are large."""
    yield from every(options)
    if options.search.large and (best := fastest(options)) is not None:
        yield best


def pareto(
    options: Iterable[Option],
    job: Job,
    slo_ms: float,
    prices: Prices = PAPER_PRICES,
    assessed: Callable[[Plan, Job, float], Plan] = assess,
) -> ParetoFront:
    """Return the Pareto front of `options` in latency, CPUs and memory."""
    plans = []
    for option in undominated(options):
        plan = assessed(option.plan, job, slo_ms)
        plans.append(
            ParetoPlan(
                latency_ms=option.judged_ms,
                cpus=plan.allocated_cpus,
                memory_mib=memory_mib(plan),
                cost=prices.cost(plan),
                plan=plan,
            )
        )
    return ParetoFront(workflow=job.workflow.name, slo_ms=slo_ms, plans=tuple(plans))


def preferred(options: Iterable[Option], strategy: Strategy) -> list[Option]:
    """Return the options faster than every option that `strategy` prefers to them, in its order."""
    found: list[Option] = []
    for option in sorted(options, key=better(strategy, math.inf)):
        if not found or option.judged_ms < found[-1].judged_ms:
            found.append(option)
    return found


def undominated(options: Iterable[Option]) -> list[Option]:
    """Return the undominated `options`, one of equals, by falling latency."""
    best: list[Option] = []
    for option in sorted(options, key=weights):
        if not any(_as_good(other, option) for other in best):
            best.append(option)
    return best[::-1]


def weights(option: Option) -> tuple[float, int, int]:
    """Return latency, CPUs and memory of all replicas."""
    return option.judged_ms, option.plan.allocated_cpus, memory_mib(option.plan)


def _as_good(one: Option, other: Option) -> bool:
    return all(a <= b for a, b in zip(weights(one), weights(other), strict=True))
