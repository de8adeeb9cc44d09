"""The gateway's Prometheus metrics, under OpenFaaS's names."""

from __future__ import annotations

from collections import Counter

import prometheus_client as prometheus

from chiron.gateway.names import NAMESPACE
from chiron.gateway.registry import Registry

_Series = tuple[prometheus.Counter, prometheus.Histogram, prometheus.Counter]


class Metrics:
    """Counts invocations; every request calls `record`."""

    def __init__(self) -> None:
        own = self._registry = prometheus.CollectorRegistry()
        name = "function_name"
        self._invocations = prometheus.Counter(
            "gateway_function_invocation", "Function invocations.", [name, "code"], registry=own
        )
        self._seconds = prometheus.Histogram(
            "gateway_functions_seconds", "Seconds a function took to answer.", [name], registry=own
        )
        self._bytes = prometheus.Counter(
            "gateway_function_bytes",
            "Bytes of the bodies of requests and answers. OpenFaaS has no such metric.",
            [name],
            registry=own,
        )
        self._services = prometheus.Gauge(
            "gateway_service_count", "Replicas of a function.", [name], registry=own
        )
        self._totals: Counter[str] = Counter()
        self._series: dict[tuple[str, int], _Series] = {}

    def record(self, function: str, code: int, seconds: float, size: int = 0) -> None:
        """Count one answered request; `size` is the bytes of its body and of the answer's."""
        series = self._series.get((function, code))
        if series is None:
            label = f"{function}.{NAMESPACE}"
            series = self._series[function, code] = (
                *(self._invocations.labels(label, str(code)), self._seconds.labels(label)),
                self._bytes.labels(label),
            )
        calls, duration, transferred = series
        calls.inc()
        duration.observe(seconds)
        transferred.inc(size)
        self._totals[function] += 1

    def invocations(self, function: str) -> float:
        """Return the requests answered for a function of that name since the gateway started."""
        return float(self._totals[function])

    def render(self, functions: Registry) -> bytes:
        """Return the text that Prometheus scrapes."""
        self._services.clear()
        for function in functions.all():
            label = f"{function.name}.{NAMESPACE}"
            self._services.labels(label).set(len(function.newest.ready))
        return prometheus.generate_latest(self._registry)
