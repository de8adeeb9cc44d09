"""What the deployed workflows of a gateway do at the moment: load, latencies and failures."""

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
from chiron.deployment.replicas import Said, hear, ready
from chiron.generator.annotations import ROLE, read_functions
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError

#: Rates and latencies are of so many seconds at most.
OVER_S = 60.0
#: Functions that are asked at once.
_AT_ONCE = 8
#: Lines of a log that are looked through for failures, and failures that are told of a workflow.
_LINES, _FAILURES = 1000, 5


#: What a replica said, and what it said later.
Pair = tuple[Said, Said]
#: What a replica says that has just started.
_NOTHING = Said("", 0.0, {})


class Latency(Document):
    """How long requests took that were answered without an error, in milliseconds.

    They begin when the entry wrap has the whole request. Percentiles are those of a histogram:
    interpolated in the bucket where they are, and the largest bound of the buckets where they are
    above that. ``met`` is how many of the ``requests`` met the SLO, None without one.
    """

    requests: int
    met: int | None
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float

    @property
    def within_slo(self) -> float | None:
        """The share of the requests that met the SLO; None without one."""
        return None if self.met is None else self.met / self.requests


class WrapLoad(Document):
    """What all replicas of a wrap have, together, going by those that were heard.

    ``held_bytes`` wait in the sink, ``spilled_bytes`` of it on disk, ``leaving_bytes`` are on
    their way; ``pressure`` is the share of the time in which tasks were held back.
    """

    in_hand: float
    waiting: float
    held_bytes: float
    spilled_bytes: float
    leaving_bytes: float
    pressure: float | None


class LiveWrap(Document):
    """A wrap, the functions that it runs, and how many replicas it should have, has, and were
    heard; None where none was."""

    function: str
    runs: tuple[str, ...]
    replicas: int
    available: int
    heard: int
    load: WrapLoad | None


class LiveBucket(Document):
    """What a bucket fires: how often, how often a run of it fails, and how late it has ended.

    Delays count from when it had to fire, in milliseconds; they are None where nothing has fired.
    """

    bucket: str
    firings_per_s: float
    failed_per_s: float
    p50_ms: float | None
    p99_ms: float | None


class LiveWorkflow(Document):
    """A deployed workflow; what is None is not known, or not yet.

    Of a workflow whose tasks the client calls there are neither rates nor latencies.
    ``failed_per_s`` are answers of 500 and above, ``events_per_s`` those that were taken into
    buckets. ``ever`` is of all requests that the replicas have answered since they started.
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
    """All workflows of the gateway with that URL, as of ``at`` (RFC 3339)."""

    gateway: str
    at: str
    workflows: tuple[LiveWorkflow, ...]


@dataclass
class Lookout:
    """Looks at the deployed workflows of a gateway; rates are those since earlier looks."""

    gateway: Gateway
    #: What each replica of a function said in the last `OVER_S` seconds, in the order of time.
    _said: dict[str, dict[str, list[Said]]] = field(init=False, default_factory=dict)
    #: The failures in each function's log.
    _failures: dict[str, list[FailedExecution]] = field(init=False, default_factory=dict)

    def look(self) -> Live:
        """What there is now.

        Only functions whose annotations say that they are wraps are asked anything, and of these
        none that is scaled to zero, which would start it. Raises what the gateway does.
        """
        found = with_functions(self.gateway)
        functions = [function for _, members in found for function in members]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            heard = list(threads.map(self._hear, functions))
        names = [function.name for function in functions]
        self._said = {name: self._with(name, said) for name, said in zip(names, heard, strict=True)}
        self._failures = {name: self._failures.get(name, []) for name in names}
        return Live(
            gateway=self.gateway.url,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            workflows=tuple(self._workflow(*each) for each in found),
        )

    def _hear(self, function: FunctionStatus) -> Mapping[str, Said]:
        """What its replicas say; where that are more failures than before, its log is read."""
        said = hear(self.gateway, function).said
        before = self._said.get(function.name)
        news = before is None or any(
            each.failed > (before[name][-1].failed if name in before else 0)
            for name, each in said.items()
        )
        if news and function.annotations.get(ROLE) != "wrap":  # entries tell of executions
            with suppress(ChironError):  # it may have been removed
                lines = self.gateway.logs(function.name, _LINES)
                self._failures[function.name] = failed_executions(lines)[:_FAILURES]
        return said

    def _with(self, function: str, said: Mapping[str, Said]) -> dict[str, list[Said]]:
        """What is known of the replicas that have `said` something now."""
        since = time.monotonic() - OVER_S
        before = self._said.get(function, {})
        return {
            name: [*(each for each in before.get(name, ()) if each.at >= since), now]
            for name, now in said.items()
        }

    def _workflow(
        self, deployed: DeployedWorkflow, functions: Sequence[FunctionStatus]
    ) -> LiveWorkflow:
        entry = next((f for f in functions if f.annotations.get(ROLE) == "entry"), None)
        pairs = self._pairs(entry) if entry else []
        replicas = ready(entry) if entry else 0
        slo_ms = deployed.predicted.slo_ms if deployed.predicted else None
        ever = [(_NOTHING, said[-1]) for said in self._said[entry.name].values()] if entry else []
        failures = [each for function in functions for each in self._failures[function.name]]
        failures.sort(key=lambda each: each.at, reverse=True)
        return LiveWorkflow(
            deployed=deployed,
            requests_per_s=_per_s(pairs, replicas, lambda said: said.answered),
            failed_per_s=_per_s(pairs, replicas, lambda said: said.failed),
            latency=_latency(pairs, slo_ms),
            ever=_latency(ever, slo_ms),
            wraps=tuple(map(self._wrap, functions)),
            events_per_s=_per_s(pairs, replicas, lambda said: said.events),
            buckets=tuple(_buckets(pairs, replicas)),
            failures=tuple(failures[:_FAILURES]),
        )

    def _wrap(self, function: FunctionStatus) -> LiveWrap:
        heard = [said[-1] for said in self._said[function.name].values()]
        load = None
        if heard:
            share = ready(function) / len(heard)
            pressures = [after.pressure_since(before) for before, after in self._pairs(function)]
            load = WrapLoad(
                in_hand=share * sum(said.in_hand for said in heard),
                waiting=share * sum(said.waiting for said in heard),
                held_bytes=share * sum(said.held_bytes for said in heard),
                spilled_bytes=share * sum(said.spilled_bytes for said in heard),
                leaving_bytes=share * sum(said.leaving_bytes for said in heard),
                pressure=fmean(pressures) if pressures else None,
            )
        return LiveWrap(
            function=function.name,
            runs=read_functions(function),
            replicas=function.replicas,
            available=available(self.gateway, function),
            heard=len(heard),
            load=load,
        )

    def _pairs(self, function: FunctionStatus) -> list[Pair]:
        """The first and the last of what each replica said, where that is not the same."""
        told = self._said[function.name].values()
        return [(said[0], said[-1]) for said in told if len(said) > 1]


def _per_s(pairs: Sequence[Pair], replicas: int, count: Callable[[Said], float]) -> float | None:
    """How fast `count` grows in all `replicas`, going by those of which there are `pairs`."""
    if not pairs:
        return None
    return replicas * fmean((count(b) - count(a)) / (b.at - a.at) for a, b in pairs)


def _buckets(pairs: Sequence[Pair], replicas: int) -> Iterator[LiveBucket]:
    """What each bucket has fired between the two times of each pair."""
    for bucket in sorted({name for _, after in pairs for name in after.fired}):

        def fired(said: Said, bucket: str = bucket) -> float:
            return max(said.fired.get(bucket, {}).values(), default=0.0)

        def misfired(said: Said, bucket: str = bucket) -> float:
            return said.misfired.get(bucket, 0.0)

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
    """By how much histograms have grown, together, by their bounds; nothing where not at all."""
    grown = defaultdict[float, float](float)
    for before, after in counts:
        for bound, count in after.items():
            grown[bound] += count - before.get(bound, 0.0)
    within = sorted(grown.items())
    return within if within and within[-1][1] else []


def _latency(pairs: Sequence[Pair], slo_ms: float | None) -> Latency | None:
    """Of the requests that were answered between the two times of each pair; None for none."""
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
    """How much of what a histogram has counted met the SLO; None where that is none of its bounds.

    `within` is as `quantile` takes it.
    """
    met = (count for bound, count in within if slo_ms and math.isclose(1000 * bound, slo_ms))
    return next(met, None)


def quantile(within: Sequence[tuple[float, float]], share: float) -> float:
    """The value that a `share` of what a histogram has counted does not exceed.

    It is interpolated in its bucket, as Prometheus's ``histogram_quantile`` does; above the
    largest finite bound it is that.

    Args:
        within: each upper bound with how much is not above it, in their order; the last one is
            infinite.
    """
    wanted = share * within[-1][1]
    low, below = 0.0, 0.0
    for bound, count in within:
        if count >= wanted and math.isfinite(bound):
            return low + (bound - low) * (wanted - below) / (count - below)
        if math.isfinite(bound):
            low, below = bound, count
    return low
