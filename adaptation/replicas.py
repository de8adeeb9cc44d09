"""Scales the replicas of the serving version by the load that they report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from chiron.adaptation.events import Event, Tell
from chiron.adaptation.latency import Wait
from chiron.adaptation.scaling import (
    RATE_LOOKS,
    Bounds,
    Load,
    Planned,
    Record,
    arrived,
    behind,
    growth,
    load_of,
    planned_for,
)
from chiron.deployment.replicas import ReplicaMetrics, read_metrics
from chiron.generator.annotations import ROLE, read_needed, read_prediction
from chiron.generator.given import given_of, labels_of
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.errors import ChironError

#: The period of the looks, in seconds.
EVERY_S = 1.0


@dataclass
class Scaler:
    """Reads the load of functions, and lets the gateway run more or fewer replicas of them."""

    gateway: Gateway
    #: Returns the functions to scale, at each look.
    functions: Callable[[], Iterable[FunctionStatus]]
    tell: Tell
    sleep: Wait = time.sleep
    #: Whether backpressure counts, or only the requests in hand and in queues.
    by_pressure: bool = True
    #: The utilisation of the machine's cores since the last call. It is 0 unless all replicas share
    #: one machine and this process can see its cores.
    busy: Callable[[], float] = lambda: 0.0
    _records: dict[str, Record] = field(init=False, default_factory=dict)
    _metrics: dict[str, Mapping[str, ReplicaMetrics]] = field(init=False, default_factory=dict)
    _loads: dict[str, Load] = field(init=False, default_factory=dict)
    #: The requests that arrived between the last looks, and in how many seconds.
    _arrived: dict[str, tuple[tuple[float, float], ...]] = field(init=False, default_factory=dict)
    #: The number of replicas last requested, and the number then.
    _asked: dict[str, tuple[int, int]] = field(init=False, default_factory=dict)
    #: The number of replicas that a gateway kept when asked for more (True) or fewer.
    _kept: dict[str, tuple[int, bool]] = field(init=False, default_factory=dict)

    def wait(self, seconds: float) -> None:
        """Sleep for that long, and scale meanwhile."""
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            try:
                self.look()
            except ChironError as error:
                self.tell(Event("failed", f"{error}; replicas stay as they are"))
            self.sleep(min(left_s, EVERY_S))

    def look(self) -> None:
        """Read each function's load, and scale its replicas if needed."""
        busy = self.busy()
        statuses = [self.gateway.describe(function.name) for function in self.functions()]
        looked = [(each, self._load(each, busy)) for each in statuses if each.replicas]
        loads = [(status, load) for status, load in looked if load is not None]
        planned = {status.name: _planned(status) for status in statuses}
        growing = max((self._growth(name, each) for name, each in planned.items()), default=0.0)
        for status, load in loads:
            its = planned[status.name]
            needed = its.replicas if its else read_needed(status.annotations)
            by_rate = growing * (needed or Bounds.of(status.labels).least)
            if status.annotations.get(ROLE) == "entry":
                load = behind(load, (other for each, other in loads if each is not status))
            self._scale(status, replace(load, by_rate=by_rate))

    def _growth(self, name: str, planned: Planned | None) -> float:
        """Return the arrival rate as a factor of the planned rate; 0 without a plan."""
        seen = self._arrived.get(name, ())
        if planned is None:
            return 0.0
        requests, seconds = sum(each for each, _ in seen), sum(each for _, each in seen)
        return growth(requests, seconds, planned.per_s)

    def _load(self, status: FunctionStatus, busy: float) -> Load | None:
        """Return the load by the replicas that answer, or the last known load; None if unknown."""
        before = self._metrics.get(status.name, {})
        metrics = read_metrics(self.gateway, status)
        if not metrics.by_replica:
            return self._loads.get(status.name)
        self._metrics[status.name] = metrics.by_replica
        if seen := arrived(metrics, before):
            looks = (*self._arrived.get(status.name, ()), seen)
            self._arrived[status.name] = looks[-RATE_LOOKS:]
        load = load_of(metrics, before, self.by_pressure, busy)
        self._loads[status.name] = load
        return load

    def _scale(self, status: FunctionStatus, load: Load) -> None:
        name, current = status.name, status.replicas
        record = self._records[name] = self._records.get(name, Record()).seen(load)
        wanted = record.wanted(current, Bounds.of(status.labels))
        self._learn(name, current)
        if wanted == current or (current, wanted > current) == self._kept.get(name):
            return
        self.gateway.scale(name, wanted)
        self._asked[name] = wanted, current
        held = f", tasks held back {load.pressure:.0%} of the time" if load.is_pressed else ""
        held += f", computing {load.computing:.0%} of the time" if load.computing else ""
        rate = f", and the rate needs {load.by_rate:.1f}" if load.by_rate > current else ""
        message = (
            f"{name}: {wanted} replicas instead of {current}, as each has {load.requests:.1f} "
            f"requests, of which it works on {load.at_once:g} at once{held}{rate}"
        )
        figures = {"function": name, "replicas": wanted, "of": current}
        figures |= {"requests": round(load.requests, 2), "pressure": round(load.pressure, 3)}
        self.tell(Event("scaled", message, figures))

    def _learn(self, name: str, current: int) -> None:
        """Record whether the gateway fulfilled the last request, which its answer does not show."""
        wanted, before = self._asked.pop(name, (current, None))
        if wanted != current == before:
            self._kept[name] = current, wanted > current
            message = (
                f"{name}: the gateway was asked for {wanted} replicas and keeps {current}: it is "
                f"not asked for {'more' if wanted > current else 'fewer'} again"
            )
            self.tell(Event("kept", message, {"function": name, "replicas": current}))
        elif self._kept.get(name, (current, True))[0] != current:
            del self._kept[name]


def _planned(status: FunctionStatus) -> Planned | None:
    """Return the planned rate of a function, if requests reach it through the gateway.

    A gateway that refuses labels for that has the function without them.
    """
    plan, needed = read_prediction(status.annotations), read_needed(status.annotations)
    given = given_of(status.annotations)
    labels = labels_of(status.labels, given) if given else status.labels
    return planned_for(labels, plan.per_s if plan else None, needed)
