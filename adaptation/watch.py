"""The loop of `chiron watch`: look, and where the deployment has drifted, plan anew and switch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from adaptation.candidate import deploy_beside
from adaptation.events import Event, Tell
from adaptation.latency import Latencies, Wait
from adaptation.red_black import SWITCH_S, RedBlack
from adaptation.rules import Record, Rules, Window, worth_switching
from adaptation.version import SOURCE, Serving, serving, source_of
from generator.generate import Sources
from generator.launcher import Launcher
from predictor.predict import predict
from profiler.calibrate import calibrate
from services.deployment import DeploymentRequest, find_plan
from workflow.errors import ChironError
from workflow.plan import Plan
from workflow.profile import Profile


@dataclass
class Watcher:
    """Keeps one workflow at its SLO.

    What is deployed it reads from the gateway, so that it can be ended and started at any time,
    and a failed adaptation leaves the version serving that served before.

    Attributes
    ----------
    request
        The workflow and its SLO; its platform is measured once where it has none. Its model is
        one that has an entry to switch: any but ``one-to-one``.
    profile
        Profiles the workflow's functions.
    wait
        Lets so many seconds pass.
    out
        Where profile.json, platform.json, plan.json and build/ of the last plan are written.
    switch_s
        How long the entry may take to become a new version.
    """

    request: DeploymentRequest
    launcher: Launcher
    latencies: Latencies
    profile: Callable[[], Profile]
    rules: Rules
    wait: Wait
    tell: Tell
    out: Path
    switch_s: float = SWITCH_S
    _tried: datetime = field(init=False, default=datetime.min.replace(tzinfo=UTC))

    def run(self, *, once: bool = False) -> None:
        """Watch until interrupted; `once` ends with the first verdict.

        Raises
        ------
        ChironError
            Whatever keeps a workflow from being deployed that was not; with `once`, all else that
            fails. Otherwise a failure is an event, and the next look comes after a window.
        """
        if self._serving() is None:
            self._adapt("it is not deployed")
            if once:
                return
        record = Record()
        for look in count(1):
            try:
                reason, record = self._look(record)
                if reason:
                    record = record.attempted(self.rules)
                    self._adapt(reason)
            except (ChironError, OSError) as error:
                if once:
                    raise
                self.tell(Event("failed", f"{error}; what serves goes on serving"))
                self.wait(self.rules.window_s)
            else:
                if once and (reason or look == self.rules.windows):
                    return

    def _look(self, record: Record) -> tuple[str | None, Record]:
        """Why to adapt now, or None; takes a window where only that can tell."""
        current = self._serving()
        if current:
            self._red_black.settle(current)
        if not record.pause and (reason := self._standing_reason(current)):
            return reason, record
        if current is None or current.promise is None:
            self.wait(self.rules.window_s)
            return None, replace(record, pause=max(0, record.pause - 1))
        promise = current.promise
        window = self.latencies.window(current.entry.name, self.rules.window_s)
        record = record.seen(window, promise, self.rules)
        expected = f"{promise.low_ms:.1f} to {promise.high_ms:.1f} ms"
        self.tell(_window_event(window, expected, record))
        if record.drifted(self.rules):
            return f"{window.mean_ms:.1f} ms is outside the {expected} predicted", record
        return None, record

    def _standing_reason(self, current: Serving | None) -> str | None:
        """Why to adapt whatever the latency is."""
        if current is None:
            return "it is not deployed"
        if current.promise is None:
            return "what serves promises no latency"
        last = max(self._tried, current.since or self._tried)
        every_s = self.rules.every_s
        if every_s is not None and datetime.now(UTC) - last >= timedelta(seconds=every_s):
            return f"the last profile is older than {every_s:g} s"
        return None

    def _adapt(self, reason: str) -> None:
        """Plan anew; where that brings something, have the new plan serve."""
        self._tried = datetime.now(UTC)
        self.tell(Event("adapting", f"profiling and planning, as {reason}", {"reason": reason}))
        plan, profile = self._plan()
        sources = Sources.read(self.request.folder)
        source = source_of(sources, self.request)
        current = self._serving()
        promise = current.promise if current else None
        same = current is None or current.entry.annotations.get(SOURCE, source) == source
        why = worth_switching(promise, plan, self.rules, same_source=same)
        if why is None:
            self.tell(Event("unchanged", "the new plan brings nothing: what serves stays"))
            return
        self.tell(_plan_event(plan, why))
        expected = self.request.expected(profile)
        build = self.out / "build"
        candidate = deploy_beside(self.launcher, plan, sources, self.request, build, expected)
        p50_ms = candidate.measured.p50_ms
        message = f"version {candidate.version} answers rightly, in {p50_ms:.1f} ms"
        self.tell(Event("checked", message, {"version": candidate.version, "p50_ms": p50_ms}))
        self._red_black.switch(candidate, plan.wraps[0].name, current)

    @property
    def _red_black(self) -> RedBlack:
        return RedBlack(self.launcher.gateway, self.wait, self.tell, self.switch_s)

    def _plan(self) -> tuple[Plan, Profile]:
        if self.request.platform is None:
            platform = calibrate(self.launcher, predict=predict, progress=self._step)
            self.request = replace(self.request, platform=platform)
        request = replace(self.request, profile=self.profile())
        return find_plan(request, self.launcher, self.out, self._step)

    def _serving(self) -> Serving | None:
        workflow, model = self.request.folder.workflow.name, self.request.choices.model
        return serving(self.launcher.gateway, workflow, model)

    def _step(self, line: str) -> None:
        self.tell(Event("step", line))


def _window_event(window: Window, expected: str, record: Record) -> Event:
    if not window.requests:
        message = "no requests"
    else:
        message = f"{window.requests} requests in {window.mean_ms:.1f} ms (predicted: {expected})"
    figures = {"requests": window.requests, "mean_ms": round(window.mean_ms, 3)}
    return Event("window", message, figures | {"outside": record.run, "pause": record.pause})


def _plan_event(plan: Plan, why: str) -> Event:
    predicted_ms = plan.predicted.latency_ms if plan.predicted else 0.0
    met = "meets" if plan.meets_slo else "does NOT meet"
    message = f"{why}: {len(plan.wraps)} wraps, {predicted_ms:.1f} ms, which {met} the SLO"
    figures = {"cpus": plan.cpus, "latency_ms": predicted_ms, "meets_slo": plan.meets_slo}
    return Event("planned", message, figures)
