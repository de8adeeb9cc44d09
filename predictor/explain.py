"""Where the time of a stage goes, along the task that the stage waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from predictor.plan_timeline import WrapTimeline
from predictor.simulator import Span
from workflow.documents import Document
from workflow.plan import Prediction


class Parts(Document):
    """What a latency is made of, in milliseconds.

    ``startup_ms`` is until the task's thread can run: forks or dispatch, and the start of threads;
    ``gather_ms`` collects the results of processes.
    """

    network_ms: float = 0.0
    startup_ms: float = 0.0
    computing_ms: float = 0.0
    blocked_ms: float = 0.0
    wait_gil_ms: float = 0.0
    wait_core_ms: float = 0.0
    gather_ms: float = 0.0


class StageExplanation(Document):
    """What a stage waits for: the last task of the last process of the last wrap, and its parts."""

    stage: int
    latency_ms: float
    wrap: str
    process: int
    task: str | None
    parts: Parts


class Explanation(Document):
    """A prediction and where its time goes; ``request_ms`` is the request's own way and back."""

    format: int = 1
    prediction: Prediction
    request_ms: float
    stages: tuple[StageExplanation, ...]


_PART_OF_KIND = {
    "cpu": "computing_ms",
    "native": "computing_ms",
    "block": "blocked_ms",
    "wait-gil": "wait_gil_ms",
    "start": "startup_ms",
    "started": "startup_ms",
    "join": "computing_ms",
}


def explain(timeline: Sequence[WrapTimeline]) -> list[StageExplanation]:
    """The explanation of every stage; the parts of each sum up to its latency."""
    stages = groupby(timeline, key=lambda wrap: wrap.stage)
    return [_stage(max(wraps, key=lambda wrap: wrap.end_ms)) for _, wraps in stages]


def _stage(wrap: WrapTimeline) -> StageExplanation:
    process = max(range(len(wrap.ends_ms)), key=wrap.ends_ms.__getitem__)
    own = [span for span in wrap.spans if span.process == process and span.kind != "helper"]
    last = max((s for s in own if s.thread >= 0), key=lambda s: s.end_ms, default=None)
    path = [] if last is None else list(_path(own, last.thread))
    parts = dict.fromkeys(Parts.model_fields, 0.0)
    parts["network_ms"] = wrap.network_ms
    parts["gather_ms"] = wrap.gather_ms
    parts["startup_ms"] = wrap.starts_ms[process]
    for part, duration_ms in path:
        parts[part] += duration_ms
    return StageExplanation(
        stage=wrap.stage,
        latency_ms=round(wrap.end_ms - wrap.start_ms + wrap.network_ms, 4),
        wrap=wrap.wrap,
        process=process,
        task=None if last is None else wrap.tasks[process][last.thread],
        parts=Parts(**{name: round(duration_ms, 4) for name, duration_ms in parts.items()}),
    )


def _path(spans: Sequence[Span], thread: int) -> Iterator[tuple[str, float]]:
    """What the starter did until it started `thread`, and what that did then."""
    own = [span for span in spans if span.thread == thread]
    begins_ms = min(span.start_ms for span in own)
    before = [s for s in spans if s.thread < 0 and s.end_ms <= begins_ms]
    for span in (*before, *own):
        part = _PART_OF_KIND[span.kind]
        if span.thread < 0 and part == "computing_ms":
            part = "startup_ms"
        yield part, span.end_ms - span.start_ms - span.wait_core_ms
        yield "wait_core_ms", span.wait_core_ms
