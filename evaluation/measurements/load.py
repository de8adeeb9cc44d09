"""Many requests at once: as many as go through (closed loop), and at given rates (open loop)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from evaluation.bench.bench import Bench, Placed
from evaluation.bench.settings import Scale
from evaluation.load.arrivals import OpenSample, open_loop
from evaluation.load.client import Client, RequestError, client_of
from evaluation.load.closed import ClosedSample, closed_loop
from evaluation.measurements.rounds import Measurement, Round, Session

#: What a sample takes longer, for the forecast: until all clients have begun and ended, and until
#: the last of the most requests that may be under way is answered.
_CLOSED_MORE_S, _OPEN_MORE_S = 0.5, 1.0
Closed = tuple[ClosedSample, ...]
Open = tuple[OpenSample, ...]


def _closed(session: Session, number: int) -> dict[str, Closed]:
    bench, scale = session.bench, session.scale
    return {
        label: asyncio.run(_closed_levels(bench, placed, scale))
        for label, placed in bench.turns(number)
    }


async def _closed_levels(bench: Bench, placed: Placed, scale: Scale) -> Closed:
    async with client_of(bench.url, placed.route, bench.body, bench.check) as client:
        return tuple([await _closed_level(client, placed, n, scale) for n in scale.clients])


async def _closed_level(client: Client, placed: Placed, clients: int, scale: Scale) -> ClosedSample:
    """A sample with the CPU time of its requests."""
    before = placed.around.cpu_s(placed.meter)
    sample = await closed_loop(client, clients, scale.closed_s)
    after = placed.around.cpu_s(placed.meter)
    if not before or not after or not sample.answered:
        return sample
    used_ms = {part: 1000 * (after[part] - before[part]) / sample.answered for part in before}
    rounded = {part: round(each, 3) for part, each in used_ms.items()}
    return sample.model_copy(update={"cpu_ms": rounded})


def _open(session: Session, number: int) -> dict[str, Open]:
    bench, scale = session.bench, session.scale
    rates = [share * peak_per_s(session.out) for share in scale.rates]
    return {
        label: asyncio.run(_open_rates(bench, placed, rates, scale.open_s))
        for label, placed in bench.turns(number)
    }


async def _open_rates(bench: Bench, placed: Placed, rates: list[float], seconds: float) -> Open:
    """A sample for every rate, up to the first that is too high."""
    samples: list[OpenSample] = []
    async with client_of(bench.url, placed.route, bench.body, bench.check) as client:
        for rate in rates:
            samples.append(await open_loop(client, rate, seconds))
            if samples[-1].dropped or samples[-1].errors:
                break
        try:
            await client.request()  # what is still queued is served before it
        except RequestError:
            return tuple(samples)
    return tuple(samples)


def peak_per_s(out: Path) -> float:
    """The highest throughput that any variant has reached in the closed loop; 1 without one."""
    samples = [
        s for row in CLOSED.journal(out).rows() for each in row.samples.values() for s in each
    ]
    return max((sample.per_s for sample in samples), default=0.0) or 1.0


def _closed_rounds(scale: Scale) -> int:
    return scale.closed_rounds


def _open_rounds(scale: Scale) -> int:
    return scale.open_rounds


def _closed_seconds(scale: Scale, variants: int) -> float:
    level_s = scale.closed_s + _CLOSED_MORE_S
    return scale.closed_rounds * variants * len(scale.clients) * level_s


def _open_seconds(scale: Scale, variants: int) -> float:
    return scale.open_rounds * variants * len(scale.rates) * (scale.open_s + _OPEN_MORE_S)


CLOSED: Measurement[Closed] = Measurement(
    "closed-loop", Round[Closed], _closed_rounds, _closed_seconds, _closed
)
OPEN: Measurement[Open] = Measurement("open-loop", Round[Open], _open_rounds, _open_seconds, _open)
