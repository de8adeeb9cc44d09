"""Many requests at once: as many as go through (closed loop), or at a given rate (open loop)."""

from __future__ import annotations

import asyncio
import math
import time

from evaluation.load.client import FEWEST, Client, RequestError
from workflow.documents import Document

#: Pause after a failure, so that refused clients do not spin.
_AFTER_FAILURE_S = 0.02
#: Requests under way at most; what arrives beyond is dropped, since a client has an end, too.
MOST_UNDER_WAY = 32


class ClosedSample(Document):
    """What one variant answered while `clients` clients were at it.

    ``counted`` is how many answers came within the time that counts, None in runs of before.
    ``cpu_ms`` is the CPU time of a request by part, the client's among them, over all that were
    answered, those before and after the time that counts included; None where it is not to be seen.
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
        """Whether they are too few for a figure."""
        return self.counted is not None and self.counted < FEWEST


async def closed_loop(client: Client, clients: int, seconds: float, most_s: float) -> ClosedSample:
    """Requests answered per second, those counted whose answer came while the window was open.

    It opens when every client has had its first answer, or its first failure: before that not all
    of them are at it. It closes after so many `seconds`, or later, with the answer that makes them
    enough for a figure, but after `most_s` at the latest.
    """
    window = _Window(clients, seconds, most_s)
    latencies_ms: list[float] = []
    errors: list[str] = []
    answered = 0

    async def one() -> None:
        nonlocal answered
        first = True
        while (start := time.perf_counter()) < window.end:
            error = await _failure(client)
            now = time.perf_counter()
            if error is not None:
                errors.append(error)
                await asyncio.sleep(_AFTER_FAILURE_S)
            else:
                answered += 1
                if window.begin < now <= window.end:
                    latencies_ms.append((now - start) * 1000)
                    window.counted(len(latencies_ms), now)
            if first:
                first = False
                window.one_more()

    await asyncio.gather(*(one() for _ in range(clients)))
    ordered = sorted(latencies_ms)
    return ClosedSample(
        clients=clients,
        per_s=round(len(ordered) / (window.end - window.begin), 3),
        answered=answered,
        counted=len(ordered),
        p50_ms=round(ordered[len(ordered) // 2], 3) if ordered else None,
        p95_ms=round(ordered[int(0.95 * (len(ordered) - 1))], 3) if ordered else None,
        errors=len(errors),
        error=errors[0] if errors else None,
    )


class _Window:
    """The time that counts: opens once all clients have begun."""

    def __init__(self, clients: int, seconds: float, most_s: float) -> None:
        self.begin = self.end = math.inf
        self._missing = clients
        self._seconds, self._most_s = seconds, most_s

    def one_more(self) -> None:
        """Another client has had its first answer."""
        self._missing -= 1
        if self._missing == 0:
            self.begin = time.perf_counter()
            self.end = self.begin + max(self._seconds, self._most_s)

    def counted(self, count: int, now: float) -> None:
        """The answer of this number came `now`."""
        if count == FEWEST:
            self.end = max(now, self.begin + self._seconds)


async def _failure(client: Client) -> str | None:
    """What went wrong with a request; None where nothing did."""
    try:
        await client.request()
    except RequestError as error:
        return str(error)
    return None


class OpenSample(Document):
    """What one variant answered while requests arrived at `per_s`.

    A latency counts from when the request was due, not from when it could be sent, so that a
    client that falls behind hides nothing.
    """

    per_s: float
    arrived: int
    dropped: int
    errors: int
    latencies_ms: tuple[float, ...]


async def open_loop(client: Client, per_s: float, seconds: float) -> OpenSample:
    """Requests due every 1 / `per_s` seconds for so many `seconds`; waits for their answers."""
    arrived = max(1, round(per_s * seconds))
    begin = time.perf_counter()
    latencies_ms: list[float] = []
    failed = 0
    dropped = 0
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
