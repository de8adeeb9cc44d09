"""Memory of the sandboxes: while nothing is asked of them, and the most while requests run."""

from __future__ import annotations

import threading
import time

from evaluation.bench.bench import Bench, Placed
from evaluation.bench.settings import Scale
from evaluation.measurements.rounds import Measurement, Round, Session
from generator.measure import checked_invoke
from workflow.documents import Document
from workflow.errors import ChironError

#: What a look at an idle variant and the last request take, for the forecast.
_AROUND_S = 0.3


class MemorySample(Document):
    """Memory of all sandboxes of a variant in MiB, every page once; None where unseen.

    ``busy_mib`` has forked processes that are there during a request alone.
    """

    idle_mib: float | None = None
    busy_mib: float | None = None


def _seconds(scale: Scale, variants: int) -> float:
    return scale.memory_rounds * variants * (scale.memory_s + _AROUND_S)


def _sample(session: Session, number: int) -> dict[str, MemorySample]:
    bench, busy_s = session.bench, session.scale.memory_s
    return {label: _looks(bench, placed, busy_s) for label, placed in bench.turns(number)}


def _looks(bench: Bench, placed: Placed, busy_s: float) -> MemorySample:
    idle = placed.meter.memory_mib()
    if idle is None:
        return MemorySample()
    busy = _while_busy(bench, placed, busy_s)
    return MemorySample(idle_mib=round(idle, 3), busy_mib=round(max(idle, *busy), 3))


def _while_busy(bench: Bench, placed: Placed, seconds: float) -> list[float]:
    """Looks for so many seconds while another thread sends one request after another."""
    enough = threading.Event()
    failures: list[ChironError] = []

    def send() -> None:
        try:
            while not enough.is_set():
                checked_invoke(placed.deployment, bench.body, bench.check)
        except ChironError as error:
            failures.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        found: list[float] = []
        end = time.monotonic() + seconds
        while not found or time.monotonic() < end:
            found.append(placed.meter.memory_mib() or 0.0)
    finally:
        enough.set()
        sender.join()
    if failures:
        raise failures[0]
    return found


MEMORY: Measurement[MemorySample] = Measurement(
    "memory", Round[MemorySample], lambda scale: scale.memory_rounds, _seconds, _sample
)
