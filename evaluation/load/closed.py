"""Closed loop: so many clients, each of which sends its next request when the last is answered."""

from __future__ import annotations

import asyncio
import math
import time

from evaluation.load.client import Client, RequestError
from workflow.documents import Document

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
    """Requests answered per second, those counted whose answer came within the `seconds`.

    They begin when every client has had its first answer, or its first failure: before that not
    all of them are at it.
    """
    window = _Window(clients, seconds)
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
                if window.begin < now < window.end:
                    latencies_ms.append((now - start) * 1000)
            if first:
                first = False
                window.one_more()

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


class _Window:
    """The time that counts: opens, for so many seconds, once all clients have begun."""

    def __init__(self, clients: int, seconds: float) -> None:
        self.begin = self.end = math.inf
        self._missing = clients
        self._seconds = seconds

    def one_more(self) -> None:
        """Another client has had its first answer."""
        self._missing -= 1
        if self._missing == 0:
            self.begin = time.perf_counter()
            self.end = self.begin + self._seconds


async def _failure(client: Client) -> str | None:
    """What went wrong with a request; None where nothing did."""
    try:
        await client.request()
    except RequestError as error:
        return str(error)
    return None
