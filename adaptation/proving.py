"""The verb `deploy` with its proof: deploys and measures plans until a plan keeps the SLO.

`candidates` takes a few plans by their predictions. The first serves once it is deployed. A later
plan is deployed beside it, and takes over if it is better. A version that served before stays until
a plan is measured to keep the SLO.
"""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from chiron.adaptation.blue_green import BlueGreen
from chiron.adaptation.candidates import Exceeding, Outcome, Predicted, Search, is_worth_a_switch
from chiron.adaptation.events import Event
from chiron.adaptation.residuals import Residuals
from chiron.adaptation.version import Candidate, Serving, deploy_beside, serving
from chiron.deployment.background_load import disturbance
from chiron.deployment.deploy import Progress, remove_all, removed_on_failure
from chiron.deployment.invoke import Answer, Invoker
from chiron.deployment.launcher import Launcher
from chiron.deployment.measure import Invokable, Measurement
from chiron.deployment.verdict import Trial
from chiron.generator.settings import client_timeout_s
from chiron.pipeline.deploy import (
    DeploymentReport,
    DeploymentRequest,
    Prepared,
    Try,
    deploy,
    plan_for,
    prepare,
    scheduling_inputs,
)
from chiron.scheduler.options import Job, Option
from chiron.scheduler.pareto import considered, preferred
from chiron.scheduler.planners import PLANNERS, searched
from chiron.scheduler.replicas import assess_load, considered_load
from chiron.scheduler.schedule import assess, job_of
from chiron.scheduler.strategies import memory_mib
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan
from chiron.workflow.profile import LONGEST_MS
from chiron.workflow.tracing import KEY_ANNOTATION

#: The default number of plans tried at most.
TRIES = 5
#: Time limits of the search for other plans, without and with a load, in seconds.
_SEARCH_S, _LOADED_S = 2.0, 10.0
#: Rough time to build and deploy a plan, in seconds.
_DEPLOYING_S = 3.0


def deploy_proven(
    request: DeploymentRequest,
    launcher: Launcher,
    out: Path,
    progress: Progress,
    tries: int | None = TRIES,
) -> DeploymentReport:
    """Deploy the cheapest plan that is measured to keep the SLO, of at most `tries` plans.

    If no plan keeps it, deploy the best measured plan, or keep the version that served before. With
    `tries` None, deploy the plan that is predicted to keep the SLO, even if measured otherwise. The
    files are those of `chiron.pipeline.deploy`, and residuals.json.

    Raises the first plan's error; nothing stays half-deployed.
    """
    if tries is None:
        return deploy(request, launcher, out, progress)
    prepared = prepare(request, launcher, out, progress)
    workflow, planner = request.folder.workflow.name, request.choices.planner
    has_entry = PLANNERS[planner].orchestrator != "client"
    former = serving(launcher.gateway, workflow, planner) if has_entry else None
    _tell_of_rate(request, former, progress)
    by_route = former is not None and launcher.gateway.info().removes_first
    if by_route:
        prepared = replace(prepared, request=replace(request, behind=True))
    return _Proof(prepared, launcher, out, progress, former, by_route).run(tries)


def _tell_of_rate(request: DeploymentRequest, former: Serving | None, progress: Progress) -> None:
    """Warn if a plan for single requests is to replace a serving plan for a rate."""
    serves = former.prediction if former else None
    if request.load is None and serves is not None and serves.per_s is not None:
        rate = f"{serves.per_s:g}/s"
        progress(
            f"warning: what serves is planned for {rate}, and this is for single requests: add "
            f"--rate {rate} to keep that"
        )


@dataclass(frozen=True)
class Behind:
    """A target behind an entry that forwards requests to it, which adds `hop_ms`."""

    target: Invokable
    hop_ms: float

    def invoke(self, request: bytes) -> Answer:
        """Return the target's answer, with `hop_ms` added to its latency."""
        answer = self.target.invoke(request)
        return replace(answer, latency_ms=answer.latency_ms + self.hop_ms)


@dataclass(frozen=True)
class _Tried:
    """A plan that was tried, and the result; None if the plan does not work."""

    plan: Plan
    shown: Try
    measured: Measurement | None
    outcome: Outcome


@dataclass
class _Proof:
    """Tries plans on one gateway; `former` is the version that serves before, if any."""

    prepared: Prepared
    launcher: Launcher
    out: Path
    progress: Progress
    former: Serving | None
    by_route: bool
    #: The functions deployed here if nothing served before; removed if the proof is cut short.
    created: list[str] = field(default_factory=list)
    tried: list[_Tried] = field(default_factory=list)
    tries_each: int = 1
    #: The index in `tried` of the serving plan; None for the former version, or none.
    serves: int | None = None

    def run(self, tries: int) -> DeploymentReport:
        """Try at most `tries` plans, and return the report."""
        plans, predicted = self._plans
        self.tries_each = max(1, tries // len(plans))
        residuals = Residuals.of(self.out, self.prepared.profile, self.prepared.platform)
        slo_ms = self.prepared.request.slo_ms
        search = Search(predicted, slo_ms, tries, residuals.known(self._trial))
        self.progress(_announced(min(tries, len(plans)), self._trial, predicted[0].latency_ms))
        with removed_on_failure(self.launcher.gateway, self.created):
            while (number := search.next(self._outcomes)) is not None:
                self._try(number, search)
            at = datetime.now(UTC).isoformat(timespec="seconds")
            learned = [(e.plan, e.shown) for e in self.tried if e.outcome.measured_ms]
            residuals.write(learned, self._trial, at)
            return self._report()

    @cached_property
    def _job(self) -> Job:
        prepared = self.prepared
        return job_of(*scheduling_inputs(prepared.request, prepared.profile, prepared.platform))

    @cached_property
    def _plans(self) -> tuple[list[Plan], list[Predicted]]:
        """The plans that may be tried, the preferred first, and their predictions."""
        prepared, request = self.prepared, self.prepared.request
        scheduled = plan_for(request, prepared.profile, prepared.platform, self.progress)
        ms, low_ms = _judged(scheduled, self._percentile)
        found, choices = [Option(scheduled, ms, fits=True)], request.choices
        if request.load is not None:
            what = self._job, choices, request.load, request.slo_ms
            options = preferred([*found, *considered_load(*what, _LOADED_S)], choices.strategy)
            plans = [each.plan for each in options]
            # The range's relative width is nearly the same for all plans, and takes seconds.
            each_ms = [(each.judged_ms, each.judged_ms * low_ms / ms) for each in options]
        else:
            if searched(choices.planner):
                found += considered(self._job, choices.mechanism, _SEARCH_S)
            plans = [
                scheduled if each.plan is scheduled else self._finished(each.plan)
                for each in preferred(found, choices.strategy)
            ]
            each_ms = [_judged(plan, self._percentile) for plan in plans]
        cpus = [plan.allocated_cpus for plan in plans]
        return plans, [Predicted(n, *each) for n, each in zip(cpus, each_ms, strict=True)]

    def _finished(self, plan: Plan) -> Plan:
        """Return `plan` with its prediction, under the load if there is a load."""
        request = self.prepared.request
        if request.load is None:
            return assess(plan, self._job, request.slo_ms)
        return (
            plan if plan.under_load else assess_load(plan, self._job, request.slo_ms, request.load)
        )

    @property
    def _outcomes(self) -> list[Outcome]:
        return [each.outcome for each in self.tried]

    @property
    def _percentile(self) -> float:
        return self.prepared.request.choices.percentile

    @property
    def _trial(self) -> Trial:
        return replace(self.prepared.request.trial, tries=self.tries_each)

    def _try(self, number: int, search: Search) -> None:
        """Deploy and measure the plan of this number; let it serve if it is the best so far."""
        plans, predicted = self._plans
        plan, trial = plans[number], self._trial
        expected_ms = search.expected_ms(number, self._outcomes)
        shown = f"{expected_ms:.1f} ms" if expected_ms < LONGEST_MS else "a queue without end"
        self.progress(f"trying {_shape(plan)}: {shown} expected")
        plan = self._finished(plan) if self.prepared.request.load else plan
        first = self.former is None and not self.tried
        try:
            if first:
                measured = self._stand(plan, trial, expected_ms)
            else:
                measured = self._stand_beside(plan, trial, expected_ms)
            came = {
                "measured_ms": trial.latency_ms,
                "requests": measured.samples,
                "over": trial.over,
                "late": trial.late,
                "others": measured.others,
                "verdict": trial.verdict,
                "said": _said(trial, measured),
            }
        except ChironError as error:
            if not self.tried:
                raise
            measured, came = None, {"said": f"does not work: {error.message}"}
            self.progress(f"does not work: {error.message}")
        tried = Try(
            cpus=plan.allocated_cpus,
            wraps=len(plan.wraps),
            memory_mib=memory_mib(plan),
            mechanism=plan.mechanisms,
            predicted_ms=round(predicted[number].latency_ms, 3),
            expected_ms=round(expected_ms, 3),
            verdict="failed",
            said="",
        ).model_copy(update=came)
        measured_ms = trial.learned_ms if measured else None
        outcome = Outcome(number, tried.verdict == "kept", measured_ms)
        self.tried.append(_Tried(plan, tried, measured, outcome))

    def _stand(self, plan: Plan, trial: Trial, expected_ms: float) -> Measurement:
        """Deploy the first plan, which serves from now on, and measure it."""
        deployed = self.prepared.deployed(plan, self.launcher, self.out, self.progress)
        with deployed as (invoker, created):
            self.progress(f"{plan.wraps[0].name} answers; measuring it")
            measured = self._measure(invoker, plan, trial, expected_ms)
            self.serves = 0
            self.created += created
        return measured

    def _stand_beside(self, plan: Plan, trial: Trial, expected_ms: float) -> Measurement:
        """Deploy a plan beside the serving version and measure it; switch if it is better."""
        hop_ms = self.prepared.platform.rpc_ms if self.by_route else 0.0

        def check(invoker: Invoker) -> Measurement:
            return self._measure(Behind(invoker, hop_ms), plan, trial, expected_ms)

        gateway = self.launcher.gateway
        current = serving(gateway, plan.workflow, plan.planner)
        key = current.called.annotations.get(KEY_ANNOTATION) if current and self.by_route else None
        what = self.launcher, plan, self.prepared.sources, self.prepared.request
        update = self.former is not None and not self.tried
        with tempfile.TemporaryDirectory(prefix="chiron-") as scratch:
            build = Path(scratch) / "build"
            candidate = deploy_beside(*what, build, check, key, current=current, update=update)
        if self.former is None:
            self.created += candidate.created
        if self._is_better(trial):
            self._switch(candidate, plan, current)
            self.serves = len(self.tried)
        else:
            remove_all(gateway, candidate.created)
        return candidate.measured

    def _measure(
        self, target: Invokable, plan: Plan, trial: Trial, expected_ms: float
    ) -> Measurement:
        measured = self.prepared.measure_until_sure(target, plan, trial, expected_ms)
        self.progress(_said(trial, measured))
        return measured

    def _is_better(self, trial: Trial) -> bool:
        """Return whether the measured plan should serve.

        A plan that keeps the SLO is only tried if it is preferred to the kept plans before it. A
        doubtful trial never causes a switch.
        """
        if trial.verdict == "kept":
            return True
        if trial.void_reason or self.serves is None or self.tried[self.serves].outcome.kept:
            return False
        found = Exceeding(trial.over / len(trial.latencies_ms), trial.latency_ms)
        return is_worth_a_switch(found, _exceeding(self.tried[self.serves].shown))

    def _switch(self, candidate: Candidate, plan: Plan, current: Serving | None) -> None:
        name = plan.wraps[0].name
        if current and not self.by_route and self.launcher.gateway.info().removes_first:
            seconds = math.ceil(candidate.ready_s + client_timeout_s(current.called.env_vars))
            self.progress(f"{name} is deployed again: nothing answers for up to {seconds} s")
        blue_green = BlueGreen(self.launcher.gateway, time.sleep, self._tell)
        blue_green.switch(candidate, name, current, by_route=self.by_route)

    def _tell(self, event: Event) -> None:
        self.progress(event.message)

    def _report(self) -> DeploymentReport:
        """Return the report; plan.json and build/ are of the serving plan, or of the best."""
        stays = self.serves is None
        works = [(each, each.measured) for each in self.tried if each.measured]
        if self.serves is not None:
            works = [each for each in works if each[0] is self.tried[self.serves]]
        tried, measured = min(works, key=lambda each: _exceeding(each[0].shown))
        if self.former or tried is not self.tried[0]:
            stack_file = self.prepared.generate(tried.plan, self.out)
            if not stays:
                self.launcher.build(stack_file)  # build/, deployed by hand, is this plan
        return DeploymentReport(
            plan=tried.plan,
            measured=measured,
            functions=() if stays else self._functions(tried.plan),
            slo_met=tried.outcome.kept,
            percentile=self._percentile,
            over=tried.shown.over,
            late=tried.shown.late,
            measured_ms=tried.shown.measured_ms or 0.0,
            tries=tuple(each.shown for each in self.tried),
        )

    def _functions(self, plan: Plan) -> tuple[str, ...]:
        """Return the functions that run `plan`, first the function that clients call."""
        current = serving(self.launcher.gateway, plan.workflow, plan.planner)
        if current is None:  # the client calls each task
            return tuple(wrap.name for wrap in plan.wraps)
        others = (each.name for each in current.wraps if each is not current.called)
        return current.called.name, *others


def _announced(count: int, trial: Trial, latency_ms: float) -> str:
    """Return how long it may take to try `count` plans, the slowest at `latency_ms`."""
    about_s = count * (trial.usual_s(latency_ms) + _DEPLOYING_S)
    plans = f"{count} plan{'s' * (count > 1)}"
    rate = f" at {trial.per_s:g}/s" if trial.per_s else ""
    most = f"requests{rate} to each end after {trial.limit_s(latency_ms):.0f} s"
    return f"proving: at most {plans}, about {about_s:.0f} s; the {most}"


def _exceeding(tried: Try) -> Exceeding:
    return Exceeding(tried.over / tried.requests, tried.measured_ms or 0.0)


def _judged(plan: Plan, percentile: float) -> tuple[float, float]:
    """Return the predicted latency that `plan` is judged by, and the low end of its range."""
    if plan.under_load is not None:
        loaded = plan.under_load.at(percentile)
        return (loaded.ms, loaded.low_ms) if loaded else (LONGEST_MS, LONGEST_MS)
    if plan.predicted is None:
        raise ValueError("a plan that was not assessed")
    return plan.predicted.judged_ms, plan.predicted.judged_range_ms[0]


def _shape(plan: Plan) -> str:
    cpus, wraps = plan.allocated_cpus, len(plan.wraps)
    replicas = sum(wrap.replicas for wrap in plan.wraps)
    more = f", {replicas} replicas," if replicas > wraps else ""
    return (
        f"{cpus} CPU{'s' * (cpus > 1)} in {wraps} wrap{'s' * (wraps > 1)}{more} by "
        f"{plan.mechanisms}"
    )


def _said(trial: Trial, measured: Measurement) -> str:
    requests, over, slo = len(trial.latencies_ms), trial.over, f"{trial.slo_ms:g} ms"
    rate = f" at {trial.per_s:g}/s" if trial.per_s else ""
    took = f"p{trial.percentile:g} {trial.latency_ms:.1f} ms{rate}, {over} of {requests} over {slo}"
    meaning = {
        "kept": "keeps the SLO",
        "broken": "breaks the SLO",
        "unsure": "not shown to keep the SLO",
    }[trial.verdict]
    parts = (f"{meaning}: {took}", trial.void_reason, disturbance(measured.others))
    return "; ".join(filter(None, parts))
