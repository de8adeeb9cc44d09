"""The time of a request, explained along the tasks on its critical path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from chiron.predictor.plan_timeline import Step, plan_timeline
from chiron.predictor.predict import Predictor, predict
from chiron.predictor.speed import profile_at
from chiron.predictor.unrolling import run_of
from chiron.workflow.documents import Document
from chiron.workflow.model import Workflow
from chiron.workflow.plan import DEFAULT_PERCENTILE, Plan, Prediction
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile, Share
from chiron.workflow.timeline import Kind, Span, Timeline


class Parts(Document):
    """The parts of a latency, in milliseconds.

    ``network_ms`` is the time to trigger the task, mostly calls. ``startup_ms`` is the time until
    its thread can run: forks or dispatch, and the start of threads. ``blocked_ms`` includes waits
    for the other end of a stream. ``gather_ms`` collects its result.
    """

    network_ms: float = 0.0
    startup_ms: float = 0.0
    computing_ms: float = 0.0
    blocked_ms: float = 0.0
    wait_gil_ms: float = 0.0
    wait_core_ms: float = 0.0
    gather_ms: float = 0.0


class StepExplanation(Document):
    """A task on the critical path, from the end of the step before it, and its parts."""

    task: str
    wrap: str
    process: int
    latency_ms: float
    parts: Parts


class PayloadExplanation(Document):
    """The parts of a request's latency; ``request_ms`` is its own way and back."""

    payload: str
    weight: float
    latency_ms: float
    request_ms: float
    steps: tuple[StepExplanation, ...]


class TaskShare(Document):
    """How often a task runs if the workflow decides that at run time.

    ``requests`` is the share of requests that run it. ``runs`` is the mean number of runs a
    request. ``failed`` is the share of these runs that fail.
    """

    task: str
    requests: float
    runs: float
    failed: float


class Explanation(Document):
    """A prediction and the parts of its latency, payload by payload.

    If the workflow decides at run time, ``tasks`` are the frequencies of its tasks.
    """

    format: Literal[3] = 3
    prediction: Prediction
    payloads: tuple[PayloadExplanation, ...]
    tasks: tuple[TaskShare, ...] = ()


_PART_OF_KIND: dict[Kind, str] = {
    "cpu": "computing_ms",
    "native": "computing_ms",
    "block": "blocked_ms",
    "wait-gil": "wait_gil_ms",
    "start": "startup_ms",
    "started": "startup_ms",
    "join": "computing_ms",
    "await": "blocked_ms",
}


def explanation(
    plan: Plan,
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    percentile: float = DEFAULT_PERCENTILE,
) -> tuple[Explanation, list[Timeline]]:
    """Return the prediction of `plan`, explained, and a request's timeline for each payload.

    Raises what `chiron.predictor.predict.predict` raises.
    """
    mix = profile.mix
    found = [timed(plan, workflow, share.profile, platform) for share in mix]
    explained = Explanation(
        prediction=predict(plan, workflow, profile, platform, percentile),
        payloads=tuple(
            PayloadExplanation(
                payload=share.payload,
                weight=share.weight,
                latency_ms=round(timeline.latency_ms, 4),
                request_ms=timeline.arrived_ms,
                steps=tuple(explain(timeline, steps)),
            )
            for share, (timeline, steps) in zip(mix, found, strict=True)
        ),
        tasks=tuple(_shares(workflow, mix)) if workflow.machine is not None else (),
    )
    return explained, [timeline for timeline, _ in found]


def timed(
    plan: Plan, workflow: Workflow, profile: Profile, platform: Platform
) -> tuple[Timeline, list[Step]]:
    """Return the timeline with the one payload of `profile`, and the steps of the critical path."""
    run = run_of(workflow, profile_at(profile, platform.cpu_probe_ms))
    return plan_timeline(*run.placed(plan), Predictor(run.profile, platform))


def _shares(workflow: Workflow, mix: Sequence[Share]) -> Iterator[TaskShare]:
    total = sum(share.weight for share in mix)
    traces = [(share.profile.payloads[0].trace, share.weight / total) for share in mix]
    for task in workflow.by_name:
        each = [([i for i in trace if i.task == task], weight) for trace, weight in traces]
        runs = sum(weight * len(instances) for instances, weight in each)
        failed = sum(weight * sum(i.failed for i in instances) for instances, weight in each)
        yield TaskShare(
            task=task,
            requests=round(sum(weight for instances, weight in each if instances), 4),
            runs=round(runs, 4),
            failed=round(failed / runs, 4) if runs else 0.0,
        )


def explain(timeline: Timeline, steps: Iterable[Step]) -> list[StepExplanation]:
    """Return the steps of a request, which add up to its latency with its own way."""
    return [_explained(step, timeline) for step in steps]


def _explained(step: Step, timeline: Timeline) -> StepExplanation:
    parts = dict.fromkeys(Parts.model_fields, 0.0)
    parts["network_ms"], parts["gather_ms"] = step.network_ms, step.gather_ms
    own = [
        span
        for span in timeline.of_kind(*_PART_OF_KIND)
        if (span.wrap, span.process) == (step.wrap, step.process)
    ]
    for part, duration_ms in _path(own, step):
        parts[part] += duration_ms
    return StepExplanation(
        task=step.task,
        wrap=step.wrap,
        process=step.process,
        latency_ms=round(sum(parts.values()), 4),
        parts=Parts(**{name: round(duration_ms, 4) for name, duration_ms in parts.items()}),
    )


def _path(spans: Sequence[Span], step: Step) -> Iterator[tuple[str, float]]:
    """Yield the parts of the starter's time from the trigger on, then of the task's thread.

    While the starter does nothing, its process is starting or waiting for others.
    """
    own = [span for span in spans if span.task == step.task]
    begins_ms = min((span.start_ms for span in own), default=step.end_ms)
    started_ms = begins_ms - step.triggered_ms
    for span in spans:
        from_ms, to_ms = max(span.start_ms, step.triggered_ms), min(span.end_ms, begins_ms)
        if span.task is None and from_ms < to_ms:
            share = (to_ms - from_ms) / span.duration_ms
            started_ms -= to_ms - from_ms
            part = _PART_OF_KIND[span.kind]
            yield from _parts(span, "startup_ms" if part == "computing_ms" else part, share)
    yield "startup_ms", max(0.0, started_ms)
    for span in own:
        until_ms = min(span.end_ms, step.end_ms)
        share = max(0.0, until_ms - span.start_ms) / span.duration_ms
        yield from _parts(span, _PART_OF_KIND[span.kind], share)


def _parts(span: Span, part: str, share: float) -> Iterator[tuple[str, float]]:
    yield part, share * (span.duration_ms - span.wait_core_ms)
    yield "wait_core_ms", share * span.wait_core_ms
