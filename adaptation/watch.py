"""The loop of `chiron watch`: measures the deployment, and plans anew and switches after drift."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chiron.adaptation.alone import deploying
from chiron.adaptation.blue_green import SWITCH_S, BlueGreen, repair
from chiron.adaptation.events import Event, Tell
from chiron.adaptation.latency import Latencies, Wait
from chiron.adaptation.rules import (
    Record,
    Rules,
    Served,
    Window,
    asked_now,
    by_slo,
    concluded,
    exceeding_per_s,
    judge,
    other_slo,
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

#: Requests that a new version has to answer correctly, after a warm-up.
_CHECKS = 10


@dataclass(frozen=True)
class Reason:
    """Why to adapt: a mean latency in milliseconds, late requests, or a missing prediction."""

    why: str
    took_ms: float | None = None
    late: bool = False
    unpredicted: bool = False


@dataclass
class Watcher:
    """Keeps one workflow at its SLO.

    All state is read from the gateway, so a watcher can stop and start at any time. A failed
    adaptation leaves the former version serving.
    """

    #: The workflow and its SLO; a missing platform is found once. The planner must have an entry to
    #: switch: any but ``one-to-one``. Without a load, that of the serving plan counts.
    request: DeploymentRequest
    launcher: Launcher
    latencies: Latencies
    #: Profiles the workflow's functions.
    profile: Callable[[], Profile]
    rules: Rules
    #: Sleeps for that many seconds.
    wait: Wait
    tell: Tell
    #: The folder for profile.json, platform.json, plan.json and build/ of the last plan.
    out: Path
    #: The longest time for the entry to become a new version.
    switch_s: float = SWITCH_S
    #: Whether the user chose the request's percentile; else the serving plan's percentile counts.
    own_percentile: bool = True
    #: The last windows, as many as the rules use.
    _windows: list[Window] = field(init=False, default_factory=list)
    _tried: datetime = field(init=False, default=datetime.min.replace(tzinfo=UTC))
    #: Whether a prediction of the serving version failed for lack of something.
    _cannot_predict: bool = field(init=False, default=False)

    def run(self, *, once: bool = False) -> None:
        """Watch until interrupted; with `once`, until the first verdict.

        Raises the error of a first deployment; with `once`, every error. Other errors are events,
        and the next look comes after a window.
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
        """Emit the verdict on windows that were no reason to adapt."""
        current = self._serving()
        if current:
            message = concluded(self._windows, self._held_against(current), self.rules)
            self.tell(Event("verdict", message, {"windows": len(self._windows)}))

    def _look(self, record: Record) -> tuple[Reason | None, Record]:
        """Return why to adapt now, or None; measure a window if the reason depends on it."""
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
        """Return a reason to adapt that does not depend on the latency."""
        if current is None:
            return Reason("it is not deployed")
        if current.prediction is None and not self._cannot_predict:
            return Reason("what serves has no prediction", unpredicted=True)
        deployed, own = current.prediction, self.own_percentile
        if deployed and (why := other_slo(self.request, deployed, own_percentile=own)):
            return Reason(why)
        last = max(self._tried, current.entry.since)
        every_s = self.rules.every_s
        if every_s is not None and datetime.now(UTC) - last >= timedelta(seconds=every_s):
            return Reason(f"the last profile is older than {every_s:g} s")
        return None

    def _held_against(self, current: Serving) -> DeployedPrediction:
        """Return the prediction of the serving version; without one, the SLO alone."""
        request = self.request
        return current.prediction or by_slo(request.slo_ms, request.choices.percentile)

    def _adapted(self, reason: Reason) -> bool:
        """Adapt; return False if that was to get a prediction, which failed."""
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
        """Plan anew, and switch to the new plan if that brings an improvement."""
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
            # A wrap that terminates waits for its requests.
            seconds = math.ceil(candidate.ready_s + client_timeout_s(current.called.env_vars))
            message = f"{name} is deployed again: nothing answers for up to {seconds} s"
            self.tell(Event("outage", message, {"seconds": seconds}))
        self._blue_green.switch(candidate, name, current, by_route=by_route)
        self._windows = []

    @property
    def _blue_green(self) -> BlueGreen:
        return BlueGreen(self.launcher.gateway, self.wait, self.tell, self.switch_s)

    def _asked(self, current: Serving | None, *, behind: bool) -> DeploymentRequest:
        """Return the request for a new plan, with a new profile."""
        platform = self._platform()
        request = replace(self.request, platform=platform, profile=self.profile(), behind=behind)
        serves = current.prediction if current else None
        return asked_now(request, serves, self._windows, own_percentile=self.own_percentile)

    def _platform(self) -> Platform:
        """Return the platform, given, kept or measured once."""
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
    """Return the serving version, for comparison with a plan that would get these `marks`."""
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
