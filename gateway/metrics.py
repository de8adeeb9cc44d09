"""The gateway's Prometheus metrics, under OpenFaaS's names."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from gateway.names import NAMESPACE
from gateway.registry import Registry


class Metrics:
    """Counts invocations; `record` is on the way of every request."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._invocations = Counter(
            "gateway_function_invocation",
            "Function invocations.",
            ["function_name", "code"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "gateway_functions_seconds",
            "Seconds a function took to answer.",
            ["function_name"],
            registry=self._registry,
        )
        self._services = Gauge(
            "gateway_service_count",
            "Replicas of a function.",
            ["function_name"],
            registry=self._registry,
        )
        self._totals: dict[str, int] = {}

    def record(self, function: str, code: int, seconds: float) -> None:
        """Count one answered request."""
        label = f"{function}.{NAMESPACE}"
        self._invocations.labels(label, str(code)).inc()
        self._seconds.labels(label).observe(seconds)
        self._totals[function] = self._totals.get(function, 0) + 1

    def invocations(self, function: str) -> float:
        """Requests answered for a function of that name since the gateway started."""
        return float(self._totals.get(function, 0))

    def render(self, functions: Registry) -> bytes:
        """The text that Prometheus scrapes."""
        self._services.clear()
        for function in functions.all():
            label = f"{function.name}.{NAMESPACE}"
            self._services.labels(label).set(len(function.newest.ready))
        return generate_latest(self._registry)
