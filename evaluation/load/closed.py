"""Closed loop: so many clients, each of which sends its next request when the last is answered."""

from __future__ import annotations

import asyncio
import time

from evaluation.load.client import Client, RequestError
from workflow.documents import Document

#: Seconds before the first that count: connections open, threads start.
WARM_UP_S = 0.3
#: Pause after a failure, so that refused clients do not spin.
_AFTER_FAILURE_S = 0.02


class ClosedSample(Document):
    """What one variant answered while `clients` clients were at it.

    ``cpu_ms`` is the CPU time of a request by part, the client's among them, over all that were
    answered, those before and after the time that counts included; None where it is not to be seen.
    """

    clients: int
    per_s: float
    answered: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    errors: int
    error: str | None = None
    cpu_ms: dict[str, float] | None = None


async def closed_loop(client: Client, clients: int, seconds: float) -> ClosedSample:
    """Requests answered per second, those counted whose answer came within the `seconds`."""
    begin = time.perf_counter() + WARM_UP_S
    end = begin + seconds
    latencies_ms: list[float] = []
    errors: list[str] = []
    answered = 0

    async def one() -> None:
        nonlocal answered
        while (start := time.perf_counter()) < end:
            try:
                await client.request()
            except RequestError as error:
                errors.append(str(error))
                await asyncio.sleep(_AFTER_FAILURE_S)
                continue
            answered += 1
            now = time.perf_counter()
            if begin <= now < end:
                latencies_ms.append((now - start) * 1000)

    await asyncio.gather(*(one() for _ in range(clients)))
    ordered = sorted(latencies_ms)
    return ClosedSample(
        clients=clients,
        per_s=round(len(ordered) / seconds, 3),
        answered=answered,
        p50_ms=round(ordered[len(ordered) // 2], 3) if ordered else None,
        p95_ms=round(ordered[int(0.95 * (len(ordered) - 1))], 3) if ordered else None,
        errors=len(errors),
        error=errors[0] if errors else None,
    )
