"""One request at a time: latencies and CPU time, and the memory of sandboxes, idle and busy."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from chiron.deployment.measure import checked_invoke, weighted_cycle
from chiron.evaluation.bench.bench import DeployedVariant
from chiron.evaluation.bench.rounds import Measurement, Round, Session
from chiron.evaluation.bench.traffic import held_bytes, stored_bytes
from chiron.generator.stores import StorePlace
from chiron.workflow.documents import Document

Looked = TypeVar("Looked")
#: For the forecast, in seconds: a request (the mean of runs on two cores), and the reading of an
#: idle variant with the last request.
_REQUEST_S, _AROUND_S = 0.09, 0.3


class RequestsSample(Document):
    """A block of requests, one after another; ``cpu_s`` is None if no sandbox is visible."""

    latencies_ms: tuple[float, ...]
    cpu_s: float | None = None


class MemorySample(Document):
    """Memory of a variant's sandboxes in MiB, every page once; None if they are not visible.

    ``busy_mib`` includes forked processes that exist only during a request.
    """

    idle_mib: float | None = None
    busy_mib: float | None = None


class HeldSample(Document):
    """The mean size in MB of objects in wraps and Redis while requests run one after another.

    None if the wraps do not report it.
    """

    mean_mb: float | None = None


def _requests(session: Session, deployed: DeployedVariant) -> RequestsSample:
    bench, meter = session.bench, deployed.meter
    before = meter.cpu_s() if meter else 0.0
    latencies = [
        checked_invoke(deployed.deployment, payload.content, check)
        for payload, check in bench.requests(session.round, session.scale.block)
    ]
    seen = round(meter.cpu_s() - before, 4) if meter else None
    return RequestsSample(latencies_ms=tuple(round(ms, 3) for ms in latencies), cpu_s=seen)


def _memory(session: Session, deployed: DeployedVariant) -> MemorySample:
    if deployed.meter is None:
        return MemorySample()
    idle = deployed.meter.memory_mib()
    busy = _while_busy(session, deployed, session.scale.memory_s, deployed.meter.memory_mib)
    return MemorySample(idle_mib=round(idle, 3), busy_mib=round(max(idle, *busy), 3))


def _held(store: StorePlace, session: Session, deployed: DeployedVariant) -> HeldSample:
    url, names = session.bench.url, deployed.deployment.names
    empty = stored_bytes(store) or 0.0

    def look() -> float | None:
        in_wraps, in_store = held_bytes(url, names), stored_bytes(store) or 0.0
        return None if in_wraps is None else in_wraps + max(0.0, in_store - empty)

    looks = _while_busy(session, deployed, session.scale.held_s, look)
    seen = [each for each in looks if each is not None]
    return HeldSample(mean_mb=round(statistics.fmean(seen) / 1e6, 4) if seen else None)


def _while_busy(
    session: Session, deployed: DeployedVariant, seconds: float, look: Callable[[], Looked]
) -> list[Looked]:
    """Return results of `look` over `seconds`, while a thread sends one request after another."""
    bench, enough = session.bench, threading.Event()

    def send() -> None:
        for payload, check in weighted_cycle(bench.checked):
            if enough.is_set():
                return
            checked_invoke(deployed.deployment, payload.content, check)

    with ThreadPoolExecutor(1) as thread:
        sender = thread.submit(send)
        try:
            found: list[Looked] = []
            end = time.monotonic() + seconds
            while not found or time.monotonic() < end:
                found.append(look())
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


def held(store: StorePlace) -> Measurement[HeldSample]:
    """Return the measurement of the objects in the wraps and in `store`."""
    return Measurement(
        "held",
        Round[HeldSample],
        lambda scale: scale.memory_rounds,
        lambda scale, variants: scale.memory_rounds * variants * (scale.held_s + _AROUND_S),
        partial(_held, store),
    )
