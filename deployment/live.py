"""The current state of a gateway's deployed workflows: load, latencies and failures."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import fmean

from chiron.deployment.deployed import DeployedWorkflow, available, with_functions
from chiron.deployment.postmortem import FailedExecution, failed_executions
from chiron.deployment.replicas import ReplicaMetrics, read_metrics, ready_replicas
from chiron.generator.annotations import ROLE, read_functions
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError

#: The window of rates and latencies in seconds.
OVER_S = 60.0
#: Functions whose metrics are read at the same time.
_AT_ONCE = 8
#: Log lines to search for failures, and failures to report of a workflow.
_LINES, _FAILURES = 1000, 5
#: Two metrics readings of a replica, the earlier first.
Pair = tuple[ReplicaMetrics, ReplicaMetrics]
#: The metrics of a replica that has just started.
_NOTHING = ReplicaMetrics("", 0.0, {})


class Latency(Document):
    """Latencies of the requests that were answered without an error, in milliseconds.

    A request begins when the entry wrap has received all of it. Percentiles are those of a
    histogram: interpolated within the bucket, or the largest finite bound if they are above it.
    ``met`` is how many of the ``requests`` met the SLO, None without an SLO.
    """

    requests: int
    met: int | None
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float

    @property
    def within_slo(self) -> float | None:
        """The share of the requests that met the SLO; None without an SLO."""
        return None if self.met is None else self.met / self.requests


class WrapLoad(Document):
    """The load of all replicas of a wrap together, extrapolated from the replicas that answered.

    ``held_bytes`` wait in the sink, ``spilled_bytes`` of them on disk; ``leaving_bytes`` are in
    transfer. ``pressure`` is the share of the time in which tasks were held back.
    """

    in_hand: float
    waiting: float
    held_bytes: float
    spilled_bytes: float
    leaving_bytes: float
    pressure: float | None


class LiveWrap(Document):
    """A wrap and its functions, its wanted, available and answering replicas, and its load, None if
    no replica answered."""

    function: str
    runs: tuple[str, ...]
    replicas: int
    available: int
    heard: int
    load: WrapLoad | None


class LiveBucket(Document):
    """How often a bucket fires, how often a run of its firings fails, and how late the firings end.

    Delays count from the due time, in milliseconds; they are None if nothing has fired.
    """

    bucket: str
    firings_per_s: float
    failed_per_s: float
    p50_ms: float | None
    p99_ms: float | None


class LiveWorkflow(Document):
    """A deployed workflow; None stands for a value that is not known yet, or not at all.

    There are neither rates nor latencies of a workflow whose tasks the client calls.
    ``failed_per_s`` counts answers of 500 and above, ``events_per_s`` the events added to buckets.
    ``ever`` covers all requests that the replicas have answered since they started.
    """

    deployed: DeployedWorkflow
    requests_per_s: float | None
    failed_per_s: float | None
    latency: Latency | None
    ever: Latency | None
    wraps: tuple[LiveWrap, ...]
    events_per_s: float | None
    buckets: tuple[LiveBucket, ...]
    failures: tuple[FailedExecution, ...]


class Live(Document):
    """All workflows of the gateway with that URL, at the time ``at`` (RFC 3339)."""

    gateway: str
    at: str
    workflows: tuple[LiveWorkflow, ...]


@dataclass
class LiveMonitor:
    """Polls the deployed workflows of a gateway; rates are those since earlier polls."""

    gateway: Gateway
    #: The readings of each replica of a function in the last `OVER_S` seconds, in order of time.
    _readings: dict[str, dict[str, list[ReplicaMetrics]]] = field(init=False, default_factory=dict)
    #: The failures in each function's log.
    _failures: dict[str, list[FailedExecution]] = field(init=False, default_factory=dict)

    def poll(self) -> Live:
        """Poll the workflows and return their current state.

        Polls only wraps, by their annotations, and no wrap that is scaled to zero: a request would
        start it. Raises the gateway's errors.
        """
        found = with_functions(self.gateway)
        functions = [function for _, members in found for function in members]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            readings = list(threads.map(self._read, functions))
        names = [function.name for function in functions]
        self._readings = {
            name: self._with(name, metrics) for name, metrics in zip(names, readings, strict=True)
        }
        self._failures = {name: self._failures.get(name, []) for name in names}
        return Live(
            gateway=self.gateway.url,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            workflows=tuple(self._workflow(*each) for each in found),
        )

    def _read(self, function: FunctionStatus) -> Mapping[str, ReplicaMetrics]:
        """Read the metrics of its replicas; if they report new failures, read its log too."""
        metrics = read_metrics(self.gateway, function).by_replica
        before = self._readings.get(function.name)
        news = before is None or any(
            each.failed > (before[name][-1].failed if name in before else 0)
            for name, each in metrics.items()
        )
        if news and function.annotations.get(ROLE) != "wrap":  # only entries log executions
            with suppress(ChironError):  # it may have been removed
                lines = self.gateway.logs(function.name, _LINES)
                self._failures[function.name] = failed_executions(lines)[:_FAILURES]
        return metrics

    def _with(
        self, function: str, metrics: Mapping[str, ReplicaMetrics]
    ) -> dict[str, list[ReplicaMetrics]]:
        """Return the readings of the last `OVER_S` seconds of each replica in `metrics`."""
        since = time.monotonic() - OVER_S
        before = self._readings.get(function, {})
        return {
            name: [*(each for each in before.get(name, ()) if each.at >= since), now]
            for name, now in metrics.items()
        }

    def _workflow(
        self, deployed: DeployedWorkflow, functions: Sequence[FunctionStatus]
    ) -> LiveWorkflow:
        entry = next((f for f in functions if f.annotations.get(ROLE) == "entry"), None)
        pairs = self._pairs(entry) if entry else []
        replicas = ready_replicas(entry) if entry else 0
        slo_ms = deployed.predicted.slo_ms if deployed.predicted else None
        ever = (
            [(_NOTHING, metrics[-1]) for metrics in self._readings[entry.name].values()]
            if entry
            else []
        )
        failures = [each for function in functions for each in self._failures[function.name]]
        failures.sort(key=lambda each: each.at, reverse=True)
        return LiveWorkflow(
            deployed=deployed,
            requests_per_s=_per_s(pairs, replicas, lambda metrics: metrics.answered),
            failed_per_s=_per_s(pairs, replicas, lambda metrics: metrics.failed),
            latency=_latency(pairs, slo_ms),
            ever=_latency(ever, slo_ms),
            wraps=tuple(map(self._wrap, functions)),
            events_per_s=_per_s(pairs, replicas, lambda metrics: metrics.events),
            buckets=tuple(_buckets(pairs, replicas)),
            failures=tuple(failures[:_FAILURES]),
        )

    def _wrap(self, function: FunctionStatus) -> LiveWrap:
        readings = [metrics[-1] for metrics in self._readings[function.name].values()]
        load = None
        if readings:
            share = ready_replicas(function) / len(readings)
            pressures = [after.pressure_since(before) for before, after in self._pairs(function)]
            load = WrapLoad(
                in_hand=share * sum(metrics.in_hand for metrics in readings),
                waiting=share * sum(metrics.waiting for metrics in readings),
                held_bytes=share * sum(metrics.held_bytes for metrics in readings),
                spilled_bytes=share * sum(metrics.spilled_bytes for metrics in readings),
                leaving_bytes=share * sum(metrics.leaving_bytes for metrics in readings),
                pressure=fmean(pressures) if pressures else None,
            )
        return LiveWrap(
            function=function.name,
            runs=read_functions(function),
            replicas=function.replicas,
            available=available(self.gateway, function),
            heard=len(readings),
            load=load,
        )

    def _pairs(self, function: FunctionStatus) -> list[Pair]:
        """Return the first and the last reading of each replica that has at least two."""
        readings = self._readings[function.name].values()
        return [(metrics[0], metrics[-1]) for metrics in readings if len(metrics) > 1]


def _per_s(
    pairs: Sequence[Pair], replicas: int, count: Callable[[ReplicaMetrics], float]
) -> float | None:
    """Return the rate of `count` in all `replicas`, extrapolated from the replicas in `pairs`."""
    if not pairs:
        return None
    return replicas * fmean((count(b) - count(a)) / (b.at - a.at) for a, b in pairs)


def _buckets(pairs: Sequence[Pair], replicas: int) -> Iterator[LiveBucket]:
    """Yield what each bucket fired between the two readings of each pair."""
    for bucket in sorted({name for _, after in pairs for name in after.fired}):

        def fired(metrics: ReplicaMetrics, bucket: str = bucket) -> float:
            return max(metrics.fired.get(bucket, {}).values(), default=0.0)

        def misfired(metrics: ReplicaMetrics, bucket: str = bucket) -> float:
            return metrics.misfired.get(bucket, 0.0)

        within = grown(
            (before.fired.get(bucket, {}), after.fired.get(bucket, {})) for before, after in pairs
        )
        late_ms = [1000 * quantile(within, share) if within else None for share in (0.5, 0.99)]
        yield LiveBucket(
            bucket=bucket,
            firings_per_s=_per_s(pairs, replicas, fired) or 0.0,
            failed_per_s=_per_s(pairs, replicas, misfired) or 0.0,
            p50_ms=late_ms[0],
            p99_ms=late_ms[1],
        )


def grown(
    counts: Iterable[tuple[Mapping[float, float], Mapping[float, float]]],
) -> list[tuple[float, float]]:
    """Return the summed growth of histograms, by upper bound; empty if there is no growth."""
    grown = defaultdict[float, float](float)
    for before, after in counts:
        for bound, count in after.items():
            grown[bound] += count - before.get(bound, 0.0)
    within = sorted(grown.items())
    return within if within and within[-1][1] else []


def _latency(pairs: Sequence[Pair], slo_ms: float | None) -> Latency | None:
    """Return the latencies of the requests answered between the readings of each pair, or None."""
    within = grown((before.within, after.within) for before, after in pairs)
    if not within:
        return None
    requests = within[-1][1]
    seconds = sum(after.good_s - before.good_s for before, after in pairs)
    p50_ms, p95_ms, p99_ms = (1000 * quantile(within, share) for share in (0.5, 0.95, 0.99))
    met = within_slo(within, slo_ms)
    return Latency(
        requests=round(requests),
        met=None if met is None else round(met),
        mean_ms=1000 * seconds / requests,
        p50_ms=p50_ms,
        p95_ms=p95_ms,
        p99_ms=p99_ms,
    )


def within_slo(within: Sequence[tuple[float, float]], slo_ms: float | None) -> float | None:
    """Return how many values of a histogram met the SLO; None if the SLO is none of its bounds.

    `within` has the form that `quantile` describes.
    """
    met = (count for bound, count in within if slo_ms and math.isclose(1000 * bound, slo_ms))
    return next(met, None)


def quantile(within: Sequence[tuple[float, float]], share: float) -> float:
    """Return the value that a `share` of the values of a histogram does not exceed.

    The value is interpolated in its bucket, as by Prometheus's ``histogram_quantile``. Above the
    largest finite bound it is that bound.

    Args:
        within: each upper bound with the count of values up to it, in ascending order; the last
            bound is infinite.
    """
    wanted = share * within[-1][1]
    low, below = 0.0, 0.0
    for bound, count in within:
        if count >= wanted and math.isfinite(bound):
            return low + (bound - low) * (wanted - below) / (count - below)
        if math.isfinite(bound):
            low, below = bound, count
    return low
