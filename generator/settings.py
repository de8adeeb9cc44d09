"""The settings of a wrap's OpenFaaS function that follow from its plan."""

from __future__ import annotations

from collections.abc import Mapping

from chiron.predictor.mechanisms import mechanism_of
from chiron.scheduler.concurrency import (
    MOST_INFLIGHT,
    concurrency,
    idle_mib,
    request_mib,
    requests_per_ms,
)
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.units import LONGEST_S, go_duration_s

#: A request may take this many times its predicted latency before it is given up.
TIMEOUT_FACTOR = 10.0
#: Shortest timeout: cold caches and a busy machine make short functions slow, not wrong.
SHORTEST_TIMEOUT_S = 10.0
#: The timeout where nothing was predicted, OpenFaaS's own default.
DEFAULT_TIMEOUT_S = 60.0
#: What each party allows on top of the one that it calls: function < watchdog < client.
TIMEOUT_STEP_S = 2.0
#: How long of-watchdog sleeps once it is told to end, by default for as long as a request may take:
#: faasd kills after 30 s, and then fails to remove the function.
WATCHDOG_SLEEP = "1s"
#: How long of a wrap that holds events in its memory, or that others call directly: it runs these
#: before it ends. The watchdog knows nothing of them, and the sandbox ends with it; the wrap wakes
#: it when it has run them.
HOLDING_WATCHDOG_SLEEP = "25s"
#: Objects that wait may take so much of what functions leave of a wrap's memory, and at least so
#: much: the limit has that much to spare beyond what is measured.
OBJECTS_SHARE, LEAST_OBJECTS_MIB = 0.5, 8
#: CPU that a wrap requests for each of its plan's CPUs, in thousandths of a core. Kubernetes keeps
#: that much free on a node for the wrap, which may take up to its limit of what others leave.
REQUESTED_PER_CPU = 100
#: One thread for each native library (BLAS, OpenMP and the like), by the variables that they read:
#: a plan gives each process one core, and several processes that compute on all of them at once
#: make each other slower. On two free cores two threads of OpenBLAS are 1.3 to 1.8 times as fast,
#: for up to 1.9 times the CPU time. What a function's own variables say wins, and is profiled.
NATIVE_THREADS = {
    **dict.fromkeys(
        (
            f"{library}_NUM_THREADS"
            for library in ("OMP", "OPENBLAS", "GOTO", "MKL", "BLIS", "NUMEXPR", "RAYON", "NUMBA")
        ),
        "1",
    ),
    "NUMEXPR_MAX_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}


def timeout_s(plan: Plan, given_s: float | None = None, functions_s: float = 0.0) -> float:
    """Seconds until a wrap gives up on a request: as given, else from the prediction.

    Without a given one, it is no less than `functions_s`: see `functions_timeout_s`. Whole seconds,
    so that OpenFaaS's durations are.
    """
    if given_s is not None:
        return given_s
    found_s = DEFAULT_TIMEOUT_S
    if plan.predicted is not None:
        found_s = max(SHORTEST_TIMEOUT_S, TIMEOUT_FACTOR * plan.predicted.high_ms / 1000)
    return float(-(-max(found_s, functions_s) // 1))


def wrap_environment(plan: Plan, wrap: Wrap, given_s: float | None = None) -> dict[str, str]:
    """The variables of a wrap, each of which agrees with the others.

    - Timeouts: a function's is below its watchdog's, which is below its client's.
    - Requests at once: all wraps of a plan have as many (`concurrency`), as each may be called by
      every request that the entry runs; what its mechanism makes of that is among them.
    - ``max_inflight``: as many requests as can be answered before they time out where they come
      all at once. More would be taken in only to fail.
    - ``WRAP_CPUS``: the cores that the wrap keeps to where its sandbox has more.
    - ``WRAP_MEMORY_MIB``: its limit, of which it keeps some from one request to the next.
    - ``WRAP_OBJECTS_MIB``: what objects that wait may take of it.
    """
    seconds = timeout_s(plan, given_s)
    outer = f"{seconds + TIMEOUT_STEP_S:.3f}".rstrip("0").rstrip(".") + "s"
    threads = concurrency(plan)
    requests = threads if wrap.demand else 0
    return {
        "exec_timeout": outer,
        "read_timeout": outer,
        "write_timeout": outer,
        "healthcheck_interval": WATCHDOG_SLEEP,
        "WAITRESS_THREADS": str(threads),
        "max_inflight": str(_most_inflight(plan, seconds, threads)),
        "WRAP_CPUS": str(wrap.cpus),
        "WRAP_MEMORY_MIB": str(wrap.memory_mib),
        **_sink(wrap, requests),
        **mechanism_of(wrap.mechanism).environment(wrap.cpus, requests),
    }


def _sink(wrap: Wrap, requests: int) -> dict[str, str]:
    """FaaSFlow's Quota(G): of what so many requests at once leave of the wrap's memory, a share.

    The rest is its reserve for the unforeseen. Nothing is said where it is not known what the
    functions take.
    """
    if wrap.demand is None:
        return {}
    left_mib = wrap.memory_mib - idle_mib(wrap) - requests * request_mib(wrap)
    return {"WRAP_OBJECTS_MIB": str(max(LEAST_OBJECTS_MIB, int(OBJECTS_SHARE * left_mib)))}


def _most_inflight(plan: Plan, seconds: float, threads: int) -> int:
    if plan.predicted is None:
        return max(threads, MOST_INFLIGHT)
    one_after_another = 1 / max(plan.predicted.high_ms, 1.0)
    in_time = int(1000 * seconds * max(one_after_another, requests_per_ms(plan) or 0.0))
    return max(threads, min(MOST_INFLIGHT, in_time))


def function_timeouts_s(variables: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    """Function -> seconds that it may take, where its variables set ``exec_timeout``."""
    limits = {name: go_duration_s(its.get("exec_timeout", "")) for name, its in variables.items()}
    return {name: limit for name, limit in limits.items() if limit is not None}


def functions_timeout_s(workflow: Workflow, limits_s: Mapping[str, float]) -> float:
    """Seconds that a request may take by the limits of its functions, those without not counted.

    Tasks of a stage run at once; those of a workflow that decides may run one after another.
    """
    stages = workflow.stages
    if workflow.machine is not None:
        stages = tuple((task.name,) for task in workflow.tasks)
    limits = ([limits_s.get(workflow.function_of(task), 0.0) for task in each] for each in stages)
    return min(sum(map(max, limits)), LONGEST_S)


def client_timeout_s(environment: Mapping[str, str]) -> float:
    """Seconds that a client waits for a function with the variables `environment`."""
    watchdog_s = go_duration_s(environment.get("exec_timeout", "")) or DEFAULT_TIMEOUT_S
    return watchdog_s + TIMEOUT_STEP_S
