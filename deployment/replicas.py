"""The replicas of a wrap: waits for them, and asks for their metrics through the gateway."""

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

#: So many times for each replica is asked, as the gateway picks who answers.
_ASKED = 3
#: How long one may take to answer, in seconds, and how many may not until no more are asked.
_TIMEOUT_S, _SILENT = 0.5, 3
#: How long between two looks at how many there are, in seconds.
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
#: The method of requests that run nothing: they ask whether a build is there.
_ASKS = "options"
#: How the status of an answer begins that is none of an error, and the least one of a failure.
_GOOD, _FAILURE = "2", "500"


@dataclass(frozen=True)
class Said:
    """What a replica said, by its metrics, and when, in seconds of the monotonic clock."""

    replica: str
    at: float
    #: Those of metrics without labels.
    values: Mapping[str, float]
    #: How many requests it has answered with each status.
    answers: Mapping[str, float] = field(default_factory=dict)
    #: How long those took, together, that were answered without an error, in seconds.
    good_s: float = 0.0
    #: How many of these took no longer than so many seconds, by these bounds.
    within: Mapping[float, float] = field(default_factory=dict)
    #: Of each bucket, how much of what it has fired has ended within so many seconds, by these
    #: bounds.
    fired: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    #: Of each bucket, how many runs of what it has fired have failed.
    misfired: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str, at: float) -> Said | None:
        """None where these are not the metrics of a wrap."""
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
        """Requests that it works on."""
        return self.values[_IN_HAND]

    @property
    def waiting(self) -> float:
        """Requests that wait there."""
        return self.values[_WAITING]

    @property
    def at_once(self) -> float:
        """How many requests it works on at most."""
        return self.values[_AT_ONCE]

    @property
    def arrived(self) -> float:
        """Requests that have arrived so far."""
        return self.answered + self.in_hand + self.waiting

    @property
    def held_bytes(self) -> float:
        """Those of objects that wait in its memory."""
        return self.values.get(_HELD, 0.0)

    @property
    def spilled_bytes(self) -> float:
        """Those of objects that wait on its disk."""
        return self.values.get(_SPILLED, 0.0)

    @property
    def leaving_bytes(self) -> float:
        """Those on their way to other wraps."""
        return self.values.get(_LEAVING, 0.0)

    @property
    def events(self) -> float:
        """Events that it has taken in."""
        return self.values.get(_EVENTS, 0.0)

    @property
    def answered(self) -> float:
        """Requests that it has answered."""
        return sum(self.answers.values())

    @property
    def good(self) -> float:
        """Requests that it has answered without an error."""
        return sum(count for code, count in self.answers.items() if code.startswith(_GOOD))

    @property
    def failed(self) -> float:
        """Requests that it has answered with 500 and above."""
        return sum(count for code, count in self.answers.items() if code >= _FAILURE)

    def started(self, at: float) -> Said:
        """What it would have said at its start, which was about `at`: nothing is counted yet."""
        return Said(self.replica, at, dict.fromkeys(self.values, 0.0))

    def pressure_since(self, before: Said) -> float:
        """The share of the time since `before` in which tasks were held back."""
        seconds = self.values[_PRESSURE] - before.values[_PRESSURE]
        return min(1.0, max(0.0, seconds / (self.at - before.at)))

    def computing_since(self, before: Said) -> float:
        """The share of the time since `before` in which its cores computed for it."""
        seconds = self.values.get(_CPU, 0.0) - before.values.get(_CPU, 0.0)
        cores = self.values.get(_CORES, 1.0)
        return min(1.0, max(0.0, seconds / cores / (self.at - before.at)))


@dataclass(frozen=True)
class Heard:
    """What some of the ``replicas`` of a function said, by their names; so many were silent."""

    said: Mapping[str, Said]
    replicas: int
    silent: int = 0


def ready(function: FunctionStatus) -> int:
    """How many replicas of `function` can be asked, without those that are to go."""
    return min(function.available_replicas or function.replicas, function.replicas)


def hear(gateway: Gateway, function: FunctionStatus) -> Heard:
    """What a sample of the replicas of `function` say; one scaled to zero would start, if asked."""
    replicas = ready(function)
    found = dict[str, Said]()
    silent = 0
    for _ in range(_ASKED * replicas):
        said = _ask(gateway, function.name)
        if said is None:
            silent += 1
        else:
            found[said.replica] = said
        if len(found) + silent >= replicas or silent >= _SILENT:
            break
    return Heard(found, replicas, silent)


def _ask(gateway: Gateway, name: str) -> Said | None:
    try:
        answer = gateway.get(name, _METRICS, _TIMEOUT_S)
    except ChironError:
        return None
    return Said.read(answer.text, time.monotonic()) if answer.ok else None


def await_replicas(
    gateway: Gateway, plan: Plan, limit_s: float = 60.0, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return once the wraps of `plan`, if it is for a load, have the replicas of their labels.

    A gateway that began with fewer is asked for them once.

    Raises ``too-few-replicas`` after `limit_s` seconds, and what the gateway raises.
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
    """The fewest replicas by the label, if that says more than one; else any number will do."""
    label = function.labels.get(MIN_LABEL, "")
    return int(label) if label.isdecimal() and int(label) > 1 else 0
