"""When a deployment has drifted from what its plan promised: pure functions of what was seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from generator.annotations import Promise
from workflow.plan import Plan

#: Where a measured latency is, as seen from the predicted range.
Side = Literal["below", "within", "above"]

#: Pauses double with every attempt that changed nothing, but not more often than this.
_DOUBLINGS = 6


@dataclass(frozen=True)
class Rules:
    """When to adapt.

    Attributes
    ----------
    window_s
        How long requests are counted for one mean latency, in seconds.
    windows
        How many windows in a row have to be outside the range, on one side of it.
    fewest
        Requests below which a window tells nothing.
    tolerance
        How much further than the predicted range the mean may be, as a share of its ends.
    every_s
        Profile anew when the last time is longer ago, in seconds; None for never.
    """

    window_s: float = 60.0
    windows: int = 3
    fewest: int = 10
    tolerance: float = 0.25
    every_s: float | None = None


@dataclass(frozen=True)
class Window:
    """The requests of one stretch of time: how many, and their mean latency (0 for none)."""

    requests: int
    mean_ms: float


def side(latency_ms: float, promise: Promise, tolerance: float) -> Side:
    """Where `latency_ms` is, as seen from the promised range and `tolerance` around it."""
    if latency_ms < promise.low_ms * (1 - tolerance):
        return "below"
    return "above" if latency_ms > promise.high_ms * (1 + tolerance) else "within"


@dataclass(frozen=True)
class Record:
    """What the windows so far come to.

    Attributes
    ----------
    side, run
        The side of the last window that told something, and how many in a row were there.
    attempts
        Adaptations since the latency was last in range; each one that it comes back for lets the
        next drift be taken at its word sooner.
    pause
        Windows in which nothing is done, whatever they tell: the longer the more attempts there
        were. Drift that a new plan does not mend, such as load, is then no reason to go round and
        round.
    """

    side: Side = "within"
    run: int = 0
    attempts: int = 0
    pause: int = 0

    def seen(self, window: Window, promise: Promise, rules: Rules) -> Record:
        """The record after one more window."""
        pause = max(0, self.pause - 1)
        if window.requests < rules.fewest:
            return replace(self, pause=pause)
        now = side(window.mean_ms, promise, rules.tolerance)
        if now == "within":
            return Record(attempts=max(0, self.attempts - 1), pause=pause)
        if self.pause:
            return Record(attempts=self.attempts, pause=pause)
        return replace(self, side=now, run=self.run + 1 if now == self.side else 1)

    def attempted(self, rules: Rules) -> Record:
        """The record after an adaptation, whatever came of it."""
        attempts = self.attempts + 1
        pause = rules.windows * (2 ** min(attempts, _DOUBLINGS) - 1)
        return Record(attempts=attempts, pause=pause)

    def drifted(self, rules: Rules) -> bool:
        """Whether enough windows in a row were outside, on one side."""
        return self.run >= rules.windows


def worth_switching(
    promise: Promise | None, plan: Plan, rules: Rules, *, same_source: bool
) -> str | None:
    """Why `plan` should replace a deployment that promises `promise`; None where it need not.

    A plan that takes as many CPUs and promises about the same, for the same code, brings nothing:
    two profiles of one function are never quite equal.
    """
    if promise is None or plan.predicted is None:
        return "no promise so far"
    if not same_source:
        return "the functions changed, or what is asked of the plan"
    if plan.cpus != promise.cpus:
        return f"{plan.cpus} CPUs instead of {promise.cpus}"
    predicted_ms = plan.predicted.latency_ms
    if side(predicted_ms, promise, rules.tolerance) != "within":
        return f"{predicted_ms:.1f} ms predicted instead of {promise.latency_ms:.1f} ms"
    return None
