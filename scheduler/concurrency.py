"""How many requests a wrap executes at once, and their memory."""

from __future__ import annotations

from chiron.predictor.mechanisms import mechanism_of
from chiron.workflow.plan import Plan, Wrap

#: The least concurrency for each CPU of the plan's widest wrap, used if its functions are unknown.
FEWEST_PER_CPU = 4
#: The memory of a wrap before it runs anything, with a margin: 24 MiB measured, 34 with the
#: watchdog.
IDLE_MIB = 48.0
#: The share of the time in which a wrap's CPUs may idle although requests wait.
_IDLE = 0.02
#: The most requests that a wrap accepts: below the connections that its server accepts.
MOST_INFLIGHT = 512


def concurrency(plan: Plan) -> int:
    """Return how many requests each wrap of `plan` runs at once.

    Enough to keep the CPUs busy of the wrap with the least CPU for its functions: see
    `keeping_busy`. Functions that wait leave their CPU to other requests. At most as many as fit
    into the memory of each wrap, with their processes, if the functions' demand is known: even
    below the least.
    """
    wanted = FEWEST_PER_CPU * max(wrap.cpus for wrap in plan.wraps)
    rate = requests_per_ms(plan)
    if rate is not None and plan.predicted is not None:
        waits = rate * plan.predicted.latency_ms - 1  # in units of a request's computing time
        wanted = max(wanted, keeping_busy(max(0.0, waits)))
    return max(1, min([wanted, *(_fitting(wrap) for wrap in plan.wraps if wrap.demand)]))


def keeping_busy(waits: float) -> int:
    """Return how many requests at once keep the CPUs of a wrap busy; more only contend for them.

    Each request waits `waits` times as long as it computes. By Little's law `waits` + 1 requests
    suffice if they never meet. But times vary: of N requests that compute one after another, and
    then wait for a random time, none computes for the share B(N, waits) of the time. That is
    Erlang's loss formula, the idle repairman in the model of machine interference (Palm, 1947). The
    result is the least N with a share of at most `_IDLE`, and at most `MOST_INFLIGHT`.

    >>> keeping_busy(0.0), keeping_busy(4.0), keeping_busy(99.0)
    (1, 9, 112)
    """
    count, idle = 0, 1.0
    while idle > _IDLE and count < MOST_INFLIGHT:
        count += 1
        idle = waits * idle / (count + waits * idle)
    return count


def requests_per_ms(plan: Plan) -> float | None:
    """Return the capacity of the busiest wrap's CPUs; None if no demand is known and positive."""
    demands = [(wrap.cpus, wrap.demand.cpu_ms) for wrap in plan.wraps if wrap.demand]
    return min((cpus / cpu_ms for cpus, cpu_ms in demands if cpu_ms), default=None)


def _fitting(wrap: Wrap) -> int:
    """Return how many requests at once fit into the wrap's memory, with all their processes."""
    return int((wrap.memory_mib - idle_mib(wrap)) / request_mib(wrap))


def idle_mib(wrap: Wrap) -> float:
    """Return the memory of an idle replica, in MiB."""
    return IDLE_MIB + (wrap.demand.imports_mib if wrap.demand else 0.0)


def request_mib(wrap: Wrap) -> float:
    """Return the memory of each request that a replica executes, in MiB."""
    functions_mib = wrap.demand.memory_mib if wrap.demand else 0.0
    further_mib = mechanism_of(wrap.mechanism).further_mib * (len(wrap.processes) - 1)
    return max(1.0, functions_mib + further_mib)
