"""The rules for drift of a deployment from its prediction: pure functions of measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chiron.adaptation.scaling import growth
from chiron.deployment.verdict import verdict
from chiron.generator.annotations import UNBOUNDED_MS, DeployedPrediction
from chiron.pipeline.deploy import DeploymentRequest
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan, Within

#: The side of a mean latency relative to the predicted range; ``late`` if it is within, but more
#: requests than the SLO allows take longer than the SLO.
Side = Literal["below", "within", "above", "late"]

#: Pauses double with every attempt that changed nothing, up to this many times.
_DOUBLINGS = 6


@dataclass(frozen=True)
class Rules:
    """When to adapt."""

    #: How long requests are counted for one mean latency, in seconds; longer if there are too few.
    window_s: float = 60.0
    #: How many windows in a row have to be outside the range, on one side of it.
    windows: int = 3
    #: The fewest requests of a conclusive window; a window with fewer grows.
    fewest: int = 10
    #: How far beyond the predicted range the mean may be, as a share of the range's ends.
    tolerance: float = 0.25
    #: The age of the last profile, in seconds, after which to profile again; None for never.
    every_s: float | None = None
    #: Switch to plans that miss the SLO too.
    best_effort: bool = False
    #: Switch by deploying the entry again, even if the provider then loses requests.
    allow_outage: bool = False


@dataclass(frozen=True)
class Window:
    """The requests of one stretch of time: their number, and their mean latency (0 for none).

    ``timed`` is how many were compared with the SLO; at least ``late`` of them took longer.
    ``arrived`` counts the requests, including failed and unanswered requests, in ``seconds``; 0 if
    unknown. The window has grown to ``looks`` times its length.
    """

    requests: int
    mean_ms: float
    timed: int = 0
    late: int = 0
    arrived: float = 0.0
    seconds: float = 0.0
    looks: int = 1

    def grown(self, later: Window) -> Window:
        """Return this window and the `later` window that follows it as one window."""
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
    """Return the last `windows` that the rules use, with the `new` window.

    If the last window has too few requests to be conclusive, the new window extends it.
    """
    if windows and windows[-1].requests < rules.fewest:
        return [*windows[:-1], windows[-1].grown(new)]
    return [*windows, new][-rules.windows :]


def exceeding_per_s(windows: Sequence[Window], planned_per_s: float) -> float | None:
    """Return the arrival rate in `windows` if it surely exceeds the plan, else None."""
    arrived = sum(each.arrived for each in windows)
    seconds = sum(each.seconds for each in windows)
    if growth(arrived, seconds, planned_per_s) <= 1:
        return None
    return float(f"{arrived / seconds:.3g}")


def side(mean_ms: float, prediction: DeployedPrediction, tolerance: float) -> Side:
    """Return the side of `mean_ms` relative to the predicted range with `tolerance`."""
    low_ms, high_ms = prediction.expected_range_ms
    if mean_ms < low_ms * (1 - tolerance):
        return "below"
    return "above" if mean_ms > high_ms * (1 + tolerance) else "within"


def allowed(prediction: DeployedPrediction) -> float | None:
    """Return the share of requests that may exceed the SLO; None without a promise.

    A plan whose whole range is above the SLO was deployed without a promise.
    """
    slo_ms, promised = prediction.slo_ms, prediction.promised
    if slo_ms is None or promised is None or promised.low_ms > slo_ms:
        return None
    return 1 - promised.percentile / 100


def by_slo(slo_ms: float, percentile: float) -> DeployedPrediction:
    """Return a prediction that bounds requests by the SLO alone, for any mean."""
    within = Within(percentile=percentile, ms=slo_ms, low_ms=0.0, high_ms=slo_ms)
    return DeployedPrediction(
        latency_ms=slo_ms, low_ms=0.0, high_ms=UNBOUNDED_MS, within=within, cpus=0, slo_ms=slo_ms
    )


def concluded(windows: Sequence[Window], prediction: DeployedPrediction, rules: Rules) -> str:
    """Return a sentence on the mean of `windows`, which is no reason to adapt."""
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
    """The state after the windows so far."""

    #: The side of the last conclusive window, and how many in a row were on that side.
    side: Side = "within"
    run: int = 0
    #: Adaptations since the latency was in range; each window in range subtracts one.
    attempts: int = 0
    #: The number of windows to wait before the next adaptation, which grows with the attempts.
    #: Drift that a new plan does not correct, such as load, then causes no endless adaptations.
    pause: int = 0
    #: If the side is ``late``: the requests of those windows, and the late requests among them.
    timed: int = 0
    late: int = 0
    #: Whether more requests are late than chance explains.
    broken: bool = False

    def seen(self, window: Window, prediction: DeployedPrediction, rules: Rules) -> Record:
        """Return the record after one more window."""
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
        """Return the record after an adaptation, whatever its result."""
        attempts = self.attempts + 1
        pause = rules.windows * (2 ** min(attempts, _DOUBLINGS) - 1)
        return Record(attempts=attempts, pause=pause)

    def drifted(self, rules: Rules) -> bool:
        """Return whether enough windows in a row were outside, on one side."""
        return self.run >= rules.windows and (self.side != "late" or self.broken)


@dataclass(frozen=True)
class Served:
    """The serving version, for the comparison with a new plan."""

    #: The prediction of its plan; None without a prediction.
    prediction: DeployedPrediction | None = None
    #: The present mean latency, if it differs from the prediction.
    took_ms: float | None = None
    #: Whether it has broken its SLO although the mean latency is as predicted.
    late: bool = False
    #: Whether its annotations name the same functions, and the same options of its plan.
    same_source: bool = False
    same_asked: bool = False
    #: The latency that a switch would add.
    hop_ms: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """Whether to switch to a new plan, and the reason."""

    switch: bool
    why: str


def judge(served: Served, plan: Plan, rules: Rules) -> Verdict:
    """Return whether `plan` should replace the `served` version.

    A plan with equal CPUs, equal code and about the same predicted latency does not: two profiles
    of one function always differ a little. A plan with more CPUs has to be faster.

    Raises ``slo-missed`` if `plan` would replace it but misses the SLO, unless ``best_effort``.
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


def other_slo(
    asked: DeploymentRequest, deployed: DeployedPrediction, *, own_percentile: bool
) -> str | None:
    """Return why a version `deployed` for another SLO or a lower rate is not what is `asked`.

    Return None if it is. Without its `own_percentile`, `asked` gets that of the version.
    """
    percentile, per_s = asked.choices.percentile, asked.load.per_s if asked.load else None
    if deployed.slo_ms not in (None, asked.slo_ms):
        slo = f"the SLO is {asked.slo_ms:g} ms"
        return f"{slo}, and what serves was deployed for {deployed.slo_ms:g} ms"
    if own_percentile and deployed.within and deployed.within.percentile != percentile:
        slo = f"the SLO is for {percentile:g} % of requests"
        return f"{slo}, and what serves was deployed for {deployed.within.percentile:g} %"
    if per_s is not None and per_s > (deployed.per_s or 0.0):
        before = f"{deployed.per_s:g}/s" if deployed.per_s else "single requests"
        return f"the rate is {per_s:g}/s, and what serves was deployed for {before}"
    return None


def asked_now(
    request: DeploymentRequest,
    serves: DeployedPrediction | None,
    windows: Sequence[Window],
    *,
    own_percentile: bool,
) -> DeploymentRequest:
    """Return `request` with the rate and the percentile of the next plan.

    A `request` without a load gets the load of the plan that `serves`. Without its `own_percentile`
    it gets that plan's percentile. The rate is the arrival rate in the last `windows`, if that is
    surely higher.
    """
    load, choices = request.load, request.choices
    if serves is not None:
        if load is None and serves.under_load is not None:
            load = serves.under_load.load
        if not own_percentile and serves.within is not None:
            choices = choices.model_copy(update={"percentile": serves.within.percentile})
    if load is not None and load.per_s is not None:
        more = exceeding_per_s(windows, load.per_s)
        load = load.model_copy(update={"per_s": more}) if more else load
    return replace(request, load=load, choices=choices)
