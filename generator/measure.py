"""Invokes a deployed workflow many times and says how long it took."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from generator.invoke import Answer
from workflow.answer import ExpectedAnswer
from workflow.documents import Document
from workflow.model import Workflow

#: Raises ``wrong-output`` for an answer that is wrong.
Check = Callable[[str], None]
#: Requests before the first one that counts: connections, caches and worker pools warm up.
WARM_UP = 5


class Measurement(Document):
    """End-to-end latencies on the client's clock, in milliseconds, of `samples` warm requests."""

    samples: int
    p50_ms: float
    p95_ms: float
    low_ms: float
    high_ms: float

    @classmethod
    def of(cls, latencies_ms: Sequence[float]) -> Measurement:
        """The summary of at least one latency; `low_ms` and `high_ms` are the quartiles."""
        return cls(
            samples=len(latencies_ms),
            p50_ms=round(statistics.median(latencies_ms), 3),
            p95_ms=round(percentile(latencies_ms, 0.95), 3),
            low_ms=round(percentile(latencies_ms, 0.25), 3),
            high_ms=round(percentile(latencies_ms, 0.75), 3),
        )


class Invokable(Protocol):
    """What answers a workflow's requests: an invoker or a deployment."""

    def invoke(self, request: bytes) -> Answer:
        """The workflow's answer to `request`."""
        ...


def check_of(workflow: Workflow, expected: ExpectedAnswer | None) -> Check:
    """What holds an answer of `workflow` against `expected`; against nothing where that is None."""
    if expected is None:
        return lambda _: None
    return partial(expected.check, workflow=workflow)


def measure(target: Invokable, request: bytes, samples: int, check: Check) -> Measurement:
    """The latencies of `samples` requests after a warm-up.

    Raises
    ------
    ChironError
        ``wrong-output`` where `check` refuses an answer.
    """
    latencies = [checked_invoke(target, request, check) for _ in range(WARM_UP + samples)]
    return Measurement.of(latencies[WARM_UP:])


def checked_invoke(target: Invokable, request: bytes, check: Check) -> float:
    """The latency of one request in milliseconds, once `check` has had its answer."""
    answer = target.invoke(request)
    check(answer.output)
    return answer.latency_ms


def percentile(values: Sequence[float], fraction: float) -> float:
    """The smallest of `values` that is not below `fraction` of them (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]
