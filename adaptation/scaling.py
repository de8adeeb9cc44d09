"""How many replicas each wrap should have: pure functions of what its replicas say.

References
----------
DataFlower (ASPLOS'23), section 4.2: a function of which nothing is held back needs no more
containers for its outputs; one that is blocked for a share p of the time makes them 1 / (1 - p)
times as fast as they leave, and would need so many times the containers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from chiron.deployment.replicas import FunctionMetrics, ReplicaMetrics
from chiron.generator.scale_labels import target_per_s
from chiron.openfaas.objects import MAX_LABEL, MIN_LABEL, TARGET_LABEL, TYPE_LABEL

#: OpenFaaS's own, where labels say nothing.
_DEFAULT_MIN, _DEFAULT_MAX = 1, 20
#: Share of the requests at once that replicas have in hand, and of the time in which they compute,
#: where there are enough of them.
TARGET = 0.7
#: A rate is seen over so many looks, and counts as higher than planned if requests that arrive at
#: random exceed the plan by so many standard deviations.
RATE_LOOKS, _SURE = 5, 2.0
#: Share of the time in which tasks are held back from which on that is pressure.
PRESSED = 0.1
#: One look raises the replicas at most to so many times as many: a step of ten requests at a
#: replica that takes them one at a time is met by the second look.
STEEPEST = 4
#: One look lowers them at most to this share, and pressure alone raises them at most by as much.
HALF = 0.5
#: For so many looks fewer replicas have to suffice before there are fewer. Where tasks were held
#: back before with so few of them, this is doubled each time, so many times at most.
CALM, _DOUBLINGS = 30, 4


@dataclass(frozen=True)
class Bounds:
    """The fewest and the most replicas that a function may have."""

    least: int = _DEFAULT_MIN
    most: int = _DEFAULT_MAX

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Bounds:
        """As the labels say; what is no number above 0 there says nothing."""
        least = _number(labels.get(MIN_LABEL, ""), _DEFAULT_MIN)
        return cls(least, max(least, _number(labels.get(MAX_LABEL, ""), _DEFAULT_MAX)))

    def within(self, replicas: float) -> int:
        """The next number that there may be, which is no less than `replicas` where it can be."""
        return max(self.least, math.ceil(round(min(replicas, self.most), 6)))


@dataclass(frozen=True)
class Load:
    """What a wrap's replicas have to do."""

    #: Those that take requests.
    replicas: int
    #: Those in hand and waiting at a replica, on average.
    requests: float
    #: How many of these a replica works on.
    at_once: float
    #: The share of the time in which tasks were held back.
    pressure: float = 0.0
    #: The share of their machine's cores that were busy, 0 where that is not known.
    busy: float = 0.0
    #: The replicas that the rate needs by the plan; 0 if it was for no rate.
    by_rate: float = 0.0
    #: The share of the time in which the replicas' own cores computed for them.
    computing: float = 0.0
    #: Whether requests here wait for another wrap that has too few replicas.
    is_behind: bool = False

    @property
    def is_pressed(self) -> bool:
        """Whether outputs leave more slowly than they are made."""
        return self.pressure >= PRESSED

    @property
    def needs(self) -> float:
        """With so many replicas each has no more than its share of requests and of computing, and
        no pressure, and there are as many as the rate needs.

        There are no more for requests than there are requests: a replica without any is idle. Nor
        are there more for requests that wait for another wrap: these would wait there.
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
        """With so many replicas all cores would be busy; infinitely many where none is busy."""
        return self.replicas // self.busy if self.busy > 0 else math.inf


@dataclass(frozen=True)
class Record:
    """What the looks so far come to.

    ``helpful`` are the most replicas that help, by the last look. ``needs`` are those of the last
    looks, since the ``replicas`` became fewer. ``floor`` are the most that were needed when tasks
    were last held back; for so many looks, ``holds``, there are no fewer. How many looks that are
    has been doubled ``doublings`` times.
    """

    replicas: int = 0
    needs: tuple[float, ...] = ()
    floor: float = 0.0
    holds: int = 0
    doublings: int = 0
    helpful: float = math.inf

    def seen(self, load: Load) -> Record:
        """The record after one more look."""
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
        """How many replicas there should be in place of the `current` ones."""
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
    """What the replicas that were heard say: with many of them, a sample.

    A silent replica that was heard `before` has as much to do as the busiest replica. A silent
    replica that never was heard is starting: it has nothing to do, and neither has a replica that
    was heard for the first time computed yet.
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
    """How many requests have arrived at all replicas since the look `before`, and in how many
    seconds; None if no replica was heard then.

    Those that are starting have got none yet: each replica that was busy stands for the others.
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
    """How many silent replicas were heard before: they are too busy to answer."""
    return min(metrics.unanswered, len(before.keys() - metrics.by_replica.keys()))


def behind(load: Load, others: Iterable[Load]) -> Load:
    """The load of an entry, whose requests wait for the `others` that have too few replicas."""
    return replace(load, is_behind=any(each.needs > each.replicas for each in others))


@dataclass(frozen=True)
class Planned:
    """What a wrap was planned for: so many requests per second keep so many replicas busy."""

    per_s: float
    replicas: float


def planned_for(
    labels: Mapping[str, str], plan_per_s: float | None = None, needed: float | None = None
) -> Planned | None:
    """What a wrap that gets its requests through the gateway is for, if its labels say a rate.

    That is `plan_per_s`, the rate of its plan, and the replicas `needed` for that, unless somebody
    has changed the labels.
    """
    target, least = _number(labels.get(TARGET_LABEL, ""), 0), Bounds.of(labels).least
    if labels.get(TYPE_LABEL) != "rps" or not target:
        return None
    if plan_per_s and needed and target == target_per_s(plan_per_s, needed):
        return Planned(plan_per_s, needed)
    return Planned(float(target * least), float(least))


def growth(requests: float, seconds: float, planned: float) -> float:
    """How many times the `planned` rate requests surely arrive at, if so many came in `seconds`.

    The model's replicas grow with the rate, as each saturates at its own.
    """
    sure = max(0.0, requests - _SURE * math.sqrt(max(0.0, requests)))
    return sure / (seconds * planned) if seconds > 0 else 0.0


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and int(text) > 0 else default
