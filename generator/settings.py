"""The settings of a wrap's OpenFaaS function that follow from its plan."""

from __future__ import annotations

from collections.abc import Mapping

from workflow.errors import ChironError
from workflow.plan import Plan, Wrap
from workflow.units import parse_duration_ms

#: A request may take this many times its predicted latency before it is given up.
TIMEOUT_FACTOR = 10.0
#: Shortest timeout: cold caches and a busy machine make short functions slow, not wrong.
SHORTEST_TIMEOUT_S = 10.0
#: The timeout where nothing was predicted, OpenFaaS's own default.
DEFAULT_TIMEOUT_S = 60.0
#: What each party allows on top of the one that it calls: function < watchdog < client.
TIMEOUT_STEP_S = 2.0
#: Requests that a wrap takes in at once for each of its CPUs.
THREADS_PER_CPU = 4


def timeout_s(plan: Plan) -> float:
    """Seconds until a wrap gives up on a request, whole so that OpenFaaS's durations are."""
    if plan.predicted is None:
        return DEFAULT_TIMEOUT_S
    predicted_s = plan.predicted.high_ms / 1000
    return float(-(-max(SHORTEST_TIMEOUT_S, TIMEOUT_FACTOR * predicted_s) // 1))


def wrap_environment(plan: Plan, wrap: Wrap) -> dict[str, str]:
    """Timeouts that agree (function < watchdog), and threads for the requests."""
    seconds = timeout_s(plan)
    outer = f"{seconds + TIMEOUT_STEP_S:g}s"
    return {
        "exec_timeout": outer,
        "read_timeout": outer,
        "write_timeout": outer,
        "WAITRESS_THREADS": str(THREADS_PER_CPU * wrap.cpus),
    }


def client_timeout_s(environment: Mapping[str, str]) -> float:
    """Seconds that a client waits for a function with the variables `environment`."""
    try:
        watchdog_s = parse_duration_ms(environment.get("exec_timeout", "")) / 1000
    except ChironError:
        watchdog_s = DEFAULT_TIMEOUT_S  # not set, or composed as in Go: 1m30s
    return watchdog_s + TIMEOUT_STEP_S
