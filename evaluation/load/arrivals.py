"""Open loop: requests arrive at a constant rate, whether the last ones are answered or not."""

from __future__ import annotations

import asyncio
import time

from evaluation.load.client import Client, RequestError
from workflow.documents import Document

#: Requests under way at most; what arrives beyond is dropped, since a client has an end, too.
MOST_UNDER_WAY = 32


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
