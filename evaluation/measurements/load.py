"""Many requests at once: as many as go through (closed loop, once more by wrk), and at rates."""

from __future__ import annotations

import asyncio
from pathlib import Path

from evaluation.bench.bench import Placed
from evaluation.bench.rounds import Measurement, Round, Session
from evaluation.bench.settings import Scale
from evaluation.load.client import FEWEST, Client, RequestError, client_of
from evaluation.load.loops import ClosedSample, OpenSample, closed_loop, open_loop
from evaluation.load.wrk import installed, wrk_loop

#: What a sample takes longer, for the forecast: until all clients have begun and ended, until the
#: last of the most requests that may be under way is answered, until wrk has begun and ended.
_CLOSED_MORE_S, _OPEN_MORE_S, _WRK_MORE_S = 0.5, 1.0, 0.5
#: The throughput of the best variant, as a multiple of a typical one, for the forecast.
_BEST = 1.4
Closed = tuple[ClosedSample, ...]
Open = tuple[OpenSample, ...]


def _closed(session: Session, placed: Placed) -> Closed:
    async def levels() -> Closed:
        bench, scale = session.bench, session.scale
        async with client_of(bench.url, placed.route, bench.body, bench.check) as client:
            return tuple([await _level(client, placed, n, scale) for n in scale.clients])

    return asyncio.run(levels())


async def _level(client: Client, placed: Placed, clients: int, scale: Scale) -> ClosedSample:
    """A sample with the CPU time of its requests."""
    before = placed.around.cpu_s(placed.meter)
    sample = await closed_loop(client, clients, scale.closed_s, scale.most_s)
    after = placed.around.cpu_s(placed.meter)
    if not before or not after or not sample.answered:
        return sample
    used_ms = {part: 1000 * (after[part] - before[part]) / sample.answered for part in before}
    rounded = {part: round(each, 3) for part, each in used_ms.items()}
    return sample.model_copy(update={"cpu_ms": rounded})


def _open(session: Session, placed: Placed) -> Open:
    """A sample for every rate, up to the first that is too high."""
    bench, scale, peak = session.bench, session.scale, peak_per_s(session.out)

    async def rates() -> Open:
        samples: list[OpenSample] = []
        async with client_of(bench.url, placed.route, bench.body, bench.check) as client:
            for rate in (share * peak for share in scale.rates):
                samples.append(await open_loop(client, rate, _window_s(scale, scale.open_s, rate)))
                if samples[-1].dropped or samples[-1].errors:
                    break
            try:
                await client.request()  # what is still queued is served before it
            except RequestError:
                return tuple(samples)
        return tuple(samples)

    return asyncio.run(rates())


def _by_wrk(session: Session, placed: Placed) -> ClosedSample | None:
    """Is our client in the way? wrk calls one URL, so one-to-one is left out."""
    if placed.plan.orchestrator == "client":
        return None
    bench, scale, known = session.bench, session.scale, session.bench.expected
    exact = known.output if known and not (known.varies or known.any_order) else None
    function, clients = placed.plan.wraps[0].name, scale.clients[-1]
    return wrk_loop(bench.url, function, bench.body, exact, clients, closed_window_s(scale))


def _window_s(scale: Scale, seconds: float, per_s: float) -> float:
    """How long a window of at least so many `seconds` is in which so many requests arrive."""
    return max(seconds, min(scale.most_s, FEWEST / per_s))


def closed_window_s(scale: Scale) -> float:
    """How long a window of the closed loop typically is."""
    return _window_s(scale, scale.closed_s, scale.per_s)


def peak_per_s(out: Path) -> float:
    """The highest throughput that any variant has reached in the closed loop; 1 without one."""
    rows = CLOSED.journal(out).rows()
    found = [sample.per_s for row in rows for each in row.samples.values() for sample in each]
    return max(found, default=0.0) or 1.0


def _closed_seconds(scale: Scale, variants: int) -> float:
    level_s = closed_window_s(scale) + _CLOSED_MORE_S
    return scale.closed_rounds * variants * len(scale.clients) * level_s


def _open_seconds(scale: Scale, variants: int) -> float:
    rates = [share * _BEST * scale.per_s for share in scale.rates]
    rates_s = sum(_window_s(scale, scale.open_s, rate) + _OPEN_MORE_S for rate in rates)
    return scale.open_rounds * variants * rates_s


def _wrk_rounds(scale: Scale) -> int:
    return scale.checks if installed() else 0


def _wrk_seconds(scale: Scale, variants: int) -> float:
    return _wrk_rounds(scale) * variants * (max(1.0, closed_window_s(scale)) + _WRK_MORE_S)


CLOSED: Measurement[Closed] = Measurement(
    "closed-loop", Round[Closed], lambda scale: scale.closed_rounds, _closed_seconds, _closed
)
OPEN: Measurement[Open] = Measurement(
    "open-loop", Round[Open], lambda scale: scale.open_rounds, _open_seconds, _open
)
CHECK: Measurement[ClosedSample] = Measurement(
    "closed-loop-wrk", Round[ClosedSample], _wrk_rounds, _wrk_seconds, _by_wrk
)
