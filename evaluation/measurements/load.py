"""Concurrent requests: by a number of clients (closed loop), or at a given rate (open loop)."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

from chiron.deployment.measure import weighted_cycle
from chiron.evaluation.bench.bench import DeployedVariant
from chiron.evaluation.bench.rounds import Measurement, Round, Session
from chiron.evaluation.bench.settings import Scale
from chiron.evaluation.measurements.client import FEWEST, Client, RequestError, client_of
from chiron.workflow.documents import Document

#: The pause after a failure, so that refused clients do not spin.
_AFTER_FAILURE_S = 0.02
#: The most concurrent requests of the open loop; further arrivals are dropped to bound the client.
MOST_UNDER_WAY = 32
#: The additional seconds of a sample, for the forecast. Closed loop: until all clients have begun
#: and ended. Open loop: until `MOST_UNDER_WAY` requests are answered.
_CLOSED_MORE_S, _OPEN_MORE_S = 0.5, 1.0
#: The best variant's throughput as a multiple of a typical variant's, for the forecast.
_BEST = 1.4


class ClosedSample(Document):
    """The answers of one variant to `clients` clients.

    ``counted`` is the number of answers within the window, None in older runs. ``cpu_ms`` is the
    CPU time of a request by part, including the client, over all answers, also outside the window.
    It is None if the sandboxes are not visible.
    """

    clients: int
    per_s: float
    answered: int
    counted: int | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    errors: int
    error: str | None = None
    cpu_ms: dict[str, float] | None = None

    @property
    def too_few(self) -> bool:
        """Whether the window has too few answers for a figure."""
        return self.counted is not None and self.counted < FEWEST


async def closed_loop(client: Client, clients: int, seconds: float, most_s: float) -> ClosedSample:
    """Measure the answers per second of `clients` clients, counting answers within a window.

    The window opens when every client has had its first answer or failure: before that, not all
    clients send. It closes after `seconds`, or later with the answer `FEWEST`, but after `most_s`
    seconds at the latest.
    """
    begin = end = math.inf
    latencies_ms: list[float] = []
    errors: list[str] = []
    answered, waiting = 0, clients

    async def one() -> None:
        nonlocal answered, waiting, begin, end
        first = True
        while (start := time.perf_counter()) < end:
            try:
                await client.request()
            except RequestError as error:
                errors.append(str(error))
                await asyncio.sleep(_AFTER_FAILURE_S)
            else:
                now = time.perf_counter()
                answered += 1
                if begin < now <= end:
                    latencies_ms.append((now - start) * 1000)
                    if len(latencies_ms) == FEWEST:
                        end = max(now, begin + seconds)
            if first:
                first, waiting = False, waiting - 1
                if not waiting:
                    begin = time.perf_counter()
                    end = begin + max(seconds, most_s)

    await asyncio.gather(*(one() for _ in range(clients)))
    ordered = sorted(latencies_ms)
    return ClosedSample(
        clients=clients,
        per_s=round(len(ordered) / (end - begin), 3),
        answered=answered,
        counted=len(ordered),
        p50_ms=round(ordered[len(ordered) // 2], 3) if ordered else None,
        p95_ms=round(ordered[int(0.95 * (len(ordered) - 1))], 3) if ordered else None,
        errors=len(errors),
        error=errors[0] if errors else None,
    )


class OpenSample(Document):
    """The answers of one variant to requests that arrived at the rate `per_s`.

    A latency counts from the time at which the request was due, not from its sending. So a client
    that falls behind hides nothing.
    """

    per_s: float
    arrived: int
    dropped: int
    errors: int
    latencies_ms: tuple[float, ...]


async def open_loop(client: Client, per_s: float, seconds: float) -> OpenSample:
    """Send a request every 1 / `per_s` seconds for `seconds`, and wait for all answers."""
    arrived = max(1, round(per_s * seconds))
    begin = time.perf_counter()
    latencies_ms: list[float] = []
    failed = dropped = 0
    under_way: set[asyncio.Task[None]] = set()

    async def one(due: float) -> None:
        nonlocal failed
        try:
            await client.request()
            latencies_ms.append(round((time.perf_counter() - due) * 1000, 3))
        except RequestError:
            failed += 1

    for number in range(arrived):
        due = begin + number / per_s
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if len(under_way) >= MOST_UNDER_WAY:
            dropped += 1
            continue
        task = asyncio.create_task(one(due))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    return OpenSample(
        per_s=round(per_s, 3),
        arrived=arrived,
        dropped=dropped,
        errors=failed,
        latencies_ms=tuple(latencies_ms),
    )


Closed = tuple[ClosedSample, ...]
Open = tuple[OpenSample, ...]


def _client(session: Session, deployed: DeployedVariant) -> AbstractAsyncContextManager[Client]:
    bench, route = session.bench, deployed.deployment.invoker.route
    return client_of(bench.url, route, weighted_cycle(bench.checked))


def _closed(session: Session, deployed: DeployedVariant) -> Closed:
    async def levels() -> Closed:
        scale = session.scale
        async with _client(session, deployed) as client:
            return tuple([await _level(client, deployed, n, scale) for n in scale.clients])

    return asyncio.run(levels())


async def _level(
    client: Client, deployed: DeployedVariant, clients: int, scale: Scale
) -> ClosedSample:
    """Return a sample with the CPU time of its requests."""
    meter, other_meters = deployed.meter, deployed.other_meters
    before = other_meters.cpu_s(meter) if meter else {}
    sample = await closed_loop(client, clients, scale.closed_s, scale.most_s)
    if meter is None or not sample.answered:
        return sample
    after = other_meters.cpu_s(meter)
    used_ms = {part: 1000 * (after[part] - before[part]) / sample.answered for part in before}
    rounded = {part: round(each, 3) for part, each in used_ms.items()}
    return sample.model_copy(update={"cpu_ms": rounded})


def _open(session: Session, deployed: DeployedVariant) -> Open:
    """Return a sample for every rate, up to the first rate with dropped or failed requests."""
    scale, peak = session.scale, peak_per_s(session.out)

    async def rates() -> Open:
        samples: list[OpenSample] = []
        async with _client(session, deployed) as client:
            for rate in (share * peak for share in scale.rates):
                samples.append(await open_loop(client, rate, _window_s(scale, scale.open_s, rate)))
                if samples[-1].dropped or samples[-1].errors:
                    break
            with suppress(RequestError):
                await client.request()  # returns after the requests that are still queued
        return tuple(samples)

    return asyncio.run(rates())


def _window_s(scale: Scale, seconds: float, per_s: float) -> float:
    """Return the seconds in which `FEWEST` requests arrive, within `seconds` and `scale.most_s`."""
    return max(seconds, min(scale.most_s, FEWEST / per_s))


def peak_per_s(out: Path) -> float:
    """Return the highest throughput of any variant in the closed loop; 1 if there is none."""
    rows = CLOSED.journal(out).rows()
    found = [sample.per_s for row in rows for each in row.samples.values() for sample in each]
    return max(found, default=0.0) or 1.0


def _closed_seconds(scale: Scale, variants: int) -> float:
    level_s = _window_s(scale, scale.closed_s, scale.per_s) + _CLOSED_MORE_S
    return scale.closed_rounds * variants * len(scale.clients) * level_s


def _open_seconds(scale: Scale, variants: int) -> float:
    rates = [share * _BEST * scale.per_s for share in scale.rates]
    rates_s = sum(_window_s(scale, scale.open_s, rate) + _OPEN_MORE_S for rate in rates)
    return scale.open_rounds * variants * rates_s


CLOSED: Measurement[Closed] = Measurement(
    "closed-loop", Round[Closed], lambda scale: scale.closed_rounds, _closed_seconds, _closed
)
OPEN: Measurement[Open] = Measurement(
    "open-loop", Round[Open], lambda scale: scale.open_rounds, _open_seconds, _open
)
