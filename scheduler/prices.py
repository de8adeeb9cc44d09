"""prices.json: the prices of CPUs and memory, and the cost of a plan."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat

from chiron.scheduler.strategies import memory_mib
from chiron.workflow.documents import Document
from chiron.workflow.plan import Plan

#: The paper's prices, and the clock of its machines (Chiron, SC'23, §6.2 and Table 1).
USD_PER_GB_S, USD_PER_GHZ_S, PAPER_GHZ = 0.0000025, 0.00001, 2.1
_HOUR_S, _MILLION = 3600, 1e6


class Cost(Document):
    """The cost of a plan, in `currency`: by the hour, and by a million requests."""

    currency: str
    per_hour: NonNegativeFloat
    per_million: NonNegativeFloat

    @property
    def shown(self) -> str:
        return (
            f"{self.per_hour:.4g} {self.currency} an hour, {self.per_million:.4g} "
            f"{self.currency} a million requests"
        )


class Prices(Document):
    """The prices of allocated CPUs and memory; the paper's by default.

    ``cpu_hour`` is the price of a CPU for an hour, ``gb_hour`` that of 10^9 bytes of memory.
    """

    format: Literal[1] = 1
    currency: Annotated[str, Field(min_length=1, max_length=8)] = "USD"
    cpu_hour: NonNegativeFloat = _HOUR_S * PAPER_GHZ * USD_PER_GHZ_S
    gb_hour: NonNegativeFloat = _HOUR_S * USD_PER_GB_S

    def cost(self, plan: Plan) -> Cost:
        """Return the cost of all replicas of `plan`, which is predicted.

        Its requests are those of its load; without a load they come one after another.
        """
        memory_gb = memory_mib(plan) * 2**20 / 1e9
        per_hour = self.cpu_hour * plan.allocated_cpus + self.gb_hour * memory_gb
        per_s = 0.0
        if plan.under_load is not None:
            per_s = plan.under_load.throughput_per_s
        elif plan.predicted is not None and plan.predicted.latency_ms:
            per_s = 1000 / plan.predicted.latency_ms
        per_million = _MILLION * per_hour / (_HOUR_S * per_s) if per_s else 0.0
        return Cost(
            currency=self.currency, per_hour=round(per_hour, 6), per_million=round(per_million, 6)
        )


PAPER_PRICES = Prices()
