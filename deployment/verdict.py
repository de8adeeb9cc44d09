"""Whether requests keep an SLO: a sequential test, which stops as soon as the answer is sure.

A request exceeds the SLO with an unknown probability. The SLO is kept if that probability is at
most the share that its percentile allows. Two hypotheses are tested after each request: "at most
that share" and "at least that share". Each is compared with a mixture of alternatives by the ratio
of likelihoods, and rejected when the ratio reaches the inverse of an error. By Ville's inequality
(1939) a true hypothesis is rejected with at most the probability of that error, however often one
tests. This is Wald's sequential test (1945) with the mixtures of Robbins (1970). If requests or
time run out first, the exact binomial test (Clopper and Pearson, 1934) decides, with its own error.

The test assumes independent requests. They are not: on a shared machine the speed changes by the
second. So ``kept`` also needs requests of some seconds in all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from chiron.deployment.measure import percentile as quantile
from chiron.workflow.profile import LONGEST_MS

#: ``kept`` and ``broken`` are sure; ``unsure`` is the verdict of a test that ended undecided.
Verdict = Literal["kept", "broken", "unsure"]

#: The probability of each wrong verdict of one plan, ``kept`` or ``broken``: while requests are
#: sent, and after the last request.
WHILE, AT_END = 0.035, 0.015
#: Requests before any verdict: fewer are no evidence of how long requests take.
FEWEST = 20
#: The most requests of one plan, unless the percentile or the rate needs more.
MOST = 1000
#: Requests for a percentile of 100, of which none may exceed the SLO.
_FOR_EVERY = 400
#: The time limit of one plan in seconds; a slow plan may have a higher limit.
_LIMIT_S = 30.0
#: ``kept`` needs requests of this many seconds in all, or the most requests of a plan.
LONG_S = 10.0
#: The upper bound of every time limit in seconds, however slow the requests are.
BUDGET_S = 120.0
#: A request at a rate is late if it is sent more than `LATE` times the SLO after it is due. If more
#: than the share `_MOST_LATE` is late, the client did not keep the rate.
LATE, _MOST_LATE = 0.1, 0.05
#: The alternatives: the odds of a request over the SLO as a factor of the allowed odds, and the
#: share of the mixture.
_FEWER = ((0.0, 0.5), (0.25, 0.25), (0.5, 0.25))
_MORE = ((2.0, 1 / 3), (4.0, 1 / 3), (16.0, 1 / 3))


def clean_requests(percentile: float) -> int:
    """Return how many requests within the SLO, with none over it, are enough for ``kept``."""
    allowed = 1 - percentile / 100
    if not allowed:  # no number of requests proves that none is ever over the SLO
        return _FOR_EVERY
    (_, share), *_ = _FEWER
    return max(FEWEST, math.ceil(math.log(share * WHILE) / math.log1p(-allowed)))


def verdict(percentile: float, requests: int, over: int) -> Verdict | None:
    """Return the verdict after `requests`, `over` of them over the SLO; None if it is not sure yet.

    At a percentile of 100, one request over the SLO breaks it; `clean_requests` within it keep it.
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
    """Return the verdict if no further request is sent."""
    sure = verdict(percentile, requests, over)
    allowed = 1 - percentile / 100
    if sure or not allowed or requests < FEWEST:
        return sure or "unsure"
    if _at_most(over, requests, allowed) <= AT_END:
        return "kept"
    return "broken" if 1 - _at_most(over - 1, requests, allowed) <= AT_END else "unsure"


@dataclass
class Trial:
    """Requests of one plan against the SLO; `latencies_ms` has those that were sent.

    If there are fewer plans than tries, a trial gets the requests and the time of `tries` tries.
    With `per_s`, requests arrive at that rate, and the client sent `late` of them late. If too many
    are late, the trial is void.
    """

    slo_ms: float
    percentile: float
    per_s: float | None = None
    latencies_ms: list[float] = field(default_factory=list)
    late: int = 0
    tries: int = 1

    @property
    def over(self) -> int:
        """The number of requests over the SLO."""
        return sum(latency_ms > self.slo_ms for latency_ms in self.latencies_ms)

    @property
    def latency_ms(self) -> float:
        """The latency at the SLO's percentile, in milliseconds."""
        return round(quantile(self.latencies_ms, self.percentile / 100), 3)

    @property
    def learned_ms(self) -> float | None:
        """The latency for correcting other predictions; None if the trial is void or too slow."""
        return None if self.void_reason or self.latency_ms >= LONGEST_MS else self.latency_ms

    @property
    def verdict(self) -> Verdict:
        """The verdict if no further request is sent."""
        if self.void_reason:
            return "unsure"
        return last_verdict(self.percentile, len(self.latencies_ms), self.over)

    @property
    def void_reason(self) -> str | None:
        """Why the trial is void; None if the client kept the rate."""
        requests = len(self.latencies_ms)
        if self.per_s is None or self.late <= _MOST_LATE * requests:
            return None
        return (
            f"the client did not keep {self.per_s:g}/s: {self.late} of {requests} requests were "
            f"sent more than {LATE * self.slo_ms:g} ms late; measure from a machine with free "
            "cores, or for a lower rate"
        )

    @property
    def max_requests(self) -> int:
        """The number of requests after which the trial ends in any case."""
        return self.tries * self._max_requests_of_try

    def usual_s(self, expected_ms: float) -> float:
        """Return the usual seconds of the trial of a plan that keeps the SLO with that latency."""
        each_s = 1 / self.per_s if self.per_s else min(self.slo_ms, expected_ms) / 1000
        needed_s = max(
            clean_requests(self.percentile) * each_s,
            min(LONG_S, self._max_requests_of_try * each_s),
        )
        return min(BUDGET_S, needed_s)

    def limit_s(self, expected_ms: float) -> float:
        """Return the seconds after which the trial ends in any case, also with slow requests."""
        one_s = max(_LIMIT_S, 1.5 * self.usual_s(3 * expected_ms))
        return min(BUDGET_S, self.tries * one_s)

    def record(self, latency_ms: float, late_ms: float = 0.0) -> bool:
        """Record a request; return whether the trial needs no further request."""
        self.latencies_ms.append(latency_ms)
        self.late += late_ms > LATE * self.slo_ms
        sure = verdict(self.percentile, len(self.latencies_ms), self.over)
        return sure == "broken" or (sure == "kept" and self._is_enough)

    @property
    def _max_requests_of_try(self) -> int:
        """The number of requests that is enough, however short they are."""
        return max(MOST, 2 * clean_requests(self.percentile), math.ceil(self._needed(LONG_S)))

    @property
    def _is_enough(self) -> bool:
        """Whether there are enough seconds of requests, or enough requests."""
        if self.per_s:
            return len(self.latencies_ms) >= self._needed(LONG_S)
        is_long = sum(self.latencies_ms) >= LONG_S * 1000
        return is_long or len(self.latencies_ms) >= self._max_requests_of_try

    def _needed(self, seconds: float) -> float:
        """Return how many requests arrive in `seconds`; 0 without a rate."""
        return seconds * (self.per_s or 0.0)


def measured_line(slo_ms: float, requests: int, over: int, latency: str, cpus: int) -> str:
    """Return the sentence on a measured plan: the requests within its SLO, and its CPUs."""
    within = f"{100 * (requests - over) / requests:.1f}".removesuffix(".0")
    return (
        f"measured: {within} % of {requests} within {slo_ms:g} ms, {latency}, at {cpus} "
        f"CPU{'s' * (cpus > 1)}"
    )


def _evidence(
    mixture: Sequence[tuple[float, float]], allowed: float, requests: int, over: int
) -> float:
    """Return the likelihood ratio of the mixture to the allowed share, for `over` of `requests`."""
    return sum(share * _ratio(odds, allowed, requests, over) for odds, share in mixture)


def _ratio(odds: float, allowed: float, requests: int, over: int) -> float:
    if not odds and over:
        return 0.0
    scale = 1 - allowed + odds * allowed  # of both probabilities, so that their sum is 1
    log_ratio = (over * math.log(odds) if over else 0.0) - requests * math.log(scale)
    return math.exp(min(log_ratio, 700.0))


def _at_most(over: int, requests: int, share: float) -> float:
    """Return the probability that at most `over` of `requests` are over the SLO, if `share` are."""
    odds = math.log(share) - math.log1p(-share)
    none, ways = requests * math.log1p(-share), math.lgamma(requests + 1)
    return math.fsum(
        math.exp(none + ways - math.lgamma(k + 1) - math.lgamma(requests - k + 1) + k * odds)
        for k in range(over + 1)
    )
