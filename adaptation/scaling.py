"""How many replicas a wrap should have: pure functions of what its replicas say.

References
----------
DataFlower (ASPLOS'23), section 4.2: a function of which nothing is held back needs no more
containers for its outputs; one that is blocked for a share p of the time makes them 1 / (1 - p)
times as fast as they leave, and would need so many times the containers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from chiron.generator.scale_labels import target_per_s
from chiron.openfaas.objects import MAX_LABEL, MIN_LABEL, TARGET_LABEL, TYPE_LABEL

#: OpenFaaS's own, where labels say nothing.
_DEFAULT_MIN, _DEFAULT_MAX = 1, 20
#: Share of the requests at once that replicas have in hand where there are enough of them.
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
    """What a wrap's replicas have to do.

    ``requests`` are those in hand and waiting at a replica, on average; a replica works on
    ``at_once`` of them. ``pressure`` is the share of the time in which tasks were held back.
    ``busy`` is the share of their machine's cores that were busy, 0 where that is not known.
    ``by_rate`` are the replicas that the plan would have for the rate; 0 if it was for no rate.
    """

    replicas: int
    requests: float
    at_once: float
    pressure: float = 0.0
    busy: float = 0.0
    by_rate: float = 0.0

    @property
    def is_pressed(self) -> bool:
        """Whether outputs leave more slowly than they are made."""
        return self.pressure >= PRESSED

    @property
    def needs(self) -> float:
        """With so many replicas each has no more than its share of requests, and no pressure, and
        there are as many as planned for the rate.

        There are no more for requests than there are requests: a replica without any is idle.
        """
        total = self.replicas * self.requests
        by_queue = min(total / (TARGET * self.at_once), max(1.0, total))
        held = min(self.pressure, HALF)
        by_pressure = self.replicas / (1 - held) if self.is_pressed else 0.0
        return max(by_queue, by_pressure, self.by_rate)

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


def planned_per_s(labels: Mapping[str, str], plan_per_s: float | None = None) -> float | None:
    """The rate that a function's fewest replicas are for, if its labels say one.

    That is exactly `plan_per_s`, the rate of its plan, unless somebody has changed the labels.
    """
    target, least = _number(labels.get(TARGET_LABEL, ""), 0), Bounds.of(labels).least
    if labels.get(TYPE_LABEL) != "rps" or not target:
        return None
    if plan_per_s is not None and target == target_per_s(plan_per_s, least):
        return plan_per_s
    return float(target * least)


def growth(requests: float, seconds: float, planned: float) -> float:
    """How many times the `planned` rate requests surely arrive at, if so many came in `seconds`.

    The model's replicas grow with the rate, as each saturates at its own.
    """
    sure = max(0.0, requests - _SURE * math.sqrt(max(0.0, requests)))
    return sure / (seconds * planned) if seconds > 0 else 0.0


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and int(text) > 0 else default
