"""The loop of `chiron watch`: look, and where the deployment has drifted, plan anew and switch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chiron.adaptation.alone import deploying
from chiron.adaptation.asked import asked_now
from chiron.adaptation.blue_green import SWITCH_S, BlueGreen, repair
from chiron.adaptation.events import Event, Tell
from chiron.adaptation.latency import Latencies, Wait
from chiron.adaptation.rules import (
    Record,
    Rules,
    Served,
    Window,
    by_slo,
    concluded,
    exceeding_per_s,
    judge,
    with_window,
)
from chiron.adaptation.version import Serving, deploy_beside, serving
from chiron.deployment.launcher import Launcher
from chiron.deployment.measure import measure
from chiron.generator.annotations import ASKED, SOURCE, DeployedPrediction
from chiron.generator.settings import client_timeout_s
from chiron.pipeline.deploy import DeploymentRequest, checked_sources, find_plan
from chiron.profiler.kept_platform import platform_of
from chiron.workflow.documents import held
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile
from chiron.workflow.tracing import KEY_ANNOTATION

#: Requests that a new version has to answer rightly, after a warm-up.
_CHECKS = 10


@dataclass(frozen=True)
class Reason:
    """Why to adapt: what requests took in the mean, in milliseconds, that too many were late, or
    that nothing is predicted of what serves, where that is why."""

    why: str
    took_ms: float | None = None
    late: bool = False
    unpredicted: bool = False


@dataclass
class Watcher:
    """Keeps one workflow at its SLO.

    What is deployed it reads from the gateway, so that it can be ended and started at any time,
    and a failed adaptation leaves the version serving that served before.
    """

    #: The workflow and its SLO; its platform is found once where it has none. Its planner is
    #: one that has an entry to switch: any but ``one-to-one``. Without a load it is for that of the
    #: plan that serves.
    request: DeploymentRequest
    launcher: Launcher
    latencies: Latencies
    #: Profiles the workflow's functions.
    profile: Callable[[], Profile]
    rules: Rules
    #: Lets so many seconds pass.
    wait: Wait
    tell: Tell
    #: Where profile.json, platform.json, plan.json and build/ of the last plan are written.
    out: Path
    #: How long the entry may take to become a new version.
    switch_s: float = SWITCH_S
    #: Whether the percentile of the request was asked for; else that of the plan that serves holds.
    own_percentile: bool = True
    #: The last windows, as many as the rules look at.
    _windows: list[Window] = field(init=False, default_factory=list)
    _tried: datetime = field(init=False, default=datetime.min.replace(tzinfo=UTC))
    #: Whether something was missing when what serves was to get a prediction.
    _cannot_predict: bool = field(init=False, default=False)

    def run(self, *, once: bool = False) -> None:
        """Watch until interrupted; `once` ends with the first verdict.

        Raises whatever keeps a workflow from being deployed that was not; with `once`, all else
        that fails. Otherwise a failure is an event, and the next look comes after a window.
        """
        if self._serving() is None:
            self._adapt(Reason("it is not deployed"))
            if once:
                return
        record, looks = Record(), 0
        while True:
            try:
                reason, record = self._look(record)
                looks += reason is None
                if reason:
                    before, record = record, record.attempted(self.rules)
                    if not self._adapted(reason):
                        reason, record = None, before
            except (ChironError, OSError) as error:
                if once:
                    raise
                self.tell(Event("failed", f"{error}; what serves goes on serving"))
                self.wait(self.rules.window_s)
            else:
                if once and reason:
                    return
                if once and looks == self.rules.windows:
                    self._conclude()
                    return

    def _conclude(self) -> None:
        """Tell what the windows came to, none of which was a reason to adapt."""
        current = self._serving()
        if current:
            message = concluded(self._windows, self._held_against(current), self.rules)
            self.tell(Event("verdict", message, {"windows": len(self._windows)}))

    def _look(self, record: Record) -> tuple[Reason | None, Record]:
        """Why to adapt now, or None; takes a window where only that can tell."""
        current = self._serving()
        if current:
            repair(self.launcher.gateway, current, self.tell)
            self._blue_green.settle(current)
        if not record.pause and (reason := self._standing_reason(current)):
            return reason, record
        if current is None:
            self.wait(self.rules.window_s)
            return None, replace(record, pause=max(0, record.pause - 1))
        prediction = self._held_against(current)
        name, seconds = current.called.name, self.rules.window_s
        latest = self.latencies.window(name, seconds, prediction.slo_ms)
        self._windows = with_window(self._windows, latest, self.rules)
        window = self._windows[-1]
        record = record.seen(window, prediction, self.rules)
        self.tell(_window_event(window, prediction.expected_shown, record, self.rules))
        if record.drifted(self.rules):
            is_late = record.side == "late"
            why = f"{window.mean_ms:.1f} ms is outside the {prediction.expected_shown} predicted"
            if is_late:
                why = f"{record.late} of {record.timed} requests took longer than the SLO"
            took_ms = None if is_late else window.mean_ms
            more = prediction.per_s and exceeding_per_s(self._windows, prediction.per_s)
            why += f"; {more:g}/s arrive" if more else ""
            why += (
                "; the prediction is unreliable: chiron list says why"
                if prediction.warnings
                else ""
            )
            return Reason(why, took_ms, is_late), record
        return None, record

    def _standing_reason(self, current: Serving | None) -> Reason | None:
        """Why to adapt whatever the latency is."""
        if current is None:
            return Reason("it is not deployed")
        if current.prediction is None and not self._cannot_predict:
            return Reason("what serves has no prediction", unpredicted=True)
        deployed_ms = current.prediction.slo_ms if current.prediction else None
        if deployed_ms not in (None, self.request.slo_ms):
            slo = f"the SLO is {self.request.slo_ms:g} ms"
            return Reason(f"{slo}, and what serves was deployed for {deployed_ms:g} ms")
        last = max(self._tried, current.entry.since)
        every_s = self.rules.every_s
        if every_s is not None and datetime.now(UTC) - last >= timedelta(seconds=every_s):
            return Reason(f"the last profile is older than {every_s:g} s")
        return None

    def _held_against(self, current: Serving) -> DeployedPrediction:
        """The prediction of what serves, or the SLO alone if there is none."""
        request = self.request
        return current.prediction or by_slo(request.slo_ms, request.choices.percentile)

    def _adapted(self, reason: Reason) -> bool:
        """Adapt; False if that was to get a prediction and something for it is missing."""
        try:
            self._adapt(reason)
        except (ChironError, OSError) as error:
            if not reason.unpredicted:
                raise
            self._cannot_predict = True
            self.tell(Event("unpredicted", f"no prediction: {error}; the SLO alone counts"))
            return False
        return True

    def _adapt(self, reason: Reason) -> None:
        """Plan anew; where that brings something, have the new plan serve."""
        with held(self.out), deploying(self.launcher.gateway, self.request.folder.workflow.name):
            self._adapt_by(reason)

    def _adapt_by(self, reason: Reason) -> None:
        self._tried = datetime.now(UTC)
        told = f"profiling and planning, as {reason.why}"
        self.tell(Event("adapting", told, {"reason": reason.why}))
        current = self._serving()
        outage = current is not None and self.launcher.gateway.info().removes_first
        by_route = outage and not self.rules.allow_outage
        sources = checked_sources(self.request, self.launcher, self._step)
        request = self._asked(current, behind=by_route)
        plan, profile = find_plan(request, self.launcher, self.out, self._step)
        marks = request.marks(sources)
        served = _served(current, marks, reason) if current else Served()
        if current and by_route and not current.behind:
            served = replace(served, hop_ms=self._platform().rpc_ms)
        verdict = judge(served, plan, self.rules)
        if not verdict.switch:
            self.tell(Event("unchanged", f"{verdict.why}: what serves stays"))
            return
        self.tell(_plan_event(plan, verdict.why))
        checked = request.checked(profile, self._step)
        build = self.out / "build"
        key = current.called.annotations.get(KEY_ANNOTATION) if current else None
        candidate = deploy_beside(
            *(self.launcher, plan, sources, request, build),
            lambda invoker: measure(invoker, checked, _CHECKS, warm_up_s=sources.warm_up_s),
            key,
            current=current,
        )
        p50_ms = candidate.measured.p50_ms
        figures = {
            "version": candidate.version,
            "p50_ms": p50_ms,
            "others": candidate.measured.others,
        }
        message = f"version {candidate.version} answers rightly, in {p50_ms:.1f} ms"
        busy = candidate.measured.busy
        self.tell(Event("checked", f"{message}; {busy}" if busy else message, figures))
        name = plan.wraps[0].name
        if current and outage and not by_route:
            # A wrap that is told to end waits for the requests that it has.
            seconds = math.ceil(candidate.ready_s + client_timeout_s(current.called.env_vars))
            message = f"{name} is deployed again: nothing answers for up to {seconds} s"
            self.tell(Event("outage", message, {"seconds": seconds}))
        self._blue_green.switch(candidate, name, current, by_route=by_route)
        self._windows = []

    @property
    def _blue_green(self) -> BlueGreen:
        return BlueGreen(self.launcher.gateway, self.wait, self.tell, self.switch_s)

    def _asked(self, current: Serving | None, *, behind: bool) -> DeploymentRequest:
        """What is asked of a new plan, with a new profile."""
        platform = self._platform()
        request = replace(self.request, platform=platform, profile=self.profile(), behind=behind)
        serves = current.prediction if current else None
        return asked_now(request, serves, self._windows, own_percentile=self.own_percentile)

    def _platform(self) -> Platform:
        """What the gateway costs, found once."""
        request = self.request
        platform = platform_of(request.platform, request.platforms, self.launcher, self._step)
        self.request = replace(request, platform=platform)
        return platform

    def _serving(self) -> Serving | None:
        workflow, planner = self.request.folder.workflow.name, self.request.choices.planner
        return serving(self.launcher.gateway, workflow, planner)

    def _step(self, line: str) -> None:
        self.tell(Event("step", line))


def _served(current: Serving, marks: Mapping[str, str], reason: Reason) -> Served:
    """What serves, as a plan that would get these `marks` is compared with it."""
    its = current.entry.annotations
    same_source, same_asked = (its.get(key) == marks[key] for key in (SOURCE, ASKED))
    return Served(current.prediction, reason.took_ms, reason.late, same_source, same_asked)


def _window_event(window: Window, expected: str, record: Record, rules: Rules) -> Event:
    message = f"{window.requests or 'no'} requests"
    if window.looks > 1:
        message += f" of {window.looks} windows"
    if window.requests:
        message += f" in {window.mean_ms:.1f} ms in the mean (predicted: {expected})"
    if window.seconds:
        message += f", {window.arrived / window.seconds:.3g}/s"
    if window.timed:
        message += f", {window.late} of {window.timed} over the SLO"
    if 0 < window.requests < rules.fewest:
        message += f"; fewer than {rules.fewest} tell nothing, so the window grows"
    figures = {"requests": window.requests, "mean_ms": round(window.mean_ms, 3)}
    figures |= {"timed": window.timed, "late": window.late}
    return Event("window", message, figures | {"outside": record.run, "pause": record.pause})


def _plan_event(plan: Plan, why: str) -> Event:
    predicted = DeployedPrediction.of(plan)
    warnings = predicted.warnings if predicted else ()
    judged_ms = predicted.judged_ms if predicted else 0.0
    met = "meets" if plan.meets_slo else "does NOT meet"
    wraps = f"{len(plan.wraps)} wrap{'s' * (len(plan.wraps) > 1)}"
    shown = predicted.shown if predicted else "-"
    message = f"{why}: {wraps}, which {met} the SLO (predicted ms: {shown})"
    figures = {
        "cpus": plan.allocated_cpus,
        "latency_ms": judged_ms if math.isfinite(judged_ms) else None,
        "meets_slo": plan.meets_slo,
        "warnings": warnings,
    }
    return Event("planned", "; ".join((message, *warnings)), figures)
