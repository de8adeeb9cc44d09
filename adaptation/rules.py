"""When a deployment has drifted from what was predicted: pure functions of what was seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from generator.annotations import DeployedPrediction
from workflow.errors import ChironError
from workflow.plan import Plan

#: Where a measured latency is, as seen from the predicted range.
Side = Literal["below", "within", "above"]

#: Pauses double with every attempt that changed nothing, but not more often than this.
_DOUBLINGS = 6


@dataclass(frozen=True)
class Rules:
    """When to adapt."""

    #: How long requests are counted for one mean latency, in seconds.
    window_s: float = 60.0
    #: How many windows in a row have to be outside the range, on one side of it.
    windows: int = 3
    #: Requests below which a window tells nothing.
    fewest: int = 10
    #: How much further than the predicted range the mean may be, as a share of its ends.
    tolerance: float = 0.25
    #: Profile anew when the last time is longer ago, in seconds; None for never.
    every_s: float | None = None
    #: Switch to plans that miss the SLO too.
    best_effort: bool = False
    #: Deploy the entry again to switch, even where the provider loses requests by that.
    allow_outage: bool = False


@dataclass(frozen=True)
class Window:
    """The requests of one stretch of time: how many, and their mean latency (0 for none)."""

    requests: int
    mean_ms: float


def side(latency_ms: float, prediction: DeployedPrediction, tolerance: float) -> Side:
    """Where `latency_ms` is, as seen from the predicted range and `tolerance` around it."""
    if latency_ms < prediction.low_ms * (1 - tolerance):
        return "below"
    return "above" if latency_ms > prediction.high_ms * (1 + tolerance) else "within"


@dataclass(frozen=True)
class Record:
    """What the windows so far come to."""

    #: The side of the last window that told something, and how many in a row were there.
    side: Side = "within"
    run: int = 0
    #: Adaptations since the latency was last in range; each one that it comes back for lets the
    #: next drift be taken at its word sooner.
    attempts: int = 0
    #: Windows in which nothing is done, whatever they tell: the longer the more attempts there
    #: were. Drift that a new plan does not mend, such as load, is then no reason to go round and
    #: round.
    pause: int = 0

    def seen(self, window: Window, prediction: DeployedPrediction, rules: Rules) -> Record:
        """The record after one more window."""
        pause = max(0, self.pause - 1)
        if window.requests < rules.fewest:
            return replace(self, pause=pause)
        now = side(window.mean_ms, prediction, rules.tolerance)
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


@dataclass(frozen=True)
class Served:
    """What serves, as a new plan is compared with it."""

    #: What was predicted of its plan; None where nothing was.
    prediction: DeployedPrediction | None = None
    #: What requests have just taken, where that is not what was predicted.
    took_ms: float | None = None
    #: Whether it says that it was made from the same functions, and that the same was asked of
    #: its plan.
    same_source: bool = False
    same_asked: bool = False
    #: What a switch would add to what requests take.
    hop_ms: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """Whether to switch to a new plan, and why or why not."""

    switch: bool
    why: str


def judge(served: Served, plan: Plan, rules: Rules) -> Verdict:
    """Whether `plan` should replace what is `served`.

    One of as many CPUs, predicted about as fast, for the same code, brings nothing:
    two profiles of one function are never quite equal. One of more CPUs has to be faster.

    Raises ``slo-missed`` where `plan` would replace it but misses the SLO, and the rules want
    better.
    """
    verdict = _compared(served, plan, rules)
    if verdict.switch and plan.meets_slo is False and not rules.best_effort:
        predicted = f"{plan.predicted.latency_ms:.1f} ms on " if plan.predicted else ""
        raise ChironError(
            "slo-missed",
            f"no plan meets the SLO of {plan.slo_ms:g} ms, the best one takes {predicted}"
            f"{_cpus(plan.cpus)}: ask for another --slo, or for that one with --best-effort",
        )
    return verdict


def _compared(served: Served, plan: Plan, rules: Rules) -> Verdict:
    prediction = served.prediction
    if prediction is None or plan.predicted is None:
        return Verdict(True, "no prediction so far")
    if not served.same_source:
        return Verdict(True, "what serves is not known to be of these functions")
    predicted_ms = plan.predicted.latency_ms
    takes_ms = served.took_ms or prediction.latency_ms
    if plan.cpus > prediction.cpus and predicted_ms >= takes_ms:
        dearer = f"takes {_cpus(plan.cpus)} instead of {prediction.cpus}"
        return Verdict(
            False, f"the new plan {dearer}, {predicted_ms:.1f} ms and not {takes_ms:.1f}"
        )
    if not served.same_asked:
        return Verdict(True, "what is asked of the plan is not known to be the same")
    if plan.cpus != prediction.cpus:
        return Verdict(True, f"{_cpus(plan.cpus)} instead of {prediction.cpus}")
    if side(predicted_ms - served.hop_ms, prediction, rules.tolerance) != "within":
        return Verdict(
            True, f"{predicted_ms:.1f} ms predicted instead of {prediction.latency_ms:.1f} ms"
        )
    return Verdict(False, "the new plan brings nothing")


def _cpus(count: int) -> str:
    return f"{count} CPU{'s' * (count > 1)}"
