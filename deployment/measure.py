"""Invokes a deployed workflow many times and measures the latencies of its requests."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, cycle, islice
from typing import Protocol

from chiron.deployment.arrivals import SentRequest, send_at_rate
from chiron.deployment.background_load import LONG_LOOK_S, busy_line, mean_share, others_share
from chiron.deployment.function_error import TOO_MANY, FunctionFailedError
from chiron.deployment.invoke import Answer
from chiron.workflow.answer import ExpectedAnswer, failure_text
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Workflow
from chiron.workflow.payloads import PAYLOAD_FILE, Payload, turns
from chiron.workflow.profile import LONGEST_MS, Profile


class Check(Protocol):
    """Compares an answer with the expected answer."""

    def __call__(self, output: str, *, failure: ChironError | None = None) -> None:
        """Raise ``wrong-output`` if the answer is wrong.

        `failure` is the error of a workflow that ended in a failure; `output` is then its text.
        Raises `failure` unless the profile expects that failure.
        """


CheckedPayload = tuple[Payload, Check]
#: Requests before the first measured request, to warm up connections, caches and worker pools.
WARM_UP = 5
#: The statuses of refused requests and of timeouts.
_REFUSED = (TOO_MANY, 503, 504)


class Measurement(Document):
    """End-to-end latencies on the client's clock, in milliseconds, of `samples` warm requests.

    With several payloads, ``payloads`` has the latencies of each by its file, if it was sent.
    ``others`` is the share of this machine's cores that other programs used right before and after;
    None if unknown.
    """

    samples: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    low_ms: float
    high_ms: float
    payloads: dict[str, Measurement] | None = None
    others: float | None = None

    @property
    def busy(self) -> str | None:
        """The warning for a prediction if other programs disturbed the measurement, else None."""
        return busy_line(self.others)

    @classmethod
    def of(cls, latencies_ms: Sequence[float], others: float | None = None) -> Measurement:
        """Summarise at least one latency; `low_ms` and `high_ms` are the quartiles."""
        return cls(
            samples=len(latencies_ms),
            mean_ms=round(statistics.fmean(latencies_ms), 3),
            p50_ms=round(statistics.median(latencies_ms), 3),
            p95_ms=round(percentile(latencies_ms, 0.95), 3),
            low_ms=round(percentile(latencies_ms, 0.25), 3),
            high_ms=round(percentile(latencies_ms, 0.75), 3),
            others=others,
        )


class Invokable(Protocol):
    """Answers a workflow's requests: an invoker or a deployment."""

    def invoke(self, request: bytes) -> Answer:
        """Return the workflow's answer to `request`."""
        ...


def check_of(
    workflow: Workflow, expected: ExpectedAnswer | None, payload: str = PAYLOAD_FILE
) -> Check:
    """Return the check of answers against `expected`; if None, any output is accepted."""
    if expected is None:
        return _unchecked
    return partial(expected.check, workflow=workflow, payload=payload)


def _unchecked(output: str, *, failure: ChironError | None = None) -> None:
    if failure is not None:
        raise failure


def measure(
    target: Invokable,
    checked: Sequence[CheckedPayload],
    samples: int,
    stop_after: Callable[[float, float], bool] = lambda *_: False,
    limit_s: float = math.inf,
    per_s: float | None = None,
    *,
    warm_up_s: float = 0.0,
) -> Measurement:
    """Measure the latencies of up to `samples` requests, after `warm_up` with `warm_up_s`.

    Each payload is sent as often as its weight says. Measuring stops after `limit_s` seconds, or
    when `stop_after` returns true. Its arguments are each latency and how late the request was
    sent. With `per_s` requests arrive at random at that rate, otherwise one after another.

    Raises ``wrong-output`` if a check rejects an answer.
    """
    before = others_share(LONG_LOOK_S)
    warm_up(target, checked, warm_up_s)
    latencies: dict[str, list[float]] = {}
    deadline = time.monotonic() + limit_s
    with closing(_send_requests(target, checked, per_s)) as sent:
        for payload, taken_ms, late_ms in islice(sent, samples):
            latencies.setdefault(payload, []).append(taken_ms)
            if stop_after(taken_ms, late_ms) or time.monotonic() > deadline:
                break
    others = mean_share([before, others_share(LONG_LOOK_S)])
    whole = Measurement.of(list(chain.from_iterable(latencies.values())), others)
    if len(checked) == 1:
        return whole
    each = {name: Measurement.of(taken_ms) for name, taken_ms in latencies.items()}
    return whole.model_copy(update={"payloads": each})


def _send_requests(
    target: Invokable, checked: Sequence[CheckedPayload], per_s: float | None
) -> Generator[SentRequest, None, None]:
    """Send requests without end, one after another or at the rate `per_s`.

    At a rate, refused requests and timeouts count as `LONGEST_MS`: no client waits for them.
    """

    def invoke(payload: Payload, check: Check) -> tuple[str, float]:
        try:
            return payload.name, checked_invoke(target, payload.content, check)
        except FunctionFailedError as error:
            if per_s is None or error.status not in _REFUSED:
                raise
            return payload.name, LONGEST_MS

    calls = (partial(invoke, *each) for each in weighted_cycle(checked))
    if per_s is None:
        yield from (SentRequest(*call()) for call in calls)
    else:
        yield from send_at_rate(per_s, calls)


def warm_up(target: Invokable, checked: Sequence[CheckedPayload], least_s: float = 0.0) -> None:
    """Send `WARM_UP` requests or each payload once, and for `least_s` seconds; ``wrong-output``."""
    until = time.monotonic() + least_s
    for number, (payload, check) in enumerate(cycle(checked)):
        if number >= max(WARM_UP, len(checked)) and time.monotonic() >= until:
            break
        checked_invoke(target, payload.content, check)


def checked_payloads(
    folder: WorkflowFolder,
    profile: Profile,
    *,
    check: bool,
    progress: Callable[[str], None] = lambda _: None,
) -> list[CheckedPayload]:
    """Return the payloads of `folder`, each with the check of its answers against `profile`.

    With `check`, `progress` gets a line for each payload whose answer is not in the profile.
    """
    found: list[CheckedPayload] = []
    for payload in folder.payloads():
        expected = folder.expected(profile, payload.content) if check else None
        if check and expected is None:
            what = f"the profile was not taken with this {payload.name}"
            progress(f"answers are not compared: {what}")
        found.append((payload, check_of(folder.workflow, expected, payload.name)))
    return found


def weighted_cycle(checked: Sequence[CheckedPayload]) -> Iterator[CheckedPayload]:
    """Yield payloads without end, each as often as its weight says."""
    checks = {payload.name: check for payload, check in checked}
    for payload in turns([payload for payload, _ in checked]):
        yield payload, checks[payload.name]


def checked_invoke(target: Invokable, request: bytes, check: Check) -> float:
    """Return the latency of one request in milliseconds, after `check` has accepted its answer."""
    return answer_of(target, request, check).latency_ms


def answer_of(target: Invokable, request: bytes, check: Check) -> Answer:
    """Return the answer to one request, after `check` has accepted it."""
    begun = time.perf_counter()
    try:
        answer = target.invoke(request)
    except ChironError as error:
        told = error.as_dict()
        if error.code != "workflow-failed" or "error" not in told:
            raise
        text = failure_text(str(told["error"]), str(told["cause"]))
        answer = Answer(text, 1000 * (time.perf_counter() - begun))
        check(text, failure=error)
    else:
        check(answer.output)
    return answer


def percentile(values: Sequence[float], fraction: float) -> float:
    """Return the smallest of `values` with `fraction` of them not above it (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]
