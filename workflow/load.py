"""The load of a deployment, and the predicted times of requests under load."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from chiron.workflow.documents import Document

#: The percentage of requests for a figure or an SLO; 100 is all. Values below 1 are refused, as
#: they are probably meant as a share.
Percentile = Annotated[float, Field(ge=1, le=100)]

#: The default number of simulated requests, and the default seed.
DEFAULT_REQUESTS, DEFAULT_SEED = 10_000, 1


class Load(Document):
    """The arrivals of requests: at random with mean rate `per_s` (Poisson), or from `clients`.

    A client sends its next request as soon as it has the reply to the previous one. `requests` are
    simulated; `seed` is that of their random arrivals, payloads and durations.
    """

    per_s: PositiveFloat | None = None
    clients: Annotated[int, Field(ge=1, le=10_000)] | None = None
    requests: Annotated[int, Field(ge=100, le=1_000_000)] = DEFAULT_REQUESTS
    seed: int = DEFAULT_SEED

    @model_validator(mode="after")
    def _one_of_rate_and_clients(self) -> Load:
        if (self.per_s is None) == (self.clients is None):
            raise ValueError("a load is either per_s or clients")
        return self

    @property
    def shown(self) -> str:
        return f"{self.per_s:g}/s" if self.per_s is not None else f"{self.clients} clients"


class LoadTime(Document):
    """A time of requests under load, and its range; `high_ms` None means unbounded."""

    ms: NonNegativeFloat
    low_ms: NonNegativeFloat
    high_ms: NonNegativeFloat | None = None


class LoadWithin(LoadTime):
    """The ``percentile`` of the latency under load."""

    percentile: Percentile


class LoadLatency(Document):
    """The predicted latency of a plan under load.

    Attributes:
        within: percentiles of the latency; empty if the load exceeds the plan's capacity, so that
            the queue grows without end.
        mean: the mean latency; None if the queue grows without end.
    """

    load: Load
    within: tuple[LoadWithin, ...]
    mean: LoadTime | None = None

    def at(self, percentile: float) -> LoadWithin | None:
        """Return that percentile of the latency; None if it was not predicted."""
        return next((each for each in self.within if each.percentile == percentile), None)

    def shown_at(self, percentile: float) -> str:
        """Return the percentile, its range in milliseconds and the load, as text for tables."""
        found = self.at(percentile)
        if found is None:
            return f"without end at {self.load.shown}"
        high = "-" if found.high_ms is None else f"{found.high_ms:.1f}"
        span = f"({found.low_ms:.1f} to {high})"
        return f"p{percentile:g} {found.ms:.1f} {span} at {self.load.shown}"


class Throughput(Document):
    """Requests per second, and their range."""

    per_s: NonNegativeFloat
    low_per_s: NonNegativeFloat
    high_per_s: NonNegativeFloat


class LoadPrediction(LoadLatency):
    """The prediction for a plan under load."""

    #: The replicas of each wrap, by name.
    replicas: dict[str, Annotated[int, Field(ge=1)]]
    #: The throughput if requests always wait.
    saturation: Throughput
    #: The actual throughput: the rate, or that of the clients.
    throughput_per_s: NonNegativeFloat
    #: The CPU time of a request.
    cpu_ms: NonNegativeFloat
    #: The memory of all replicas, each at its peak number of requests.
    memory_mib: Annotated[int, Field(ge=1)]
