"""The load of a deployment, and what requests are predicted to take under it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from chiron.workflow.documents import Document

#: How many percent of the requests a figure, or an SLO, is for; 100 is every one. Below 1 it is
#: meant as a share.
Percentile = Annotated[float, Field(ge=1, le=100)]

#: How many requests are simulated, and with which random numbers, where nothing is said.
DEFAULT_REQUESTS, DEFAULT_SEED = 10_000, 1


class Load(Document):
    """How requests arrive: at random, `per_s` in the mean (Poisson), or from `clients`.

    A client sends its next request as soon as it has the reply to the one before. `requests` are
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
        """As it is written in tables."""
        return f"{self.per_s:g}/s" if self.per_s is not None else f"{self.clients} clients"


class LoadTime(Document):
    """How long requests take under load, and the range of that; no `high_ms`: without bound."""

    ms: NonNegativeFloat
    low_ms: NonNegativeFloat
    high_ms: NonNegativeFloat | None = None


class LoadWithin(LoadTime):
    """What ``percentile`` percent of the requests take at most."""

    percentile: Percentile


class LoadLatency(Document):
    """The latency that is predicted of a plan under load.

    Attributes:
        within: percentiles of the latency; none where the load is more than the plan can do, so
            that the queue grows without end.
        mean: the mean of the latency; None if the queue grows without end.
    """

    load: Load
    within: tuple[LoadWithin, ...]
    mean: LoadTime | None = None

    def at(self, percentile: float) -> LoadWithin | None:
        """What that percentage of requests takes at most, if it was predicted."""
        return next((each for each in self.within if each.percentile == percentile), None)

    def shown_at(self, percentile: float) -> str:
        """That percentile and its range in milliseconds, and the load, as written in tables."""
        found = self.at(percentile)
        if found is None:
            return f"without end at {self.load.shown}"
        high = "-" if found.high_ms is None else f"{found.high_ms:.1f}"
        span = f"({found.low_ms:.1f} to {high})"
        return f"p{percentile:g} {found.ms:.1f} {span} at {self.load.shown}"


class Throughput(Document):
    """Requests per second, and the range of that."""

    per_s: NonNegativeFloat
    low_per_s: NonNegativeFloat
    high_per_s: NonNegativeFloat


class LoadPrediction(LoadLatency):
    """What is predicted of a plan under load."""

    #: Of each wrap, by name.
    replicas: dict[str, Annotated[int, Field(ge=1)]]
    #: The throughput where requests always wait.
    saturation: Throughput
    #: What is done in fact: the rate, or what the clients get.
    throughput_per_s: NonNegativeFloat
    #: CPU time of a request.
    cpu_ms: NonNegativeFloat
    #: Memory of all replicas while each has as many requests as it ever has.
    memory_mib: Annotated[int, Field(ge=1)]
