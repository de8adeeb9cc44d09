"""Invokes a deployed workflow many times and says how long it took."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, cycle, islice
from typing import Protocol

from chiron.deployment.arrivals import Sent, at_rate
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
    """Holds answers against what is expected."""

    def __call__(self, output: str, *, failure: ChironError | None = None) -> None:
        """Raise ``wrong-output`` for an answer that is wrong.

        A workflow that has failed by itself answers `failure`, of which `output` is the text.
        Raises that unless it is expected.
        """


#: A payload, and what checks the answers to it.
Checked = tuple[Payload, Check]
#: Requests before the first one that counts: connections, caches and worker pools warm up.
WARM_UP = 5
#: The statuses of requests that are refused, or not answered in time.
_REFUSED = (TOO_MANY, 503, 504)


class Measurement(Document):
    """End-to-end latencies on the client's clock, in milliseconds, of `samples` warm requests.

    Of several payloads, ``payloads`` has each by its file, if it had a turn.
    ``others`` is the share of this machine's cores that other programs had right before and after;
    None where that is not known.
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
        """What to say beside a prediction where others had enough of the cores to disturb."""
        return busy_line(self.others)

    @classmethod
    def of(cls, latencies_ms: Sequence[float], others: float | None = None) -> Measurement:
        """The summary of at least one latency; `low_ms` and `high_ms` are the quartiles."""
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
    """What answers a workflow's requests: an invoker or a deployment."""

    def invoke(self, request: bytes) -> Answer:
        """The workflow's answer to `request`."""
        ...


def check_of(
    workflow: Workflow, expected: ExpectedAnswer | None, payload: str = PAYLOAD_FILE
) -> Check:
    """What holds an answer of `workflow` against `expected`; against nothing where that is None."""
    if expected is None:
        return _unchecked
    return partial(expected.check, workflow=workflow, payload=payload)


def _unchecked(output: str, *, failure: ChironError | None = None) -> None:
    if failure is not None:
        raise failure


def measure(
    target: Invokable,
    checked: Sequence[Checked],
    samples: int,
    ends_with: Callable[[float, float], bool] = lambda *_: False,
    limit_s: float = math.inf,
    per_s: float | None = None,
    *,
    warm_up_s: float = 0.0,
) -> Measurement:
    """The latencies of `samples` requests after a `warm_up` of `warm_up_s` seconds at least.

    Payloads come as often as they weigh. There are fewer requests where `ends_with`, which is
    called with each latency and how late the request was sent, ends them, or after `limit_s`
    seconds. With `per_s` they arrive at random at that rate, otherwise one after another.

    Raises ``wrong-output`` where an answer is refused.
    """
    before = others_share(LONG_LOOK_S)
    warm_up(target, checked, warm_up_s)
    latencies: dict[str, list[float]] = {}
    deadline = time.monotonic() + limit_s
    with closing(_sent(target, checked, per_s)) as sent:
        for payload, taken_ms, late_ms in islice(sent, samples):
            latencies.setdefault(payload, []).append(taken_ms)
            if ends_with(taken_ms, late_ms) or time.monotonic() > deadline:
                break
    others = mean_share([before, others_share(LONG_LOOK_S)])
    whole = Measurement.of(list(chain.from_iterable(latencies.values())), others)
    if len(checked) == 1:
        return whole
    each = {name: Measurement.of(taken_ms) for name, taken_ms in latencies.items()}
    return whole.model_copy(update={"payloads": each})


def _sent(
    target: Invokable, checked: Sequence[Checked], per_s: float | None
) -> Generator[Sent, None, None]:
    """Requests without end, one after another or at a rate.

    At a rate no client waits for the refused and the late: they count as `LONGEST_MS`.
    """

    def invoke(payload: Payload, check: Check) -> tuple[str, float]:
        try:
            return payload.name, checked_invoke(target, payload.content, check)
        except FunctionFailedError as error:
            if per_s is None or error.status not in _REFUSED:
                raise
            return payload.name, LONGEST_MS

    calls = (partial(invoke, *each) for each in in_turn(checked))
    if per_s is None:
        yield from (Sent(*call()) for call in calls)
    else:
        yield from at_rate(per_s, calls)


def warm_up(target: Invokable, checked: Sequence[Checked], least_s: float = 0.0) -> None:
    """Invoke `target` with each payload, a few times and `least_s` seconds; ``wrong-output``."""
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
) -> list[Checked]:
    """The payloads of `folder`, each with what holds answers against what `profile` knows of them.

    `progress` is told of payloads of which it knows nothing, unless there is to be no `check`.
    """
    found: list[Checked] = []
    for payload in folder.payloads():
        expected = folder.expected(profile, payload.content) if check else None
        if check and expected is None:
            what = f"the profile was not taken with this {payload.name}"
            progress(f"answers are not compared: {what}")
        found.append((payload, check_of(folder.workflow, expected, payload.name)))
    return found


def in_turn(checked: Sequence[Checked]) -> Iterator[Checked]:
    """Which of them comes next, for ever: each as often as it weighs."""
    checks = {payload.name: check for payload, check in checked}
    for payload in turns([payload for payload, _ in checked]):
        yield payload, checks[payload.name]


def checked_invoke(target: Invokable, request: bytes, check: Check) -> float:
    """The latency of one request in milliseconds, once `check` has had its answer."""
    return answer_of(target, request, check).latency_ms


def answer_of(target: Invokable, request: bytes, check: Check) -> Answer:
    """The answer to one request, once `check` has had it."""
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
    """The smallest of `values` that is not below `fraction` of them (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]
