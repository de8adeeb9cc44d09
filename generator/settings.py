"""The settings of a wrap's OpenFaaS function that follow from its plan."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from workflow.plan import Plan, Wrap

#: A request may take this many times its predicted latency before it is given up.
TIMEOUT_FACTOR = 10.0
#: Shortest timeout: cold caches and a busy machine make short functions slow, not wrong.
SHORTEST_TIMEOUT_S = 10.0
#: The timeout where nothing was predicted, OpenFaaS's own default.
DEFAULT_TIMEOUT_S = 60.0
#: What each party allows on top of the one that it calls: function < watchdog < client.
TIMEOUT_STEP_S = 2.0
#: Requests that a wrap runs at once for each CPU of the plan's widest wrap: at least, which is what
#: it gets where nothing is known of its functions, and at most.
FEWEST_PER_CPU, MOST_PER_CPU = 4, 32
#: What a wrap takes before it runs anything, and a process for one request, with room to breathe:
#: 24 and 2 MiB measured, 34 with the watchdog.
IDLE_MIB, PROCESS_MIB = 48.0, 4.0
#: Most requests that a wrap takes in: below the connections that its server accepts.
MOST_INFLIGHT = 512
#: Workers in each place of a pool, at least: while one waits, another can compute.
POOL_CONCURRENCY = 2
#: One thread for each native library (BLAS, OpenMP and the like), by the variables that they read:
#: a plan gives each process one core, and several processes that compute on all of them at once
#: make each other slower. What a function's own variables say wins.
NATIVE_THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|h|m|s)", re.ASCII)
_SECONDS_PER_UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def timeout_s(plan: Plan, given_s: float | None = None) -> float:
    """Seconds until a wrap gives up on a request: as given, else from the prediction.

    Whole seconds, so that OpenFaaS's durations are.
    """
    if given_s is not None:
        return given_s
    if plan.predicted is None:
        return DEFAULT_TIMEOUT_S
    predicted_s = plan.predicted.high_ms / 1000
    return float(-(-max(SHORTEST_TIMEOUT_S, TIMEOUT_FACTOR * predicted_s) // 1))


def wrap_environment(plan: Plan, wrap: Wrap, given_s: float | None = None) -> dict[str, str]:
    """The variables of a wrap, each of which agrees with the others.

    - Timeouts: a function's is below its watchdog's, which is below its client's.
    - Threads: all wraps of a plan have as many (`concurrency`), as each may be called by every
      request that the entry runs. A pool may have a worker for each in every place.
    - ``max_inflight``: as many requests as can be answered before they time out where they come
      all at once. More would be taken in only to fail.
    - ``WRAP_CPUS``: the cores that the wrap keeps to where its sandbox has more.
    - ``WRAP_MEMORY_MIB``: its limit, of which it keeps some from one request to the next.
    """
    seconds = timeout_s(plan, given_s)
    outer = f"{seconds + TIMEOUT_STEP_S:.3f}".rstrip("0").rstrip(".") + "s"
    threads = concurrency(plan)
    variables = {
        "exec_timeout": outer,
        "read_timeout": outer,
        "write_timeout": outer,
        "WAITRESS_THREADS": str(threads),
        "max_inflight": str(_most_inflight(plan, seconds, threads)),
        "WRAP_CPUS": str(wrap.cpus),
        "WRAP_MEMORY_MIB": str(wrap.memory_mib),
    }
    if plan.mechanism == "pool":
        workers = min(threads, _fitting(wrap)) if wrap.demand else 0
        variables["pool_concurrency"] = str(max(POOL_CONCURRENCY, wrap.cpus, workers))
    return variables


def concurrency(plan: Plan) -> int:
    """How many requests each wrap of `plan` runs at once.

    As many as keep its CPUs busy: by Little's law, the requests/s that the wrap with the least CPU
    for its functions can do, times the seconds that one takes. Functions that wait leave their
    CPU to other requests. No more than fit into the memory that the plan gives each wrap.
    """
    widest = max(wrap.cpus for wrap in plan.wraps)
    rate = _requests_per_ms(plan)
    if rate is None or plan.predicted is None:
        return FEWEST_PER_CPU * widest
    wanted = math.ceil(rate * plan.predicted.latency_ms)  # more only contend for the CPUs
    bounded = min(wanted, MOST_PER_CPU * widest, *map(_fitting, plan.wraps))
    return max(FEWEST_PER_CPU * widest, bounded)


def _requests_per_ms(plan: Plan) -> float | None:
    """What the CPUs of the busiest wrap can do; None where its demand is not known, or nothing."""
    demands = [(wrap.cpus, wrap.demand.cpu_ms) for wrap in plan.wraps if wrap.demand]
    return min((cpus / cpu_ms for cpus, cpu_ms in demands if cpu_ms), default=None)


def _fitting(wrap: Wrap) -> int:
    """How many requests at once have room in the wrap's memory."""
    further = max(len(stage.processes) - 1 for stage in wrap.stages)
    functions_mib = wrap.demand.memory_mib if wrap.demand else 0.0
    idle_mib = IDLE_MIB + (wrap.demand.imports_mib if wrap.demand else 0.0)
    return int((wrap.memory_mib - idle_mib) / max(1.0, functions_mib + PROCESS_MIB * further))


def _most_inflight(plan: Plan, seconds: float, threads: int) -> int:
    if plan.predicted is None:
        return max(threads, MOST_INFLIGHT)
    one_after_another = 1 / max(plan.predicted.high_ms, 1.0)
    in_time = int(1000 * seconds * max(one_after_another, _requests_per_ms(plan) or 0.0))
    return max(threads, min(MOST_INFLIGHT, in_time))


def duration_s(text: str) -> float | None:
    """Seconds of a duration of OpenFaaS (``90s``, ``1m30s``, ``60``); None for none, or no limit.

    Examples
    --------
    >>> duration_s("1m30s")
    90.0
    """
    if text.isdecimal():
        return float(text) or None
    parts = _DURATION.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS_PER_UNIT[unit] for number, unit in parts) or None


def function_timeouts_s(variables: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    """Function -> seconds that it may take, where its variables set ``exec_timeout``."""
    limits = {name: duration_s(its.get("exec_timeout", "")) for name, its in variables.items()}
    return {name: limit for name, limit in limits.items() if limit is not None}


def client_timeout_s(environment: Mapping[str, str]) -> float:
    """Seconds that a client waits for a function with the variables `environment`."""
    watchdog_s = duration_s(environment.get("exec_timeout", "")) or DEFAULT_TIMEOUT_S
    return watchdog_s + TIMEOUT_STEP_S
