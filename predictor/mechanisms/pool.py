"""Mechanism ``pool``: long-lived workers, each with a place in the plan."""

from __future__ import annotations

from collections.abc import Mapping

from chiron.predictor.mechanisms.mechanism import Costs, Mechanism, NoopTimes
from chiron.workflow.platform import Platform

#: The fewest workers of a place, if the concurrency is unknown: one can compute while one waits.
_FEWEST_WORKERS = 2
#: The most workers of each place for each CPU of the wrap: each is a process.
_MOST_PER_CPU = 32


class Pool(Mechanism):
    """Workers exist already, so of equation (4) only the dispatch of their jobs remains."""

    name = "pool"
    processes = "processes that are kept"
    lasting = True

    def costs(self, platform: Platform) -> Costs:
        return Costs(
            ready_ms=platform.pool_dispatch_ms,
            main_ms=platform.pool_dispatch_ms,
            core_wait_ms=platform.pool_core_wait_ms,
            gather_ms=platform.ipc_ms,
        )

    def start_in_words(self, platform: Platform) -> str:
        return f"a dispatch of {platform.pool_dispatch_ms:.1f} ms"

    def environment(self, cpus: int, requests: int) -> dict[str, str]:
        """Return the workers of each place: one for each request, if they can use the CPUs."""
        workers = min(requests or max(_FEWEST_WORKERS, cpus), _MOST_PER_CPU * cpus)
        return {"pool_concurrency": str(workers)}

    def constants(
        self, one: NoopTimes, few: NoopTimes, many: NoopTimes, further: int, ipc_ms: float
    ) -> Mapping[str, float]:
        """Return the time until the last of two processes begins, and the delay if both compute."""
        last_ms = max(few.begins_ms)
        return {
            "pool_dispatch_ms": last_ms - one.begins_ms[0],
            "pool_core_wait_ms": max(few.working_begins_ms) - last_ms,
        }
