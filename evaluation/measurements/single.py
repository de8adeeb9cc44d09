"""One request at a time: latencies and CPU time; and the sandboxes' memory, idle and meanwhile."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from deployment.measure import checked_invoke, in_turn
from evaluation.bench.bench import Placed
from evaluation.bench.rounds import Measurement, Round, Session
from evaluation.bench.usage import Sandboxes
from workflow.documents import Document

#: For the forecast: what a request takes (the mean of runs on two cores), and what a look at an
#: idle variant and the last request take.
_REQUEST_S, _AROUND_S = 0.09, 0.3


class RequestsSample(Document):
    """A block of requests, one after another; ``cpu_s`` is None where it is not to be seen."""

    latencies_ms: tuple[float, ...]
    cpu_s: float | None = None


class MemorySample(Document):
    """Memory of all sandboxes of a variant in MiB, every page once; None where unseen.

    ``busy_mib`` has forked processes that are there during a request alone.
    """

    idle_mib: float | None = None
    busy_mib: float | None = None


def _requests(session: Session, placed: Placed) -> RequestsSample:
    bench, meter = session.bench, placed.meter
    before = meter.cpu_s() if meter else 0.0
    latencies = [
        checked_invoke(placed.deployment, payload.content, check)
        for payload, check in bench.requests(session.round, session.scale.block)
    ]
    seen = round(meter.cpu_s() - before, 4) if meter else None
    return RequestsSample(latencies_ms=tuple(round(ms, 3) for ms in latencies), cpu_s=seen)


def _memory(session: Session, placed: Placed) -> MemorySample:
    if placed.meter is None:
        return MemorySample()
    idle = placed.meter.memory_mib()
    busy = _while_busy(session, placed, placed.meter)
    return MemorySample(idle_mib=round(idle, 3), busy_mib=round(max(idle, *busy), 3))


def _while_busy(session: Session, placed: Placed, meter: Sandboxes) -> list[float]:
    """Looks at the memory while another thread sends one request after another."""
    bench, enough = session.bench, threading.Event()

    def send() -> None:
        for payload, check in in_turn(bench.checked):
            if enough.is_set():
                return
            checked_invoke(placed.deployment, payload.content, check)

    with ThreadPoolExecutor(1) as thread:
        sender = thread.submit(send)
        try:
            found: list[float] = []
            end = time.monotonic() + session.scale.memory_s
            while not found or time.monotonic() < end:
                found.append(meter.memory_mib())
        finally:
            enough.set()
        sender.result()
    return found


REQUESTS: Measurement[RequestsSample] = Measurement(
    "requests",
    Round[RequestsSample],
    lambda scale: -(-scale.requests // scale.block),
    lambda scale, _: scale.requests_s,
    _requests,
    lambda scale, variants: min(scale.requests_s, scale.requests * variants * _REQUEST_S),
)
MEMORY: Measurement[MemorySample] = Measurement(
    "memory",
    Round[MemorySample],
    lambda scale: scale.memory_rounds,
    lambda scale, variants: scale.memory_rounds * variants * (scale.memory_s + _AROUND_S),
    _memory,
)
