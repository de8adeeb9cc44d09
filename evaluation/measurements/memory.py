"""Memory of the sandboxes: while nothing is asked of them, and the most while requests run."""

from __future__ import annotations

import statistics
import threading

from evaluation.bench.bench import Bench, Placed
from evaluation.measurements.rounds import Measurement, Round, Session
from generator.measure import checked_invoke
from workflow.documents import Document
from workflow.errors import ChironError

#: Looks at idle sandboxes, and looks while requests run.
_IDLE_LOOKS, _BUSY_LOOKS = 3, 12


class MemorySample(Document):
    """Memory of all sandboxes of a variant in MiB, every page once; None where unseen.

    ``busy_mib`` has forked processes that are there during a request alone.
    """

    idle_mib: float | None = None
    busy_mib: float | None = None


def _sample(session: Session, number: int) -> dict[str, MemorySample]:
    return {label: _looks(session.bench, each) for label, each in session.bench.turns(number)}


def _looks(bench: Bench, placed: Placed) -> MemorySample:
    idle = [mib for _ in range(_IDLE_LOOKS) if (mib := placed.meter.memory_mib()) is not None]
    if not idle:
        return MemorySample()
    busy = _while_busy(bench, placed)
    return MemorySample(
        idle_mib=round(statistics.median(idle), 3), busy_mib=round(max(*idle, *busy), 3)
    )


def _while_busy(bench: Bench, placed: Placed) -> list[float]:
    """Looks while another thread sends one request after another."""
    enough = threading.Event()
    failures: list[ChironError] = []

    def send() -> None:
        try:
            while not enough.is_set():
                checked_invoke(placed.deployment, bench.body, bench.expected)
        except ChironError as error:
            failures.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        found = [mib for _ in range(_BUSY_LOOKS) if (mib := placed.meter.memory_mib()) is not None]
    finally:
        enough.set()
        sender.join()
    if failures:
        raise failures[0]
    return found


MEMORY: Measurement[MemorySample] = Measurement(
    "memory", Round[MemorySample], lambda scale: scale.memory_rounds, _sample
)
