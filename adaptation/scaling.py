"""How many replicas each wrap should have: pure functions of what its replicas report.

References
----------
DataFlower (ASPLOS'23), section 4.2: a function whose outputs are never blocked needs no more
containers for them. If it is blocked for a share p of the time, outputs leave (1 - p) times as fast
as it makes them. It then needs 1 / (1 - p) times the containers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from chiron.deployment.replicas import FunctionMetrics, ReplicaMetrics
from chiron.generator.scale_labels import target_per_s
from chiron.openfaas.objects import DEFAULT_MAX, MAX_LABEL, MIN_LABEL, TARGET_LABEL, TYPE_LABEL

#: Target utilisation of replicas: the share of their concurrency in use, and of their cores' time.
TARGET = 0.7
#: A rate is measured over RATE_LOOKS looks. It counts as higher than planned if Poisson arrivals
#: exceed the plan by _SURE standard deviations.
RATE_LOOKS, _SURE = 5, 2.0
#: The smallest share of the time with blocked tasks that counts as backpressure.
PRESSED = 0.1
#: The largest factor by which one look raises the replicas: ten requests at a replica that takes
#: one at a time are met by the second look.
STEEPEST = 4
#: The smallest factor by which one look lowers the replicas; backpressure alone raises them at most
#: by its inverse.
HALF = 0.5
#: Replicas are removed only after fewer sufficed for CALM looks. If tasks were blocked before with
#: that few, the number of looks doubles each time, up to _DOUBLINGS times.
CALM, _DOUBLINGS = 30, 4


@dataclass(frozen=True)
class Bounds:
    """The fewest and the most replicas that a function may have."""

    least: int = 1
    most: int = DEFAULT_MAX

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Bounds:
        """Return the bounds in the labels; a value that is no number above 0 counts as missing."""
        least = _number(labels.get(MIN_LABEL, ""), 1)
        return cls(least, max(least, _number(labels.get(MAX_LABEL, ""), DEFAULT_MAX)))

    def within(self, replicas: float) -> int:
        """Round `replicas` up to a whole number within the bounds."""
        return max(self.least, math.ceil(round(min(replicas, self.most), 6)))


@dataclass(frozen=True)
class Load:
    """The load of a wrap's replicas."""

    #: The replicas that accept requests.
    replicas: int
    #: Requests that a replica executes or queues, on average.
    requests: float
    #: The concurrency of a replica.
    at_once: float
    #: The share of the time in which tasks were blocked by backpressure.
    pressure: float = 0.0
    #: The utilisation of their machine's cores, 0 if unknown.
    busy: float = 0.0
    #: The replicas that the planned rate needs; 0 without a planned rate.
    by_rate: float = 0.0
    #: The utilisation of the replicas' own cores.
    computing: float = 0.0
    #: Whether requests wait for another wrap that has too few replicas.
    is_behind: bool = False

    @property
    def is_pressed(self) -> bool:
        """Whether outputs leave more slowly than they are made."""
        return self.pressure >= PRESSED

    @property
    def needs(self) -> float:
        """The replicas needed for the target utilisation, for no backpressure, and for the rate.

        Requests need at most one replica each: a replica without a request is idle. Requests that
        wait for another wrap need no more replicas: they would wait there.
        """
        total = max(1.0, self.replicas * self.requests)
        by_queue = min(self.replicas * self.requests / (TARGET * self.at_once), total)
        if self.is_behind:
            by_queue = min(by_queue, self.replicas)
        by_computing = min(self.replicas * self.computing / TARGET, total)
        held = min(self.pressure, HALF)
        by_pressure = self.replicas / (1 - held) if self.is_pressed else 0.0
        return max(by_queue, by_computing, by_pressure, self.by_rate)

    @property
    def helpful(self) -> float:
        """The replicas that would use all cores; infinite if no core is busy."""
        return self.replicas // self.busy if self.busy > 0 else math.inf


@dataclass(frozen=True)
class Record:
    """The state after the looks so far.

    ``helpful`` is the most replicas that help, by the last look. ``needs`` are the needs of the
    last looks, since the ``replicas`` became fewer. ``floor`` is the most replicas needed when
    tasks were last blocked, and the minimum for the next ``holds`` looks. That number of looks was
    doubled ``doublings`` times.
    """

    replicas: int = 0
    needs: tuple[float, ...] = ()
    floor: float = 0.0
    holds: int = 0
    doublings: int = 0
    helpful: float = math.inf

    def seen(self, load: Load) -> Record:
        """Return the record after one more look."""
        before = self.needs if load.replicas >= self.replicas else ()
        needs = (*before, load.needs)[-CALM:]
        if not load.is_pressed:
            holds = max(0, self.holds - 1)
            return Record(load.replicas, needs, self.floor, holds, self.doublings, load.helpful)
        if self.holds:
            floor, doublings = max(self.floor, load.needs), self.doublings
        else:
            again = load.replicas < self.floor
            floor, doublings = load.needs, min(_DOUBLINGS, self.doublings + again)
        return Record(load.replicas, needs, floor, CALM << doublings, doublings, load.helpful)

    def wanted(self, current: int, bounds: Bounds) -> int:
        """Return how many replicas should replace the `current` number."""
        now = self.needs[-1] if self.needs else 0.0
        if now > current:
            helpful = max(current, self.helpful)
            return bounds.within(min(now, STEEPEST * current, helpful))
        if len(self.needs) < CALM:
            return bounds.within(current)
        floor = self.floor if self.holds else 0.0
        return bounds.within(min(current, max(HALF * current, floor, *self.needs)))


def load_of(
    metrics: FunctionMetrics, before: Mapping[str, ReplicaMetrics], by_pressure: bool, busy: float
) -> Load:
    """Return the load by the replicas that answered: a sample if there are many.

    A silent replica that answered `before` counts as the busiest replica. A silent replica that
    never answered is starting and has no requests. A replica that answered for the first time has
    not computed yet.
    """
    found = metrics.by_replica
    lost = _lost(metrics, before)
    pairs = _pairs(found, before)
    requests = [said.in_hand + said.waiting for said in found.values()]
    computing = [now.computing_since(then) for now, then in pairs]
    shares = [now.pressure_since(then) for now, then in pairs] if by_pressure else []
    starting = metrics.unanswered - lost
    return Load(
        metrics.replicas,
        fmean([*requests, *[max(requests)] * lost, *[0.0] * starting]),
        fmean(said.at_once for said in found.values()),
        fmean(shares) if shares else 0.0,
        busy,
        computing=sum(computing) / (len(found) + starting),
    )


def arrived(
    metrics: FunctionMetrics, before: Mapping[str, ReplicaMetrics]
) -> tuple[float, float] | None:
    """Return how many requests arrived since the look `before`, and in how many seconds.

    Return None if no replica answered then. Starting replicas have got no requests; each replica
    that was busy counts for the others.
    """
    pairs = _pairs(metrics.by_replica, before)
    if not pairs:
        return None
    seconds = fmean(now.at - then.at for now, then in pairs)
    per_s = sum(max(0.0, now.arrived - then.arrived) / (now.at - then.at) for now, then in pairs)
    counted = len(metrics.by_replica) + metrics.unanswered - _lost(metrics, before)
    return metrics.replicas * per_s / counted * seconds, seconds


def _pairs(
    found: Mapping[str, ReplicaMetrics], before: Mapping[str, ReplicaMetrics]
) -> list[tuple[ReplicaMetrics, ReplicaMetrics]]:
    return [(said, before[name]) for name, said in found.items() if name in before]


def _lost(metrics: FunctionMetrics, before: Mapping[str, ReplicaMetrics]) -> int:
    """Return how many silent replicas answered before: they are too busy to answer."""
    return min(metrics.unanswered, len(before.keys() - metrics.by_replica.keys()))


def behind(load: Load, others: Iterable[Load]) -> Load:
    """Return the load of an entry whose requests wait for `others` with too few replicas."""
    return replace(load, is_behind=any(each.needs > each.replicas for each in others))


@dataclass(frozen=True)
class Planned:
    """The plan of a wrap: a rate in requests per second, and the replicas that it keeps busy."""

    per_s: float
    replicas: float


def planned_for(
    labels: Mapping[str, str], plan_per_s: float | None = None, needed: float | None = None
) -> Planned | None:
    """Return the plan of a wrap that gets requests through the gateway, if its labels have a rate.

    That is `plan_per_s`, its plan's rate, with the replicas `needed`, unless the labels were
    changed.
    """
    target, least = _number(labels.get(TARGET_LABEL, ""), 0), Bounds.of(labels).least
    if labels.get(TYPE_LABEL) != "rps" or not target:
        return None
    if plan_per_s and needed and target == target_per_s(plan_per_s, needed):
        return Planned(plan_per_s, needed)
    return Planned(float(target * least), float(least))


def growth(requests: float, seconds: float, planned: float) -> float:
    """Return the factor of the `planned` rate that `requests` in `seconds` surely exceed.

    The model's replicas grow with the rate, as each saturates at its own.
    """
    sure = max(0.0, requests - _SURE * math.sqrt(max(0.0, requests)))
    return sure / (seconds * planned) if seconds > 0 else 0.0


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and int(text) > 0 else default
