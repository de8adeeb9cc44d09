"""Whether requests keep an SLO: a sequential test, which stops as soon as the answer is sure.

A request exceeds the SLO with an unknown probability; the SLO is kept where that is at most what
its percentile allows. After each request two hypotheses, that it is at most so much and that it is
at least so much, are held against a mixture of others by the ratio of likelihoods. A hypothesis is
rejected once the ratio reaches the inverse of an error. By Ville's inequality (1939) that happens
to a true one with at most the probability of that error, however often one looks: Wald's sequential
test (1945) with the mixtures of Robbins (1970). What is open when requests or time run out is
decided by the exact binomial test (Clopper and Pearson, 1934), which has an error of its own.

That requests do not depend on each other is assumed, and not so: where others share the machine its
speed changes by the second. So an SLO is `kept` only by requests of some seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from chiron.deployment.measure import percentile as quantile
from chiron.workflow.profile import LONGEST_MS

#: ``kept`` and ``broken`` are sure; ``unsure`` is what is still open at the end.
Verdict = Literal["kept", "broken", "unsure"]

#: The probability of each wrong verdict of one plan, ``kept`` where the SLO is broken and the other
#: way round: while requests are sent, and at their end.
WHILE, AT_END = 0.035, 0.015
#: Requests before any verdict: fewer tell nothing of how long requests take.
FEWEST = 20
#: Requests that a plan is measured with at most, but where a percentile needs more.
MOST = 1000
#: Requests for a percentile of 100, of which none may exceed the SLO.
_FOR_EVERY = 400
#: A plan is measured for so many seconds at most, or for as long as a slow one may need.
_LIMIT_S = 30.0
#: ``kept`` takes requests of so many seconds in all, if there may be as many.
LONG_S = 10.0
#: For how long one plan is measured at most, in seconds, however slow its requests are.
BUDGET_S = 120.0
#: A request that arrives at a rate is late if it is sent so large a part of the SLO after it is
#: due. If more than this share is late, the client did not keep the rate.
LATE, _MOST_LATE = 0.1, 0.05
#: The odds of a request over the SLO in the alternatives, as factors of what is allowed; each
#: with its share of the mixture.
_FEWER = ((0.0, 0.5), (0.25, 0.25), (0.5, 0.25))
_MORE = ((2.0, 1 / 3), (4.0, 1 / 3), (16.0, 1 / 3))


def clean_requests(percentile: float) -> int:
    """How many requests, none of which exceeds the SLO, are enough for ``kept``."""
    allowed = 1 - percentile / 100
    if not allowed:  # no number of requests shows that there is never one
        return _FOR_EVERY
    (_, share), *_ = _FEWER
    return max(FEWEST, math.ceil(math.log(share * WHILE) / math.log1p(-allowed)))


def verdict(percentile: float, requests: int, over: int) -> Verdict | None:
    """What `over` of `requests` above the SLO come to; None where that is not sure yet.

    With a percentile of 100 one is enough to break it, and it counts as kept where none of
    `clean_requests` exceeds it.
    """
    allowed = 1 - percentile / 100
    if requests < FEWEST:
        return None
    if not allowed:
        return "broken" if over else "kept" if requests >= _FOR_EVERY else None
    if _evidence(_FEWER, allowed, requests, over) * WHILE >= 1:
        return "kept"
    return "broken" if _evidence(_MORE, allowed, requests, over) * WHILE >= 1 else None


def last_verdict(percentile: float, requests: int, over: int) -> Verdict:
    """What they come to where no further request is sent."""
    sure = verdict(percentile, requests, over)
    allowed = 1 - percentile / 100
    if sure or not allowed or requests < FEWEST:
        return sure or "unsure"
    if _at_most(over, requests, allowed) <= AT_END:
        return "kept"
    return "broken" if 1 - _at_most(over - 1, requests, allowed) <= AT_END else "unsure"


@dataclass
class Trial:
    """Requests of one plan against the SLO; `latencies_ms` are those that have been sent.

    Where there are fewer plans than tries, it has the requests and the time of so many `tries`.
    With `per_s` they arrive at that rate, and the client sent `late` of them late. If these are
    too many, the trial shows nothing.
    """

    slo_ms: float
    percentile: float
    per_s: float | None = None
    latencies_ms: list[float] = field(default_factory=list)
    late: int = 0
    tries: int = 1

    @property
    def over(self) -> int:
        """How many exceed the SLO."""
        return sum(latency_ms > self.slo_ms for latency_ms in self.latencies_ms)

    @property
    def latency_ms(self) -> float:
        """What the percentile of them stay within."""
        return round(quantile(self.latencies_ms, self.percentile / 100), 3)

    @property
    def learned_ms(self) -> float | None:
        """The latency that corrects other predictions; None if it shows nothing of them."""
        return None if self.doubt or self.latency_ms >= LONGEST_MS else self.latency_ms

    @property
    def verdict(self) -> Verdict:
        """What they come to, where no further one is sent."""
        if self.doubt:
            return "unsure"
        return last_verdict(self.percentile, len(self.latencies_ms), self.over)

    @property
    def doubt(self) -> str | None:
        """Why the trial shows nothing; None if the client kept the rate."""
        requests = len(self.latencies_ms)
        if self.per_s is None or self.late <= _MOST_LATE * requests:
            return None
        return (
            f"the client did not keep {self.per_s:g}/s: {self.late} of {requests} requests were "
            f"sent more than {LATE * self.slo_ms:g} ms late; measure from a machine with free "
            "cores, or for a lower rate"
        )

    @property
    def most(self) -> int:
        """The requests after which it ends in any case."""
        return self.tries * self._enough

    def usual_s(self, expected_ms: float) -> float:
        """How long a plan that keeps the SLO and takes so long is measured, in seconds."""
        each_s = 1 / self.per_s if self.per_s else min(self.slo_ms, expected_ms) / 1000
        needed_s = max(clean_requests(self.percentile) * each_s, min(LONG_S, self._enough * each_s))
        return min(BUDGET_S, needed_s)

    def limit_s(self, expected_ms: float) -> float:
        """After how many seconds it ends in any case, also where it takes longer than expected."""
        one_s = max(_LIMIT_S, 1.5 * self.usual_s(3 * expected_ms))
        return min(BUDGET_S, self.tries * one_s)

    def ends_with(self, latency_ms: float, late_ms: float = 0.0) -> bool:
        """Whether no further request is needed after one that took so long."""
        self.latencies_ms.append(latency_ms)
        self.late += late_ms > LATE * self.slo_ms
        sure = verdict(self.percentile, len(self.latencies_ms), self.over)
        return sure == "broken" or (sure == "kept" and self._are_long)

    @property
    def _enough(self) -> int:
        """How many requests are enough, however short they are."""
        return max(MOST, 2 * clean_requests(self.percentile), math.ceil(self._needed(LONG_S)))

    @property
    def _are_long(self) -> bool:
        """Whether the requests are of enough seconds, or enough."""
        if self.per_s:
            return len(self.latencies_ms) >= self._needed(LONG_S)
        is_long = sum(self.latencies_ms) >= LONG_S * 1000
        return is_long or len(self.latencies_ms) >= self._enough

    def _needed(self, seconds: float) -> float:
        """How many requests arrive in so many seconds; 0 without a rate."""
        return seconds * (self.per_s or 0.0)


def measured_line(slo_ms: float, requests: int, over: int, latency: str, cpus: int) -> str:
    """What was measured of a plan of so many CPUs: how many requests were within its SLO."""
    within = f"{100 * (requests - over) / requests:.1f}".removesuffix(".0")
    return (
        f"measured: {within} % of {requests} within {slo_ms:g} ms, {latency}, at {cpus} "
        f"CPU{'s' * (cpus > 1)}"
    )


def _evidence(
    mixture: Sequence[tuple[float, float]], allowed: float, requests: int, over: int
) -> float:
    """How much likelier `over` of `requests` are in a mixture than where so many are allowed."""
    return sum(share * _ratio(odds, allowed, requests, over) for odds, share in mixture)


def _ratio(odds: float, allowed: float, requests: int, over: int) -> float:
    if not odds and over:
        return 0.0
    scale = 1 - allowed + odds * allowed  # of both probabilities, so that their sum is 1
    log_ratio = (over * math.log(odds) if over else 0.0) - requests * math.log(scale)
    return math.exp(min(log_ratio, 700.0))


def _at_most(over: int, requests: int, share: float) -> float:
    """How likely it is that at most `over` of `requests` exceed what this share of all does."""
    odds = math.log(share) - math.log1p(-share)
    none, ways = requests * math.log1p(-share), math.lgamma(requests + 1)
    return math.fsum(
        math.exp(none + ways - math.lgamma(k + 1) - math.lgamma(requests - k + 1) + k * odds)
        for k in range(over + 1)
    )
