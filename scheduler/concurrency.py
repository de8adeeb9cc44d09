"""How many requests a wrap executes at once, and what memory they take."""

from __future__ import annotations

import math

from chiron.scheduler.memory import FORKED_MEMORY_MIB
from chiron.workflow.plan import Plan, Wrap

#: Requests that a wrap runs at once for each CPU of the plan's widest wrap: at least, which is what
#: it gets where nothing is known of its functions.
FEWEST_PER_CPU = 4
#: What a wrap takes before it runs anything, with room to breathe: 24 MiB measured, 34 with the
#: watchdog.
IDLE_MIB = 48.0
#: Most requests that a wrap takes in: below the connections that its server accepts.
MOST_INFLIGHT = 512


def concurrency(plan: Plan) -> int:
    """How many requests each wrap of `plan` runs at once.

    As many as keep its CPUs busy: by Little's law, the requests/s that the wrap with the least CPU
    for its functions can do, times the seconds that one takes. Functions that wait leave their
    CPU to other requests. No more than a wrap takes in, or than fit into the memory of each wrap,
    with their processes: where it is known what the functions take, even fewer than the least.
    """
    wanted = FEWEST_PER_CPU * max(wrap.cpus for wrap in plan.wraps)
    rate = requests_per_ms(plan)
    if rate is not None and plan.predicted is not None:
        busy = math.ceil(rate * plan.predicted.latency_ms)  # more only contend for the CPUs
        wanted = max(wanted, min(busy, MOST_INFLIGHT))
    return max(1, min([wanted, *(_fitting(wrap) for wrap in plan.wraps if wrap.demand)]))


def requests_per_ms(plan: Plan) -> float | None:
    """What the CPUs of the busiest wrap can do; None where its demand is not known, or nothing."""
    demands = [(wrap.cpus, wrap.demand.cpu_ms) for wrap in plan.wraps if wrap.demand]
    return min((cpus / cpu_ms for cpus, cpu_ms in demands if cpu_ms), default=None)


def _fitting(wrap: Wrap) -> int:
    """How many requests at once have room in the wrap's memory, each with all its processes."""
    return int((wrap.memory_mib - idle_mib(wrap)) / request_mib(wrap))


def idle_mib(wrap: Wrap) -> float:
    """What a replica takes that executes nothing, in MiB."""
    return IDLE_MIB + (wrap.demand.imports_mib if wrap.demand else 0.0)


def request_mib(wrap: Wrap) -> float:
    """What each request takes that a replica executes, in MiB."""
    functions_mib = wrap.demand.memory_mib if wrap.demand else 0.0
    return max(1.0, functions_mib + FORKED_MEMORY_MIB * (len(wrap.processes) - 1))
