"""The settings of a wrap's OpenFaaS function, derived from its plan."""

from __future__ import annotations

import re
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

#: The timeout of a request, in multiples of its predicted latency.
TIMEOUT_FACTOR = 10.0
#: The shortest timeout: cold caches and a busy machine make short functions slow, not wrong.
SHORTEST_TIMEOUT_S = 10.0
#: The timeout without a prediction, OpenFaaS's own default.
DEFAULT_TIMEOUT_S = 60.0
#: Each caller's timeout exceeds its callee's by this: function < watchdog < client.
TIMEOUT_STEP_S = 2.0
#: The sleep of of-watchdog after SIGTERM. Its default is the timeout of a request, but faasd kills
#: after 30 s, and then fails to remove the function.
WATCHDOG_SLEEP = "1s"
#: The same for a wrap that stores events in memory, or that other wraps call directly: it finishes
#: that work before it ends. The watchdog does not count that work, and the sandbox ends with the
#: watchdog. The wrap wakes it when the work is done.
HOLDING_WATCHDOG_SLEEP = "25s"
#: The share of a wrap's memory beyond its functions that waiting objects may use, and the least
#: amount: the memory limit includes that reserve.
OBJECTS_SHARE, LEAST_OBJECTS_MIB = 0.5, 8
#: The requested CPU per CPU of the plan, in thousandths of a core. Kubernetes reserves that much on
#: a node for the wrap, which may use idle CPU up to its limit.
REQUESTED_PER_CPU = 100
#: The service in OpenTelemetry's resource attributes.
_SERVICE = re.compile(r"(?:^|,)\s*service\.name=([^,]*)")
#: Variables that limit native libraries (BLAS, OpenMP and the like) to one thread. A plan gives
#: each process one core, and several processes that compute on all cores slow each other down. On
#: two free cores two threads of OpenBLAS are 1.3 to 1.8 times as fast, for up to 1.9 times the CPU
#: time. A function's own variables take precedence, and are profiled.
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
    """Return the timeout of a request in seconds: as given, or from the prediction.

    The latter is at least `functions_s` (see `functions_timeout_s`), rounded up to whole seconds as
    OpenFaaS's durations are.
    """
    if given_s is not None:
        return given_s
    found_s = DEFAULT_TIMEOUT_S
    if plan.predicted is not None:
        found_s = max(SHORTEST_TIMEOUT_S, TIMEOUT_FACTOR * plan.predicted.high_ms / 1000)
    return float(-(-max(found_s, functions_s) // 1))


def wrap_environment(plan: Plan, wrap: Wrap, given_s: float | None = None) -> dict[str, str]:
    """Return the variables of a wrap, consistent with each other.

    - Timeouts: a function's is below its watchdog's, which is below its client's.
    - Concurrent requests: all wraps of a plan have the same limit (`concurrency`), as every request
      that the entry runs may call each wrap. The mechanism adds its own variables for it.
    - ``max_inflight``: the requests that can be answered before they time out if all arrive at
      once. More would be accepted only to fail.
    - ``WRAP_CPUS``: the cores that the wrap uses even if its sandbox has more.
    - ``WRAP_MEMORY_MIB``: its limit, of which it keeps some from one request to the next.
    - ``WRAP_OBJECTS_MIB``: the part of it that waiting objects may use.
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


def service_environment(variables: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the variable by which spans have the wraps' names as their services.

    It is left out if all functions, by their `variables`, name one service, or none does.
    """
    named = {_service_of(each) for each in variables.values()}
    return {"WRAP_SERVICE_NAME": ""} if len(named) > 1 else {}


def _service_of(variables: Mapping[str, str]) -> str:
    """Return the service that a function names for OpenTelemetry; empty if it names none."""
    found = _SERVICE.search(variables.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    return variables.get("OTEL_SERVICE_NAME") or (found[1] if found else "")


def _sink(wrap: Wrap, requests: int) -> dict[str, str]:
    """Return FaaSFlow's Quota(G): a share of the memory that concurrent requests leave free.

    The rest is a reserve for the unforeseen. Empty if the functions' demand is unknown.
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
    """Return the limits in seconds of the functions that set ``exec_timeout``."""
    limits = {name: go_duration_s(its.get("exec_timeout", "")) for name, its in variables.items()}
    return {name: limit for name, limit in limits.items() if limit is not None}


def functions_timeout_s(workflow: Workflow, limits_s: Mapping[str, float]) -> float:
    """Return the longest time of a request by its functions' limits, in seconds.

    Functions without a limit count as 0. Tasks of a stage run concurrently; tasks of a state
    machine may run one after another.
    """
    stages = workflow.stages
    if workflow.machine is not None:
        stages = tuple((task.name,) for task in workflow.tasks)
    limits = ([limits_s.get(workflow.function_of(task), 0.0) for task in each] for each in stages)
    return min(sum(map(max, limits)), LONGEST_S)


def client_timeout_s(environment: Mapping[str, str]) -> float:
    """Return a client's timeout for a function with the variables `environment`, in seconds."""
    watchdog_s = go_duration_s(environment.get("exec_timeout", "")) or DEFAULT_TIMEOUT_S
    return watchdog_s + TIMEOUT_STEP_S
