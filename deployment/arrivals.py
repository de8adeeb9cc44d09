"""Requests that arrive at random, independent of answers to earlier requests (open loop)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from queue import SimpleQueue
from random import Random
from threading import Event
from typing import NamedTuple

from chiron.deployment.caller import CONNECTIONS

#: The most requests of the first second to leave out, while queues and replicas warm up.
_WARM_UP = 100
#: The seed of the arrivals: measurements of several plans have the same arrivals.
_SEED = "arrivals"

#: Sends a request; returns the name of its payload and its latency in milliseconds.
Call = Callable[[], tuple[str, float]]


class SentRequest(NamedTuple):
    """A request: its payload, its latency, and how late it was sent.

    The latency counts from the due time, so that a client that falls behind hides nothing.
    """

    payload: str
    taken_ms: float
    late_ms: float = 0.0


def gaps_s(per_s: float) -> Iterator[float]:
    """Yield the seconds between arrivals of a Poisson process with the mean rate `per_s`."""
    random = Random(_SEED)  # noqa: S311
    while True:
        yield random.expovariate(per_s)


def send_at_rate(per_s: float, calls: Iterable[Call]) -> Iterator[SentRequest]:
    """Do `calls` at random times with the mean rate `per_s`; yield the results in order.

    Closing the generator stops the arrivals and waits for the running calls.

    Raises the error of the first failed call.
    """
    sent, ended = SimpleQueue[Future[SentRequest] | None](), Event()

    def arrive() -> None:
        due = time.perf_counter()
        try:
            for gap_s, call in zip(gaps_s(per_s), calls, strict=False):
                due += gap_s
                if ended.wait(max(0.0, due - time.perf_counter())):
                    return
                sent.put(threads.submit(_send, call, due))
        finally:
            sent.put(None)

    with ThreadPoolExecutor(1) as clock, ThreadPoolExecutor(CONNECTIONS) as threads:
        arriving = clock.submit(arrive)
        try:
            for number in count():
                future = sent.get()
                if future is None:
                    return
                each = future.result()
                if number >= min(_WARM_UP, per_s):
                    yield each
        finally:
            ended.set()
            arriving.result()
            threads.shutdown(cancel_futures=True)


def _send(call: Call, due: float) -> SentRequest:
    late_ms = (time.perf_counter() - due) * 1000
    payload, taken_ms = call()
    return SentRequest(payload, late_ms + taken_ms, late_ms)
