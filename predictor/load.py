"""A plan under load: the latency of requests that arrive at a rate or from waiting clients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from random import Random
from typing import NamedTuple

from chiron.predictor.crowd import Program, Replicas, crowd
from chiron.predictor.predict import Predictor
from chiron.predictor.simulator import Requests, Served
from chiron.predictor.spread import Spread, percentile_ms
from chiron.predictor.unrolling import Run
from chiron.workflow.load import Load
from chiron.workflow.plan import Plan

#: The share of the first requests that is not counted, as queues build up.
_WARM_UP = 0.1
#: Saturation is measured with `_EACH` requests for each that is executed, at least `_FEWEST`. There
#: are `_WAITING` clients for each, so that as many requests wait as are executed.
_EACH, _FEWEST, _WAITING = 4, 2000, 2
#: Requests this many latencies apart do not overlap.
_APART = 100.0


class Case(NamedTuple):
    """The workflow's run with a payload, the payload's weight, and its requests' latencies."""

    run: Run
    weight: float
    predictor: Predictor
    spread: Spread


class Seen(NamedTuple):
    """The latencies of requests under load and of the same requests alone, and CPU time of each.

    ``at_once`` is the most requests that a replica of the entry had, including waiting requests.
    """

    loaded_ms: Sequence[float]
    alone_ms: Sequence[float]
    cpu_ms: float
    per_s: float
    at_once: int

    def added_ms(self, percent: float) -> float:
        """Return how much load adds to the percentile `percent` of the latency, at least 0."""
        loaded_ms, alone_ms = (
            percentile_ms([(1.0, each)], percent) for each in (self.loaded_ms, self.alone_ms)
        )
        return max(0.0, loaded_ms - alone_ms)


class Crowd:
    """The replicas of a plan, and the requests that they can execute.

    Args:
        cases: the workflow's run with each payload.
        counts: the number of replicas of each wrap, by name.
        limit: the number of requests that a replica executes at once.
    """

    def __init__(
        self, plan: Plan, cases: Sequence[Case], counts: dict[str, int], limit: int
    ) -> None:
        self._cases = cases
        self.platform = platform = cases[0].predictor.platform
        cpus = sum(counts[wrap.name] * wrap.cpus for wrap in plan.wraps)
        # If the wraps can use all cores of a node, none is left for their callers.
        shared = platform.one_node and cpus >= platform.cpus
        self.replicas = Replicas(
            counts,
            {wrap.name: min(wrap.cpus, platform.cpus) for wrap in plan.wraps},
            limit,
            platform.cpus if shared else None,
        )
        self._plans = [case.run.placed(plan) for case in cases]
        made = [
            _apart(case.predictor.program(*placed, shared), number)
            for number, (case, placed) in enumerate(zip(cases, self._plans, strict=True))
        ]
        works = {name: work for each in made for name, work in each.works.items()}
        cooperative = {name for name in works if any(name in each.cooperative for each in made)}
        self._simulator = cases[0].predictor.simulator(works, cooperative)
        self._image = self._simulator.image(crowd(made, self.replicas))
        turns = self.replicas.turns(len(made))
        self._functions = [name for _, number in turns for name in made[number].functions]
        self._draws = max(len(case.spread.slower) for case in cases)
        self._factors = [self._row(cases[0].spread.slower)]
        for case, program in zip(cases, made, strict=True):
            self._factors += [self._row(case.spread.ratios.get(t, (1.0,))) for t in program.tasks]

    @cached_property
    def medians_ms(self) -> list[float]:
        """The median latency of a request alone, payload by payload."""
        each = zip(self._cases, self._plans, strict=True)
        return [case.predictor.plan_ms(*placed) for case, placed in each]

    def alone_ms(self, percent: float) -> float:
        """Return the percentile `percent` of the latency of requests that do not overlap."""
        each = zip(self._cases, self.medians_ms, strict=True)
        groups = [(case.weight, case.spread.each_ms(median_ms)) for case, median_ms in each]
        return percentile_ms(groups, percent)

    @cached_property
    def per_s(self) -> float:
        """The saturation throughput."""
        under_way = self.replicas.entries * self.replicas.limit
        count = max(_FEWEST, _EACH * under_way)
        load = Load(clients=min(_WAITING * under_way, count // 2), requests=count)
        return self.under(load).per_s

    def under(self, load: Load) -> Seen:
        """Return the latencies of requests under `load`."""
        arrivals_ms, drawn = _arrivals_ms(load), Random(f"drawn {load.seed}")  # noqa: S311
        weights = [case.weight for case in self._cases]
        programs = drawn.choices(range(len(weights)), weights, k=load.requests)
        draws = [drawn.randrange(self._draws) for _ in programs]
        served = self._served(programs, draws, arrivals_ms)
        replied_ms = sorted(served.replied_ms)
        begin = round(_WARM_UP * load.requests)
        each = zip(programs, draws, served.arrivals_ms, served.replied_ms, strict=True)
        counted = list(each)[begin:]
        passed_ms = replied_ms[-begin] - replied_ms[begin]
        return Seen(
            [replied - arrived + self._way_ms(p, draw) for p, draw, arrived, replied in counted],
            [self._alone[p][draw] + self._way_ms(p, draw) for p, draw, _, _ in counted],
            served.used_ms / load.requests,
            1000 * (load.requests - 2 * begin) / passed_ms if passed_ms else math.inf,
            _at_once(served, self.replicas.entries),
        )

    @cached_property
    def _alone(self) -> list[list[float]]:
        """The latencies of each payload's requests alone, by draw."""
        each = [(p, draw) for p in range(len(self._cases)) for draw in range(self._draws)]
        apart_ms = 1.0 + _APART * max(self.medians_ms)
        arrivals_ms = [number * apart_ms for number in range(len(each))]
        served = self._served([p for p, _ in each], [draw for _, draw in each], arrivals_ms)
        took_ms = [b - a for a, b in zip(served.arrivals_ms, served.replied_ms, strict=True)]
        draws = self._draws
        return [took_ms[p * draws : (p + 1) * draws] for p in range(len(self._cases))]

    def _served(
        self, programs: Sequence[int], draws: Sequence[int], arrivals_ms: Sequence[float]
    ) -> Served:
        requests = Requests(programs, draws, arrivals_ms, self._factors)
        return self._simulator.serve(self._image, self._functions, requests)

    def _way_ms(self, program: int, draw: int) -> float:
        way_ms = self._cases[program].spread.way_ms
        return way_ms[draw % len(way_ms)]

    def _row(self, factors: Sequence[float]) -> list[float]:
        return [factors[draw % len(factors)] for draw in range(self._draws)]


def _apart(program: Program, number: int) -> Program:
    """Return `program` with function names that no other program has."""
    return program._replace(
        functions=[f"{name} {number}" for name in program.functions],
        works={f"{name} {number}": work for name, work in program.works.items()},
        cooperative={f"{name} {number}" for name in program.works if name in program.cooperative},
    )


def _arrivals_ms(load: Load) -> list[float]:
    """Return when requests arrive; of waiting clients, only each one's first arrival is known."""
    if load.per_s is None:
        known = min(load.clients or 1, load.requests)
        return [0.0] * known + [math.inf] * (load.requests - known)
    random, mean_ms = Random(f"arrivals {load.seed}"), 1000 / load.per_s  # noqa: S311
    return list(accumulate(mean_ms * random.expovariate(1.0) for _ in range(load.requests)))


def _at_once(served: Served, entries: int) -> int:
    """Return the most requests at once at one replica of the entry."""
    most = 0
    for entry in range(entries):
        events = [(ms, 1) for ms in served.arrivals_ms[entry::entries]]
        events += [(ms, -1) for ms in served.replied_ms[entry::entries]]
        most = max(most, *accumulate(change for _, change in sorted(events)), 0)
    return most
