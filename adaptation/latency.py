"""Sources of the serving version's latency: the gateway's metrics, or requests of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import NamedTuple, Protocol

import requests
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from chiron.adaptation.rules import Window
from chiron.deployment.invoke import find_invoker
from chiron.deployment.live import grown, within_slo
from chiron.deployment.measure import answer_of
from chiron.deployment.postmortem import explain_failures
from chiron.deployment.replicas import FunctionMetrics, ReplicaMetrics, read_metrics
from chiron.openfaas.client import Gateway, direct_if_here
from chiron.workflow.errors import ChironError
from chiron.workflow.payloads import Payload, turns

#: Sleeps for that many seconds.
Wait = Callable[[float], None]

#: OpenFaaS's histogram of how long functions took to answer, in seconds.
_SECONDS = "gateway_functions_seconds"
#: The prefix of every metric of the gateway: a page without it is something else.
_PREFIX = "gateway_"
_TIMEOUT_S = 10.0


class Latencies(Protocol):
    """Measures the latency of a function."""

    def window(self, function: str, seconds: float, slo_ms: float | None) -> Window:
        """Return the requests of the next `seconds`, and how many take longer than `slo_ms`."""
        ...


class Totals(NamedTuple):
    """Requests that a function answered since its gateway started, and their seconds."""

    requests: float
    seconds: float


@dataclass(frozen=True)
class GatewayMetrics:
    """Reads the metrics that the gateway at `url` counts of its clients' requests.

    The latency is the gateway's, without the way between client and gateway. The gateway also
    counts the short requests for the wraps' metrics. So the wraps' metrics provide the number of
    requests and their service time. Only the mean time on the way comes from the gateway.
    """

    gateway: Gateway
    url: str
    wait: Wait
    verify_tls: bool = True

    def window(self, function: str, seconds: float, slo_ms: float | None) -> Window:
        """Return the requests that `function` answered in the next `seconds`.

        A request is late if it took longer than `slo_ms` in the wrap, which counts exactly if that
        is its SLO. Requests late only by their way are unknown.
        """
        before, first_reading = self.totals(function), self._read(function)
        self.wait(seconds)
        after, second_reading = self.totals(function), self._read(function)
        calls, spent_s = after.requests - before.requests, after.seconds - before.seconds
        if calls <= 0:  # fewer if the gateway restarted
            return Window(0, 0.0)
        if not second_reading.by_replica:  # its build has no metrics, or it hangs
            return Window(int(calls), 1000 * spent_s / calls)
        pairs = list(_pairs(first_reading, second_reading))
        requests = sum(then.good - first.good for first, then in pairs)
        # The replicas that answered count for all.
        share = second_reading.replicas / max(1, len(pairs))
        arrived = share * sum(then.arrived - first.arrived for first, then in pairs)
        known_s = fmean(then.at - first.at for first, then in pairs) if pairs else 0.0
        if requests <= 0:
            return Window(0, 0.0, arrived=arrived, seconds=known_s)
        took_s = sum(then.good_s - first.good_s for first, then in pairs)
        way_s = max(0.0, spent_s - share * took_s) / calls
        mean_ms = 1000 * (took_s / requests + way_s)
        histogram = grown((first.within, then.within) for first, then in pairs)
        within = within_slo(histogram, slo_ms)
        if within is None:
            return Window(round(share * requests), mean_ms, 0, 0, arrived, known_s)
        timed, met = round(histogram[-1][1]), round(within)
        return Window(round(share * requests), mean_ms, timed, timed - met, arrived, known_s)

    def _read(self, function: str) -> FunctionMetrics:
        return read_metrics(self.gateway, self.gateway.describe(function))

    def totals(self, function: str) -> Totals:
        """Return the gateway's totals of good answers of `function`; ``no-metrics``."""
        own = [
            sample
            for family in self._families()
            if family.name == _SECONDS
            for sample in family.samples
            if _is_of(sample, function)
        ]
        count, seconds = (
            sum(sample.value for sample in own if sample.name == _SECONDS + kind)
            for kind in ("_count", "_sum")
        )
        return Totals(count, seconds)

    def _families(self) -> list[Metric]:
        try:
            answer = requests.get(
                self.url,
                timeout=_TIMEOUT_S,
                verify=self.verify_tls,
                proxies=direct_if_here(self.url),
            )
            answer.raise_for_status()
            families = list(text_string_to_metric_families(answer.text))
        except (requests.HTTPError, ValueError):
            families = []
        except requests.RequestException:
            message = f"nothing answers at {self.url} within {_TIMEOUT_S:g} s"
            raise ChironError("no-metrics", message, status=502) from None
        if any(family.name.startswith(_PREFIX) for family in families):
            return families
        message = f"no metrics of a gateway at {self.url}: name where they are with --metrics"
        raise ChironError("no-metrics", message, status=502)


def _pairs(
    before: FunctionMetrics, after: FunctionMetrics
) -> Iterator[tuple[ReplicaMetrics, ReplicaMetrics]]:
    """Yield each replica's metrics `before` and `after`; a new replica has counted from zero."""
    known = before.by_replica
    for name, then in after.by_replica.items():
        if name in known:
            yield known[name], then
        elif len(known) >= before.replicas:  # all answered then, so this replica is new
            yield then.started(min((each.at for each in known.values()), default=then.at)), then


def _any(*_: str, **__: object) -> None:
    """Accept every answer: also the error of a Fail state."""


@dataclass(frozen=True)
class Probes:
    """Sends a few requests of its own, for gateways without latency metrics."""

    gateway: Gateway
    workflow: str
    planner: str
    payloads: Sequence[Payload]
    wait: Wait
    requests: int

    def window(self, function: str, seconds: float, slo_ms: float | None) -> Window:
        """Send a few requests at the end of the next `seconds`, and return them."""
        self.wait(seconds)
        found = find_invoker(self.gateway, self.workflow, self.planner)
        with explain_failures(self.gateway), found as invoker:
            asked = islice(turns(self.payloads), self.requests)
            answers = [answer_of(invoker, payload.content, _any) for payload in asked]
        each_ms = [answer.latency_ms for answer in answers]
        late = sum(slo_ms is not None and latency_ms > slo_ms for latency_ms in each_ms)
        return Window(len(each_ms), fmean(each_ms), len(each_ms) if slo_ms else 0, late)


def find_latencies(
    gateway: Gateway, metrics_url: str | None, probes: Probes, *, verify_tls: bool = True
) -> Latencies:
    """Return the metrics at `metrics_url`, else the gateway's own, else `probes`.

    OpenFaaS serves its metrics on a port of their own (8082), which is not always reachable.

    Raises ``no-metrics`` if `metrics_url` has none.
    """
    url = metrics_url or f"{gateway.url}/metrics"
    metrics = GatewayMetrics(gateway, url, probes.wait, verify_tls)
    try:
        metrics.totals("")
    except ChironError:
        if metrics_url:
            raise
        return probes
    return metrics


def _is_of(sample: Sample, function: str) -> bool:
    """Return whether `sample` counts answers of `function` without errors, in any namespace.

    Older gateways do not label the status of what they timed.
    """
    name = sample.labels.get("function_name", "")
    return name.partition(".")[0] == function and sample.labels.get("code", "2").startswith("2")
