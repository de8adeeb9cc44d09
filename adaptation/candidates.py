"""Which plan to try next, and whether it serves: pure rules over predictions and measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: The share of the requests beyond the SLO, or of their latency, that may remain after a switch.
_WORTH = 0.9


@dataclass(frozen=True)
class Predicted:
    """A plan's CPUs, its latency at the SLO's percentile, and the low end of its range."""

    cpus: int
    latency_ms: float
    low_ms: float


@dataclass(frozen=True)
class Residual:
    """The ratio of measured to predicted latency of a plan with `cpus` CPUs."""

    cpus: int
    ratio: float


@dataclass(frozen=True)
class Outcome:
    """The result of the plan with this number; `measured_ms` is None if it does not work."""

    number: int
    kept: bool
    measured_ms: float | None


@dataclass(frozen=True)
class Search:
    """The search among `plans`, the preferred first, each predicted faster than those before.

    At most `tries` plans are tried. `known` are residuals of earlier searches.
    """

    plans: Sequence[Predicted]
    slo_ms: float
    tries: int
    known: Sequence[Residual] = ()

    def expected_ms(self, number: int, outcomes: Sequence[Outcome]) -> float:
        """Return the prediction of a plan, corrected by the mean residual (of the logarithm).

        The weight of a residual halves with every CPU more or less than the plan has.
        """
        plan = self.plans[number]
        residuals = [*self.known, *self._residuals(outcomes)]
        weights = [2.0 ** -abs(each.cpus - plan.cpus) for each in residuals]
        if not sum(weights):
            return plan.latency_ms
        logs = (w * math.log(each.ratio) for w, each in zip(weights, residuals, strict=True))
        return plan.latency_ms * math.exp(sum(logs) / sum(weights))

    def next(self, outcomes: Sequence[Outcome]) -> int | None:
        """Return the number of the plan to try next, or None.

        That is the first plan whose corrected prediction keeps the SLO; before anything is known,
        the first whose range may. If there is none, it is the fastest plan whose range may keep the
        SLO. Once a plan keeps the SLO, only plans before it are tried, if their corrected
        prediction does. At least one plan is tried: the fastest if none may keep the SLO.
        """
        if len(outcomes) >= self.tries:
            return None
        best = min((each.number for each in outcomes if each.kept), default=len(self.plans))
        tried = {each.number for each in outcomes}
        expected = {n: self.expected_ms(n, outcomes) for n in range(best) if n not in tried}
        may = [n for n, expected_ms in expected.items() if self._may_keep(n, expected_ms)]
        learned = bool(outcomes or self.known)
        likely = [n for n in may if not learned or expected[n] <= self.slo_ms]
        if likely:
            return likely[0]
        if best < len(self.plans) or (outcomes and not may):
            return None
        return min(may or expected, key=expected.__getitem__)

    def _may_keep(self, number: int, expected_ms: float) -> bool:
        """Return whether the low end of the corrected range keeps the SLO.

        For the fastest plan the uncorrected range suffices: residuals of other plans alone are no
        reason to give up.
        """
        plan = self.plans[number]
        if number == len(self.plans) - 1 and plan.low_ms <= self.slo_ms:
            return True
        return plan.low_ms * expected_ms <= self.slo_ms * plan.latency_ms

    def _residuals(self, outcomes: Sequence[Outcome]) -> Iterator[Residual]:
        for each in outcomes:
            plan = self.plans[each.number]
            if each.measured_ms and plan.latency_ms:
                yield Residual(plan.cpus, each.measured_ms / plan.latency_ms)


class Exceeding(NamedTuple):
    """The share of a plan's requests that exceed the SLO, and their percentile in milliseconds.

    The share comes first: a trial that breaks the SLO ends after few requests, whose percentile
    does not compare with that of many.
    """

    share: float
    latency_ms: float


def is_worth_a_switch(found: Exceeding, serves: Exceeding) -> bool:
    """Return whether the plan `found` exceeds the SLO clearly less often, or by less."""
    faster = found.share <= serves.share and found.latency_ms < _WORTH * serves.latency_ms
    return faster or found.share < _WORTH * serves.share
