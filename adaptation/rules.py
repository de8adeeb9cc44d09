"""When a deployment has drifted from what was predicted: pure functions of what was seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chiron.adaptation.scaling import growth
from chiron.deployment.verdict import verdict
from chiron.generator.annotations import UNBOUNDED_MS, DeployedPrediction
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan, Within

#: Where a mean latency is, as seen from the predicted range; ``late`` where it is within, but more
#: requests than the SLO allows take longer than the SLO.
Side = Literal["below", "within", "above", "late"]

#: Pauses double with every attempt that changed nothing, but not more often than this.
_DOUBLINGS = 6


@dataclass(frozen=True)
class Rules:
    """When to adapt."""

    #: How long requests are counted for one mean latency, in seconds, if there are enough by then.
    window_s: float = 60.0
    #: How many windows in a row have to be outside the range, on one side of it.
    windows: int = 3
    #: Requests below which a window tells nothing, and grows.
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
    """The requests of one stretch of time: how many, and their mean latency (0 for none).

    Of those of which it is known, ``timed``, at least ``late`` took longer than the SLO. So many
    ``arrived``, with those that failed or have no answer yet, in so many ``seconds``; 0 where that
    is not known. The window has grown to ``looks`` times its length.
    """

    requests: int
    mean_ms: float
    timed: int = 0
    late: int = 0
    arrived: float = 0.0
    seconds: float = 0.0
    looks: int = 1

    def grown(self, later: Window) -> Window:
        """This window and the `later` one that follows it, as one window."""
        requests = self.requests + later.requests
        spent_ms = self.requests * self.mean_ms + later.requests * later.mean_ms
        return Window(
            requests=requests,
            mean_ms=spent_ms / max(1, requests),
            timed=self.timed + later.timed,
            late=self.late + later.late,
            arrived=self.arrived + later.arrived,
            seconds=self.seconds + later.seconds,
            looks=self.looks + later.looks,
        )


def with_window(windows: Sequence[Window], new: Window, rules: Rules) -> list[Window]:
    """The last `windows` that the rules look at, and the `new` one.

    If the last one has too few requests to tell anything, the new one makes it longer.
    """
    if windows and windows[-1].requests < rules.fewest:
        return [*windows[:-1], windows[-1].grown(new)]
    return [*windows, new][-rules.windows :]


def exceeding_per_s(windows: Sequence[Window], planned_per_s: float) -> float | None:
    """The rate at which requests arrived in `windows`, if surely more than planned; else None."""
    arrived = sum(each.arrived for each in windows)
    seconds = sum(each.seconds for each in windows)
    if growth(arrived, seconds, planned_per_s) <= 1:
        return None
    return float(f"{arrived / seconds:.3g}")


def side(mean_ms: float, prediction: DeployedPrediction, tolerance: float) -> Side:
    """Where `mean_ms` is, as seen from the range of the predicted mean with `tolerance`."""
    low_ms, high_ms = prediction.expected_range_ms
    if mean_ms < low_ms * (1 - tolerance):
        return "below"
    return "above" if mean_ms > high_ms * (1 + tolerance) else "within"


def allowed(prediction: DeployedPrediction) -> float | None:
    """The share of requests that may take longer than the SLO; None where nothing was promised.

    A plan whose whole range is above the SLO was deployed without a promise.
    """
    slo_ms, promised = prediction.slo_ms, prediction.promised
    if slo_ms is None or promised is None or promised.low_ms > slo_ms:
        return None
    return 1 - promised.percentile / 100


def by_slo(slo_ms: float, percentile: float) -> DeployedPrediction:
    """What requests are held against if nothing was predicted: the SLO alone, whatever the mean."""
    within = Within(percentile=percentile, ms=slo_ms, low_ms=0.0, high_ms=slo_ms)
    return DeployedPrediction(
        latency_ms=slo_ms, low_ms=0.0, high_ms=UNBOUNDED_MS, within=within, cpus=0, slo_ms=slo_ms
    )


def concluded(windows: Sequence[Window], prediction: DeployedPrediction, rules: Rules) -> str:
    """What the mean of `windows`, no reason to adapt, says of what serves, in a sentence."""
    telling = [each for each in windows if each.requests >= rules.fewest]
    length = f" of {rules.window_s:g} s" if rules.window_s else ""
    looks = sum(each.looks for each in windows)
    looked = f"{looks} window{'s' * (looks != 1)}{length}"
    if not telling:
        requests = sum(each.requests for each in windows)
        return (
            f"not known: {looked} had {requests} requests, and a window tells nothing below "
            f"{rules.fewest}; send requests, or use a longer --window"
        )
    requests = sum(each.requests for each in telling)
    mean_ms = sum(each.requests * each.mean_ms for each in telling) / requests
    timed, late = sum(each.timed for each in telling), sum(each.late for each in telling)
    outside = sum(side(each.mean_ms, prediction, rules.tolerance) != "within" for each in telling)
    found = f"{requests} requests in {looked} took {mean_ms:.1f} ms in the mean"
    slo = f", {late} of {timed} over the SLO of {prediction.slo_ms:g} ms" if timed else ""
    if outside:
        told = f"unsure: {outside} of {len(telling)} windows were outside"
        told = f"{told} {prediction.expected_shown}; {found}{slo}"
        return f"{told}; what serves stays: look again"
    if not prediction.bounds_mean:
        return f"nothing is predicted, so the SLO alone counts: {found}{slo}; what serves stays"
    return f"as predicted ({prediction.expected_shown}): {found}{slo}; what serves stays"


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
    #: Where the side is ``late``: the requests of the windows there, and the late ones of them.
    timed: int = 0
    late: int = 0
    #: Whether these are too many to be late by chance.
    broken: bool = False

    def seen(self, window: Window, prediction: DeployedPrediction, rules: Rules) -> Record:
        """The record after one more window."""
        pause = max(0, self.pause - 1)
        if window.requests < rules.fewest:
            return replace(self, pause=pause)
        now, share = side(window.mean_ms, prediction, rules.tolerance), allowed(prediction)
        if now == "within" and share is not None and window.late > share * window.timed:
            now = "late"
        if now == "within":
            return Record(attempts=max(0, self.attempts - 1), pause=pause)
        if self.pause:
            return Record(attempts=self.attempts, pause=pause)
        before = self if now == self.side else Record()
        timed, late = before.timed + window.timed, before.late + window.late
        within = prediction.within
        return Record(
            side=now,
            run=before.run + 1,
            attempts=self.attempts,
            timed=timed,
            late=late,
            broken=within is not None and verdict(within.percentile, timed, late) == "broken",
        )

    def attempted(self, rules: Rules) -> Record:
        """The record after an adaptation, whatever came of it."""
        attempts = self.attempts + 1
        pause = rules.windows * (2 ** min(attempts, _DOUBLINGS) - 1)
        return Record(attempts=attempts, pause=pause)

    def drifted(self, rules: Rules) -> bool:
        """Whether enough windows in a row were outside, on one side."""
        return self.run >= rules.windows and (self.side != "late" or self.broken)


@dataclass(frozen=True)
class Served:
    """What serves, as a new plan is compared with it."""

    #: What was predicted of its plan; None where nothing was.
    prediction: DeployedPrediction | None = None
    #: What requests have just taken in the mean, where that is not what was predicted.
    took_ms: float | None = None
    #: Whether it has broken its SLO though requests take what was predicted in the mean.
    late: bool = False
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
    new = DeployedPrediction.of(plan)
    verdict = _compared(served, plan, new, rules)
    if verdict.switch and plan.meets_slo is False and not rules.best_effort:
        takes, cpus = "", _cpus(plan.allocated_cpus)
        if new is not None:
            ends = math.isfinite(new.judged_ms)
            takes = f"{new.judged_ms:.1f} ms on " if ends else "longer and longer on "
        at = f" at {new.under_load.load.shown}" if new and new.under_load else ""
        raise ChironError(
            "slo-missed",
            f"no plan meets the SLO of {plan.slo_ms:g} ms{at}, the best one takes {takes}{cpus}: "
            "ask for another --slo, or for that one with --best-effort",
        )
    return verdict


def _compared(served: Served, plan: Plan, new: DeployedPrediction | None, rules: Rules) -> Verdict:
    prediction = served.prediction
    if prediction is None or new is None:
        return Verdict(True, "no prediction so far")
    if not served.same_source:
        return Verdict(True, "what serves is not known to be of these functions")
    predicted_ms = new.expected_ms
    takes_ms = served.took_ms or prediction.expected_ms
    outgrown = (new.per_s or 0.0) > (prediction.per_s or 0.0)
    keeps = (served.late or outgrown) and plan.meets_slo
    if new.cpus > prediction.cpus and predicted_ms >= takes_ms and not keeps:
        dearer = f"takes {_cpus(new.cpus)} instead of {prediction.cpus}"
        return Verdict(
            False, f"the new plan {dearer}, {predicted_ms:.1f} ms and not {takes_ms:.1f}"
        )
    if outgrown:
        before = f"{prediction.per_s:g}/s" if prediction.per_s else "single requests"
        return Verdict(True, f"for {new.per_s:g}/s instead of {before}")
    if not served.same_asked:
        return Verdict(True, "what serves was planned with other or unknown options")
    if new.cpus != prediction.cpus:
        return Verdict(True, f"{_cpus(new.cpus)} instead of {prediction.cpus}")
    if side(predicted_ms - served.hop_ms, prediction, rules.tolerance) != "within":
        return Verdict(
            True, f"{predicted_ms:.1f} ms predicted instead of {prediction.expected_ms:.1f} ms"
        )
    return Verdict(False, "the new plan brings nothing")


def _cpus(count: int) -> str:
    return f"{count} CPU{'s' * (count > 1)}"
