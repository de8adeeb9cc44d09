"""Where the time of a request goes, by the wraps' own timeline (X-Chiron-Trace)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from deployment.caller import Caller
from evaluation.bench.bench import Bench, Placed
from evaluation.bench.rounds import Measurement, Round, Session
from evaluation.measurements.client import Call
from workflow.data import bytes_of, resolve, text_of
from workflow.documents import Document
from workflow.tracing import Row, Traced, trace_header

#: What a traced request takes, for the forecast.
_TRACE_S = 0.1
Span = tuple[float, float]


class Breakdown(Document):
    """One traced request in milliseconds: its parts add up to ``latency_ms``."""

    latency_ms: float
    #: At least one handler runs.
    functions_ms: float
    #: No handler runs, but a process is being forked or handed its work.
    starting_ms: float
    #: Neither, inside of a wrap: gathering, passing on, calls of further wraps.
    wrap_ms: float
    #: From the client to the wraps and back: connection, gateway, HTTP.
    outside_ms: float
    #: Not a part: how long handlers waited for a core or for the GIL, over all of them.
    waiting_ms: float
    #: Not a part: the handlers' times added up, whether they ran at once or in turn.
    work_ms: float


def break_down(latency_ms: float, timelines: Iterable[tuple[float, list[Row]]]) -> Breakdown:
    """The parts of a request that took `latency_ms`.

    `timelines` has, for every wrap that the client called, when its answer's clock began on the
    client's, in milliseconds since the request, and its rows.
    """
    runs, starts, inside = list[Span](), list[Span](), list[Span]()
    waiting = 0.0
    for begin_ms, rows in timelines:
        for row in rows:
            span = (begin_ms + row["start_ms"], begin_ms + row["end_ms"])
            (runs if row["kind"] == "run" else starts).append(span)
            inside.append((begin_ms, span[1]))
            waiting += float(row.get("delayed_ms", 0.0))
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


def covered(spans: Iterable[Span]) -> float:
    """How much time at least one of `spans` covers."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _traced(session: Session, placed: Placed) -> tuple[Breakdown, ...]:
    """Traced requests over connections that the first one, left out, has opened."""
    bench, widest = session.bench, max(map(len, placed.route.stages))
    with Caller(bench.url) as caller, ThreadPoolExecutor(widest) as threads:
        count = 1 + session.scale.traces
        return tuple([_trace(bench, placed, caller, threads) for _ in range(count)][1:])


def _trace(bench: Bench, placed: Placed, caller: Caller, threads: ThreadPoolExecutor) -> Breakdown:
    """One request along its route, the calls of a stage at once."""
    headers = trace_header(placed.deployment.trace_key)
    text, outputs = text_of(bench.body), dict[str, str]()
    timelines: list[tuple[float, list[Row]]] = []
    start = time.perf_counter()

    def traced(call: Call) -> tuple[str, str]:
        begin_ms = (time.perf_counter() - start) * 1000
        body = bytes_of(resolve(call.source, text, outputs))
        reply = caller.call(call.function, body, headers)
        answer: Traced = json.loads(reply.body)
        rows = answer["timeline"]
        # The wrap's clock starts when it has the request: half of what is not inside of it.
        ended_ms = max((row["end_ms"] for row in rows), default=0.0)
        timelines.append((begin_ms + (reply.latency_ms - ended_ms) / 2, rows))
        return call.task, answer["output"]

    for stage in placed.route.stages:
        outputs |= dict(threads.map(traced, stage))
    return break_down((time.perf_counter() - start) * 1000, timelines)


BREAKDOWN: Measurement[tuple[Breakdown, ...]] = Measurement(
    "breakdown",
    Round[tuple[Breakdown, ...]],
    lambda _: 1,
    lambda scale, variants: variants * (1 + scale.traces) * _TRACE_S,
    _traced,
)
