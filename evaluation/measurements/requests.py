"""One request at a time: latencies, and the CPU time that the sandboxes used meanwhile."""

from __future__ import annotations

from evaluation.bench.bench import Bench, Placed
from evaluation.bench.settings import Scale
from evaluation.measurements.rounds import Measurement, Round, Session
from generator.measure import checked_invoke
from workflow.documents import Document


class RequestsSample(Document):
    """A block of requests, one after another; ``cpu_s`` is None where it is not to be seen."""

    latencies_ms: tuple[float, ...]
    cpu_s: float | None = None


def _rounds(scale: Scale) -> int:
    return -(-scale.requests // scale.block)


def _sample(session: Session, number: int) -> dict[str, RequestsSample]:
    bench, block = session.bench, session.scale.block
    return {label: _block(bench, placed, block) for label, placed in bench.turns(number)}


def _block(bench: Bench, placed: Placed, count: int) -> RequestsSample:
    before = placed.meter.cpu_s()
    latencies = [checked_invoke(placed.deployment, bench.body, bench.check) for _ in range(count)]
    after = placed.meter.cpu_s()
    seen = None if before is None or after is None else round(after - before, 4)
    return RequestsSample(latencies_ms=tuple(round(ms, 3) for ms in latencies), cpu_s=seen)


REQUESTS: Measurement[RequestsSample] = Measurement(
    "requests", Round[RequestsSample], _rounds, lambda scale, _: scale.requests_s, _sample
)
