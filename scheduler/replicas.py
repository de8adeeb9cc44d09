"""Plans with enough replicas of each wrap to keep an SLO at a rate, and the cheapest of them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from chiron.predictor.load import Case
from chiron.scheduler.choices import Choices
from chiron.scheduler.folder_settings import NO_SETTINGS, FolderSettings
from chiron.scheduler.load import cases_of, crowd_of, judged_ms, predict_load
from chiron.scheduler.options import Job, Option
from chiron.scheduler.pareto import considered, undominated
from chiron.scheduler.planners import searched
from chiron.scheduler.schedule import assess, fixed_by, job_of, options_of
from chiron.workflow.errors import ChironError
from chiron.workflow.load import Load
from chiron.workflow.model import Workflow
from chiron.workflow.plan import MOST_REPLICAS, Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

#: The most replicas of a function in OpenFaaS's Community Edition.
COMMUNITY_EDITION_REPLICAS = 5
#: The smallest relative gain in saturation or latency for which a replica is added.
_GAIN = 0.01
#: From this part of the busiest wrap's CPU time on, a wrap counts as equally busy.
_ALIKE = 0.9


class Scaled(NamedTuple):
    """A plan with replicas, its latency under load, and the rate at which it saturates."""

    plan: Plan
    ms: float
    per_s: float

    @property
    def cost(self) -> tuple[float, ...]:
        """CPUs, replicas, and the latency to break ties."""
        return self.plan.allocated_cpus, sum(w.replicas for w in self.plan.wraps), self.ms

    @property
    def speed(self) -> tuple[float, ...]:
        """Smaller is faster; if the queue grows without bound, by throughput."""
        return self.ms, -self.per_s


def schedule_load(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    slo_ms: float,
    load: Load,
    choices: Choices,
    settings: FolderSettings = NO_SETTINGS,
) -> Plan:
    """Return the plan with the fewest CPUs, over all replicas, that keeps the SLO under `load`.

    The search tries the undominated plans among those of `schedule`. If no plan keeps the SLO,
    return the fastest, with ``meets_slo`` false.

    Raises what `schedule` raises; ``only-cost`` for another strategy, and ``one-replica`` for
    buckets in memory.
    """
    require_replicas(workflow, choices)
    job = job_of(workflow, profile, platform, slo_ms, choices, settings)
    best: Scaled | None = None
    fastest: Scaled | None = None
    for steps in _steps_of_all(job, choices, load, slo_ms):
        found = _first_within(steps, slo_ms, best)
        if found.ms <= slo_ms and (best is None or found.cost < best.cost):
            best = found
        fastest = min(fastest or found, found, key=lambda each: each.speed)
    chosen = best or fastest
    if chosen is None:
        raise ValueError("a workflow without a plan")
    return assess_load(chosen.plan, job, slo_ms, load)


def considered_load(
    job: Job, choices: Choices, load: Load, slo_ms: float, seconds: float = math.inf
) -> list[Option]:
    """Return the plans found within `seconds` that sustain `load`, with every replica count tried.

    Each plan is judged by its latency under the load.

    Raises ``only-cost`` and ``one-replica`` as `schedule_load` does.
    """
    require_replicas(job.workflow, choices)
    end, found = time.monotonic() + seconds, list[Option]()
    for each in chain.from_iterable(_steps_of_all(job, choices, load, slo_ms)):
        if time.monotonic() > end:
            break
        if math.isfinite(each.ms):
            found.append(Option(each.plan, round(each.ms, 4), fits=True))
    return found


def require_replicas(workflow: Workflow, choices: Choices) -> None:
    """Raise ``only-cost`` or ``one-replica`` unless replicas can be chosen."""
    if choices.strategy != "cost":
        raise ChironError(
            "only-cost", f"replicas for a rate are chosen by cost, not by {choices.strategy}"
        )
    buckets = workflow.buckets
    if buckets is not None and not buckets["durable"]:
        raise ChironError(
            "one-replica", "buckets in memory are in one replica: add durable: true, or no rate"
        )


def _steps_of_all(
    job: Job, choices: Choices, load: Load, slo_ms: float
) -> Iterator[Iterator[Scaled]]:
    """Yield the `_steps` of each plan worth trying, few CPUs first."""
    cases = cases_of(job.workflow, job.profile, job.platform)
    for option in sorted(_front(job, choices), key=lambda option: option.plan.cpus):
        yield _steps(assess(option.plan, job, slo_ms), cases, load, job.percentile)


def _first_within(steps: Iterator[Scaled], slo_ms: float, best: Scaled | None) -> Scaled:
    """Return the first step that keeps the SLO or costs as much as `best`, or the last step."""
    found = next(steps)
    while found.ms > slo_ms and (best is None or found.cost < best.cost):
        following = next(steps, None)
        if following is None:
            break
        found = following
    return found


def _steps(plan: Plan, cases: Sequence[Case], load: Load, percentile: float) -> Iterator[Scaled]:
    """Yield `plan` with more and more replicas, until another replica brings no gain.

    The first plan has the fewest replicas whose CPUs suffice. Each step adds a replica where it
    gains most. If several wraps are equally busy, no single replica helps: then each of the busiest
    wraps gets a replica.
    """
    found = _tried(_enough(plan, load, cases[0].predictor.platform), cases, load, percentile)
    yield found
    while True:
        more = [_tried(each, cases, load, percentile) for each in _one_more(found.plan)]
        better = min(more, key=lambda each: each.speed, default=None)
        if len(more) > 1 and better is not None and not _gains(found, better):
            better = _tried(_one_more_of_the_busiest(found.plan), cases, load, percentile)
        if better is None or not _gains(found, better):
            return
        found = better
        yield found


def _tried(plan: Plan, cases: Sequence[Case], load: Load, percentile: float) -> Scaled:
    crowd = crowd_of(plan, cases)
    return Scaled(plan, judged_ms(crowd, load, percentile), crowd.per_s)


def _front(job: Job, choices: Choices) -> list[Option]:
    """Return the plans worth trying: the planner's own, or the undominated plans of the search."""
    if searched(choices.planner):
        return undominated(considered(job, choices.mechanism))
    options = options_of(job, choices.mechanism)
    return fixed_by(choices.planner, options)


def _enough(plan: Plan, load: Load, platform: Platform) -> Plan:
    """Return `plan` with the fewest replicas whose CPUs suffice, within a shared node's cores."""
    wraps = []
    for wrap in plan.wraps:
        cpu_ms = wrap.demand.cpu_ms if wrap.demand else 0.0
        needed = math.ceil((load.per_s or 0.0) * cpu_ms / (1000 * wrap.cpus))
        most = platform.cpus // wrap.cpus if platform.one_node else MOST_REPLICAS
        replicas = max(1, min(needed, most, MOST_REPLICAS))
        wraps.append(wrap.model_copy(update={"replicas": replicas}))
    return plan.model_copy(update={"wraps": tuple(wraps)})


def _one_more(plan: Plan) -> list[Plan]:
    """Return `plan` with another replica, of each of its wraps in turn."""
    more = [wrap for wrap in plan.wraps if wrap.replicas < MOST_REPLICAS]
    return [_with(plan, wrap.name, wrap.replicas + 1) for wrap in more]


def _one_more_of_the_busiest(plan: Plan) -> Plan:
    """Return `plan` with another replica of each wrap whose CPUs have most work per request."""
    busy = {
        wrap.name: wrap.demand.cpu_ms / (wrap.cpus * wrap.replicas) if wrap.demand else 0.0
        for wrap in plan.wraps
    }
    most = max(busy.values())
    for wrap in plan.wraps:
        if busy[wrap.name] >= _ALIKE * most:
            plan = _with(plan, wrap.name, min(wrap.replicas + 1, MOST_REPLICAS))
    return plan


def _with(plan: Plan, name: str, replicas: int) -> Plan:
    wraps = tuple(
        wrap.model_copy(update={"replicas": replicas}) if wrap.name == name else wrap
        for wrap in plan.wraps
    )
    return plan.model_copy(update={"wraps": wraps})


def _gains(before: Scaled, after: Scaled) -> bool:
    if math.isinf(before.ms):
        return after.ms < before.ms or after.per_s > (1 + _GAIN) * before.per_s
    return after.ms < (1 - _GAIN) * before.ms


def assess_load(plan: Plan, job: Job, slo_ms: float, load: Load) -> Plan:
    """Return `plan` with its prediction under load, the verdict, and the reasons in words."""
    loaded = predict_load(plan, job.workflow, job.profile, job.platform, load, job.percentile)
    within = loaded.at(job.percentile)
    meets_slo = within is not None and within.ms <= slo_ms
    takes = f"{within.ms:.1f} ms" if within else "longer and longer"
    verdict = "meets" if meets_slo else "misses"
    each = ", ".join(f"{wrap.name} {wrap.replicas}" for wrap in plan.wraps)
    why = [
        f"at {load.shown}: predicted {takes} for {job.percentile:g} % of requests, {verdict} the "
        f"SLO of {slo_ms:g} ms; saturation at {loaded.saturation.per_s:.1f}/s",
        f"replicas: {each}; {plan.allocated_cpus} CPUs in all",
    ]
    if any(wrap.replicas > COMMUNITY_EDITION_REPLICAS for wrap in plan.wraps):
        why.append(
            f"OpenFaaS's Community Edition runs at most {COMMUNITY_EDITION_REPLICAS} replicas of a "
            "function: use another edition, or a lower rate"
        )
    update = {"under_load": loaded, "meets_slo": meets_slo, "why": (*why, *plan.why)}
    return plan.model_copy(update=update)
