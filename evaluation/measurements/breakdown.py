"""Divides the time of a request into parts, by the wraps' timelines (X-Chiron-Trace)."""

from __future__ import annotations

from collections.abc import Iterable

from chiron.evaluation.bench.bench import DeployedVariant
from chiron.evaluation.bench.rounds import Measurement, Round, Session
from chiron.workflow.documents import Document
from chiron.workflow.timeline import Timeline

#: The duration of a traced request, for the forecast.
_TRACE_S = 0.1
Times = tuple[float, float]


class Breakdown(Document):
    """The parts of a traced request in milliseconds, which add up to ``latency_ms``."""

    latency_ms: float
    #: The time in which at least one handler runs.
    functions_ms: float
    #: The time in which no handler runs, but a process or thread is being started.
    starting_ms: float
    #: The other time inside a wrap: gathering and sending results, calling other wraps.
    wrap_ms: float
    #: The time between the client and the wraps: connection, gateway, HTTP.
    outside_ms: float
    #: Not a part: the sum of the handlers' waiting times for a core.
    waiting_ms: float
    #: Not a part: the sum of the handlers' times, parallel or not.
    work_ms: float


def break_down(latency_ms: float, timelines: Iterable[Timeline]) -> Breakdown:
    """Return the parts of a request that took `latency_ms`.

    `timelines` has the timelines of all wraps that the client called, by the client's clock.
    """
    runs, starts, inside = list[Times](), list[Times](), list[Times]()
    waiting = 0.0
    for timeline in timelines:
        for span in timeline.of_kind("task", "start"):
            times = (span.start_ms, span.end_ms)
            (runs if span.kind == "task" else starts).append(times)
            inside.append((timeline.arrived_ms, span.end_ms))
            waiting += span.wait_core_ms
    functions = covered(runs)
    either = covered([*runs, *starts])
    within = min(latency_ms, covered([*inside, *runs, *starts]))
    return Breakdown(
        latency_ms=round(latency_ms, 3),
        functions_ms=round(functions, 3),
        starting_ms=round(either - functions, 3),
        wrap_ms=round(within - either, 3),
        outside_ms=round(latency_ms - within, 3),
        waiting_ms=round(waiting, 3),
        work_ms=round(sum(end - start for start, end in runs), 3),
    )


def covered(spans: Iterable[Times]) -> float:
    """Return the length of the union of `spans`."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _traced(session: Session, deployed: DeployedVariant) -> tuple[Breakdown, ...]:
    """Return the parts of `scale.traces` traced requests, after one request to warm up."""
    requests = session.bench.requests(session.round, session.scale.traces)
    answers = [
        deployed.deployment.invoke(payload.content, trace=True)
        for payload, _ in [requests[0], *requests]
    ]
    return tuple(break_down(answer.latency_ms, answer.timelines) for answer in answers[1:])


BREAKDOWN: Measurement[tuple[Breakdown, ...]] = Measurement(
    "breakdown",
    Round[tuple[Breakdown, ...]],
    lambda _: 1,
    lambda scale, variants: variants * (1 + scale.traces) * _TRACE_S,
    _traced,
)
