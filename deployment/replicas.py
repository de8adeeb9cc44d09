"""The replicas of a wrap: waits for them, and reads their metrics through the gateway."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import MIN_LABEL, FunctionStatus
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan

#: Requests for metrics per replica: the gateway chooses which replica answers.
_ASKED = 3
#: The timeout of one request in seconds, and the timeouts after which no more are sent.
_TIMEOUT_S, _SILENT = 0.5, 3
#: The pause between polls of the number of replicas, in seconds.
_LOOK_S = 0.1
_METRICS = "/metrics"
_IN_HAND, _WAITING, _AT_ONCE, _PRESSURE, _INFO = (
    f"chiron_{name}"
    for name in (
        *("requests_in_hand", "requests_waiting", "requests_at_once"),
        *("pressure_seconds_total", "replica_info"),
    )
)
_HELD, _SPILLED, _LEAVING = (f"chiron_{name}_bytes" for name in ("held", "spilled", "leaving"))
_CPU, _CORES = "chiron_cpu_seconds_total", "chiron_cores"
_ANSWERS, _SECONDS = "http_requests_total", "http_request_duration_seconds"
_EVENTS, _DELAY, _MISSED = (
    f"chiron_{name}" for name in ("events_total", "firing_delay_seconds", "firing_failures_total")
)
#: The method of requests that only check for a build and run nothing.
_ASKS = "options"
#: The first digit of the status of a success, and the lowest status of a failure.
_GOOD, _FAILURE = "2", "500"


@dataclass(frozen=True)
class ReplicaMetrics:
    """The metrics of a replica at the time ``at``, in seconds of the monotonic clock."""

    replica: str
    at: float
    #: The values of metrics without labels.
    values: Mapping[str, float]
    #: The number of requests answered with each status.
    answers: Mapping[str, float] = field(default_factory=dict)
    #: The total duration of the requests answered without an error, in seconds.
    good_s: float = 0.0
    #: The number of those requests within each upper bound in seconds.
    within: Mapping[float, float] = field(default_factory=dict)
    #: For each bucket, the number of firings that ended within each upper bound in seconds.
    fired: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    #: For each bucket, the number of failed runs of its firings.
    misfired: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, at: float) -> ReplicaMetrics | None:
        """Parse the metrics; None if they are not a wrap's."""
        try:
            families = list(text_string_to_metric_families(text))
            samples = [sample for family in families for sample in family.samples]
            values = {sample.name: sample.value for sample in samples if not sample.labels}
            answers, within = defaultdict[str, float](float), defaultdict[float, float](float)
            fired, misfired = dict[str, dict[float, float]](), dict[str, float]()
            replica, good_s = "", 0.0
            for name, labels, value, *_ in samples:
                is_good = labels.get("code", "").startswith(_GOOD)
                if name == _INFO:
                    replica = labels["replica"]
                elif name == f"{_DELAY}_bucket":
                    fired.setdefault(labels["bucket"], {})[float(labels["le"])] = value
                elif name == _MISSED:
                    misfired[labels["bucket"]] = value
                elif labels.get("method") == _ASKS:
                    continue
                elif name == _ANSWERS:
                    answers[labels["code"]] += value
                elif name == f"{_SECONDS}_sum" and is_good:
                    good_s += value
                elif name == f"{_SECONDS}_bucket" and is_good:
                    within[float(labels["le"])] += value
        except (ValueError, LookupError):
            return None
        if not replica or not values.keys() >= {_IN_HAND, _WAITING, _AT_ONCE, _PRESSURE}:
            return None
        return cls(replica, at, values, answers, good_s, within, fired, misfired)

    @property
    def in_hand(self) -> float:
        """Requests being processed."""
        return self.values[_IN_HAND]

    @property
    def waiting(self) -> float:
        """Requests in the queue."""
        return self.values[_WAITING]

    @property
    def at_once(self) -> float:
        """The most requests processed at the same time."""
        return self.values[_AT_ONCE]

    @property
    def arrived(self) -> float:
        """Requests that have arrived so far."""
        return self.answered + self.in_hand + self.waiting

    @property
    def held_bytes(self) -> float:
        """Bytes of objects that wait in its memory."""
        return self.values.get(_HELD, 0.0)

    @property
    def spilled_bytes(self) -> float:
        """Bytes of objects that wait on its disk."""
        return self.values.get(_SPILLED, 0.0)

    @property
    def leaving_bytes(self) -> float:
        """Bytes in transfer to other wraps."""
        return self.values.get(_LEAVING, 0.0)

    @property
    def events(self) -> float:
        """Events received so far."""
        return self.values.get(_EVENTS, 0.0)

    @property
    def answered(self) -> float:
        """Requests answered so far."""
        return sum(self.answers.values())

    @property
    def good(self) -> float:
        """Requests answered without an error."""
        return sum(count for code, count in self.answers.items() if code.startswith(_GOOD))

    @property
    def failed(self) -> float:
        """Requests answered with 500 and above."""
        return sum(count for code, count in self.answers.items() if code >= _FAILURE)

    def started(self, at: float) -> ReplicaMetrics:
        """Return its metrics at its start, which was about `at`: every count is 0."""
        return ReplicaMetrics(self.replica, at, dict.fromkeys(self.values, 0.0))

    def pressure_since(self, before: ReplicaMetrics) -> float:
        """The share of the time since `before` in which tasks were held back."""
        seconds = self.values[_PRESSURE] - before.values[_PRESSURE]
        return min(1.0, max(0.0, seconds / (self.at - before.at)))

    def computing_since(self, before: ReplicaMetrics) -> float:
        """The share of its cores' time since `before` in which they computed for it."""
        seconds = self.values.get(_CPU, 0.0) - before.values.get(_CPU, 0.0)
        cores = self.values.get(_CORES, 1.0)
        return min(1.0, max(0.0, seconds / cores / (self.at - before.at)))


@dataclass(frozen=True)
class FunctionMetrics:
    """Metrics of some of a function's ``replicas``; ``unanswered`` requests had no answer."""

    by_replica: Mapping[str, ReplicaMetrics]
    replicas: int
    unanswered: int = 0


def ready_replicas(function: FunctionStatus) -> int:
    """Return how many replicas of `function` can be asked, without those about to be removed."""
    return min(function.available_replicas or function.replicas, function.replicas)


def read_metrics(gateway: Gateway, function: FunctionStatus) -> FunctionMetrics:
    """Read the metrics of the replicas of `function`; a request starts one scaled to zero."""
    replicas = ready_replicas(function)
    found = dict[str, ReplicaMetrics]()
    unanswered = 0
    for _ in range(_ASKED * replicas):
        metrics = _request_metrics(gateway, function.name)
        if metrics is None:
            unanswered += 1
        else:
            found[metrics.replica] = metrics
        if len(found) + unanswered >= replicas or unanswered >= _SILENT:
            break
    return FunctionMetrics(found, replicas, unanswered)


def _request_metrics(gateway: Gateway, name: str) -> ReplicaMetrics | None:
    try:
        answer = gateway.get(name, _METRICS, _TIMEOUT_S)
    except ChironError:
        return None
    return ReplicaMetrics.parse(answer.text, time.monotonic()) if answer.ok else None


def await_replicas(
    gateway: Gateway, plan: Plan, limit_s: float = 60.0, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return when the wraps of `plan` have the replicas in their labels, if it is for a load.

    A gateway that started fewer replicas is asked once to scale up.

    Raises ``too-few-replicas`` after `limit_s` seconds, and the gateway's errors.
    """
    if plan.under_load is None:
        return
    deadline, asked = time.monotonic() + limit_s, set[str]()
    for name in (wrap.name for wrap in plan.wraps):
        while (status := gateway.describe(name)).available_replicas < (least := _least(status)):
            if time.monotonic() > deadline:
                raise ChironError(
                    "too-few-replicas",
                    f"{name} has {status.available_replicas} of the {least} replicas for "
                    f"{plan.under_load.load.shown}: deploy for a lower rate, or on a gateway that "
                    "runs more",
                    functions=[name],
                    status=504,
                )
            if status.replicas < least and name not in asked:
                asked.add(name)
                gateway.scale(name, least)
            sleep(_LOOK_S)


def _least(function: FunctionStatus) -> int:
    """Return the fewest replicas by the label if it is more than one, else 0."""
    label = function.labels.get(MIN_LABEL, "")
    return int(label) if label.isdecimal() and int(label) > 1 else 0
