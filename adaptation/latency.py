"""Where the latency of what serves is read: from the gateway's metrics, or by own requests."""

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
from chiron.openfaas.client import Gateway
from chiron.workflow.errors import ChironError
from chiron.workflow.payloads import Payload, turns

#: Waits for so many seconds.
Wait = Callable[[float], None]

#: OpenFaaS's histogram of how long functions took to answer, in seconds.
_SECONDS = "gateway_functions_seconds"
#: Every metric of the gateway begins so: a page without any is something else.
_PREFIX = "gateway_"
_TIMEOUT_S = 10.0


class Latencies(Protocol):
    """Tells how long a function takes to answer."""

    def window(self, function: str, seconds: float, slo_ms: float | None) -> Window:
        """The requests of the next `seconds`, and how many take longer than `slo_ms`."""
        ...


class Totals(NamedTuple):
    """Requests that a function answered since its gateway started, and their seconds."""

    requests: float
    seconds: float


@dataclass(frozen=True)
class GatewayMetrics:
    """Reads what the gateway at `url` counts of its clients' requests.

    The time is the gateway's: what lies between client and gateway is not in it. The gateway
    counts also what asks wraps for their metrics, which is quickly answered. So how many requests
    there were, and how long they took there, is asked of the wraps, and only what each call takes
    on its way is the gateway's.
    """

    gateway: Gateway
    url: str
    wait: Wait
    verify_tls: bool = True

    def window(self, function: str, seconds: float, slo_ms: float | None) -> Window:
        """The requests that `function` answered in the next `seconds`.

        Late is what took longer than `slo_ms` in the wrap, which has counted these exactly where
        that is its SLO. What was late by its way alone is not known.
        """
        before, first_reading = self.totals(function), self._read(function)
        self.wait(seconds)
        after, second_reading = self.totals(function), self._read(function)
        calls, spent_s = after.requests - before.requests, after.seconds - before.seconds
        if calls <= 0:  # fewer where the gateway was started anew
            return Window(0, 0.0)
        if not second_reading.by_replica:  # it is of a build that tells nothing, or hangs
            return Window(int(calls), 1000 * spent_s / calls)
        pairs = list(_pairs(first_reading, second_reading))
        requests = sum(then.good - first.good for first, then in pairs)
        share = second_reading.replicas / max(1, len(pairs))  # those that were heard stand for all
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
        """What the gateway has counted of good answers of `function`; ``no-metrics``."""
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
            answer = requests.get(self.url, timeout=_TIMEOUT_S, verify=self.verify_tls)
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
    """What each replica said `before` and `after`; one that is new since has counted from zero."""
    known = before.by_replica
    for name, then in after.by_replica.items():
        if name in known:
            yield known[name], then
        elif len(known) >= before.replicas:  # all were heard, so it was not there
            yield then.started(min((each.at for each in known.values()), default=then.at)), then


def _any(*_: str, **__: object) -> None:
    """Accept every answer: also the error of a Fail state."""


@dataclass(frozen=True)
class Probes:
    """Sends a few requests of its own, for gateways that tell no latencies."""

    gateway: Gateway
    workflow: str
    planner: str
    payloads: Sequence[Payload]
    wait: Wait
    requests: int

    def window(self, function: str, seconds: float, slo_ms: float | None) -> Window:
        """A few requests at the end of the next `seconds`."""
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
    """The metrics at `metrics_url`, else the gateway's own, else `probes`.

    OpenFaaS serves its metrics on a port of their own (8082), which is not always reachable.

    Raises ``no-metrics`` where there are none at `metrics_url`.
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
    """Whether `sample` is of answers of `function`, in any namespace, and none of errors.

    Older gateways do not tell the status of what they timed.
    """
    name = sample.labels.get("function_name", "")
    return name.partition(".")[0] == function and sample.labels.get("code", "2").startswith("2")
