"""The metrics of a wrap, in the format of Prometheus."""

from __future__ import annotations

import math
import os
import resource
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wrap.dispatch.runtime import Runtime
    from wrap.net.messages import Result

#: The content type of the text format.
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
#: Upper bounds of the buckets of durations, in seconds: from a function that does nothing to a
#: workflow that OpenFaaS's default timeout would end.
_BOUNDS_S = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 20.0, 60.0),
)
#: A client may send any method. Others are counted as `_OTHER_METHOD`, as in Prometheus's own
#: client, so that nobody can make the wrap keep ever more counters.
_METHODS = frozenset(("get", "head", "post", "put", "patch", "delete", "options"))
_OTHER_METHOD = "unknown"
#: The indices of user and system time in proc(5)'s stat, after the name: of the process, and of its
#: children that have ended.
_TIMES = slice(11, 15)
#: Label values that are reported from the beginning, so that their first count is seen.
_USUAL_CODES, _USUAL_ERRORS = ("200", "500", "504"), ("process-died", "raised", "timeout")


class Counter:
    """A number that only grows, for each combination of its labels; any thread may add to it."""

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self._name, self._about, self._labels = name, about, labels
        self._lock = threading.Lock()
        self._values = defaultdict[tuple[str, ...], int](int)
        if not labels:
            self.expect()

    def expect(self, *labels: str) -> None:
        """Report 0 until something is counted: Prometheus sees no growth from nothing to 1."""
        with self._lock:
            self._values[labels] += 0

    def add(self, *labels: str, by: int = 1) -> None:
        with self._lock:
            self._values[labels] += by

    def lines(self) -> list[str]:
        with self._lock:
            values = dict(self._values)
        return _counted(self._name, self._about, self._labels, values)


class Histogram:
    """Durations, for each combination of its labels; any thread may add to it.

    Args:
        also_s: a further bound of its buckets, in seconds: the count below it is then exact.
        counted: the name and the meaning of a counter of the same durations, beside its own.
    """

    def __init__(
        self,
        name: str,
        about: str,
        *labels: str,
        also_s: float | None = None,
        counted: tuple[str, str] | None = None,
    ) -> None:
        self._name, self._about, self._labels = name, about, labels
        self._counted = counted
        self._bounds = _BOUNDS_S if also_s is None else tuple(sorted({*_BOUNDS_S, also_s}))
        self._lock = threading.Lock()
        self._counts = defaultdict[tuple[str, ...], list[int]](
            lambda: [0] * (len(self._bounds) + 1)
        )
        self._sums = defaultdict[tuple[str, ...], float](float)

    def expect(self, *labels: str) -> None:
        with self._lock:
            self._sums[labels] += 0.0

    def observe(self, seconds: float, *labels: str) -> None:
        with self._lock:
            self._counts[labels][bisect_left(self._bounds, seconds)] += 1
            self._sums[labels] += seconds

    def lines(self) -> list[str]:
        with self._lock:
            found = {each: (list(self._counts[each]), s) for each, s in self._sums.items()}
        values = dict[str, float]()
        for labels, (counts, total) in found.items():
            pairs, below = tuple(zip(self._labels, labels, strict=True)), 0
            for bound, count in zip((*self._bounds, "+Inf"), counts, strict=True):
                below += count
                values["_bucket" + _label(*pairs, ("le", str(bound)))] = below
            values["_sum" + _label(*pairs)] = round(total, 6)
            values["_count" + _label(*pairs)] = below
        lines = _metric(self._name, "histogram", self._about, values)
        if self._counted is not None:
            totals = {labels: sum(counts) for labels, (counts, _) in found.items()}
            lines += _counted(*self._counted, self._labels, totals)
        return lines


class Metrics:
    """The outcomes of requests and of function runs; any thread may call its methods.

    Args:
        slo_s: the service level objective for the time to an answer, in seconds; None if not set.
    """

    def __init__(self, slo_s: float | None = None, functions: Iterable[str] = ()) -> None:
        self._slo_s = slo_s
        self._requests = Histogram(
            "http_request_duration_seconds",
            "Seconds from the last byte of a request to its answer.",
            *("code", "method"),
            also_s=slo_s,
            counted=("http_requests_total", "Requests that were answered."),
        )
        self.failures = Counter(
            "chiron_request_failures_total",
            "Requests that were answered with an error, by its code.",
            "error",
        )
        self._runs = Histogram(
            "chiron_function_duration_seconds",
            "Seconds that a handler ran, also where it failed.",
            "function",
        )
        self.failed_runs = Counter(
            "chiron_function_failures_total",
            "Runs of a function that failed, also those that were started again, by their error.",
            *("function", "error"),
        )
        for code in _USUAL_CODES:
            self._requests.expect(code, "post")
        for error in _USUAL_ERRORS:
            self.failures.expect(error)
        for function in functions:
            self._runs.expect(function)
            for error in _USUAL_ERRORS:
                self.failed_runs.expect(function, error)

    def answered(self, method: str, code: str, seconds: float) -> None:
        """Count a request answered with an HTTP status, `seconds` after it was complete."""
        told = method.lower()
        self._requests.observe(seconds, code, told if told in _METHODS else _OTHER_METHOD)

    def ran(self, result: Result) -> None:
        """Count a task that has ended; an output emitted before its end is not a run."""
        if result.emitted is not None:
            return
        self._runs.observe(result.ended - result.started, result.function)
        if result.error is not None:
            self.failed_runs.add(result.function, result.error["code"])

    def lines(self) -> list[str]:
        lines = [
            *(self._requests.lines() + self.failures.lines()),
            *(self._runs.lines() + self.failed_runs.lines()),
        ]
        if self._slo_s is not None:
            about = "The service level objective: in how many seconds a request is to be answered."
            lines += _metric("chiron_slo_seconds", "gauge", about, {"": self._slo_s})
        return lines


class StreamMetrics:
    """The outcomes of events and of the firings of `buckets`; any thread may call its methods."""

    def __init__(self, buckets: Iterable[str]) -> None:
        self.events = Counter("chiron_events_total", "Events that were taken in.")
        self.failures = Counter(
            "chiron_firing_failures_total", "Runs of what a bucket fired that failed.", "bucket"
        )
        self.delays = Histogram(
            "chiron_firing_delay_seconds",
            "Seconds from when a bucket had to fire to the end of what it fired.",
            "bucket",
        )
        for bucket in buckets:
            self.failures.expect(bucket)
            self.delays.expect(bucket)

    def lines(self, dead_letters: int | None = None) -> list[str]:
        """Return all metrics, and the number of dead letters if there can be any."""
        lines = self.events.lines() + self.failures.lines() + self.delays.lines()
        if dead_letters is not None:
            about = "Requests and windows that were set aside: chiron dead-letters."
            lines += _metric("chiron_dead_letters", "gauge", about, {"": dead_letters})
        return lines


def replica_metrics(
    runtime: Runtime,
    replica: str,
    taken: int,
    queued: int,
    held_bytes: int,
    firings: tuple[int, int, int] | None = None,
) -> list[str]:
    """Return the load of the replica called `replica`.

    `taken` requests are in work, some of which may wait for processes; `queued` requests wait
    before that. Objects take `held_bytes`, without those on disk. For buckets, `firings` are the
    numbers of firings that run, that wait, and that may run at once.
    """
    mechanism, budget, wrap = runtime.mechanism, runtime.budget, runtime.wrap
    pressure = runtime.peer_protocol and runtime.peer_protocol.pressure
    at_once = min(runtime.route.threads, mechanism.most if wrap.slots else math.inf)
    if firings is not None:
        running, ready, at_once = firings
        taken, queued = taken + running, queued + ready
    waiting = mechanism.waiting
    leaving, held, held_s = 0, 0, 0.0
    if pressure:
        leaving, held, held_s = pressure.rules.leaving, pressure.rules.held, pressure.held_s
    which = _label(
        ("workflow", wrap.workflow),
        ("wrap", wrap.name),
        ("role", "part" if wrap.entry is None else "entry"),
        ("replica", replica),
    )
    about = "Which replica it is, of which wrap: of one that takes requests, or of a part of these."
    lines = _metric("chiron_replica_info", "gauge", about, {which: 1})
    for name, kind, about, value in (
        ("requests_in_hand", "gauge", "What it works on.", max(0, taken - waiting)),
        ("requests_waiting", "gauge", "What waits for its turn.", queued + waiting),
        ("requests_at_once", "gauge", "How many it works on at most.", at_once),
        ("held_bytes", "gauge", "Objects that wait in memory.", held_bytes),
        ("spilled_bytes", "gauge", "Objects that wait on disk.", budget.spilled if budget else 0),
        ("leaving_bytes", "gauge", "Objects on their way to other wraps.", leaving),
        ("tasks_held_back", "gauge", "Tasks that wait as too much is on its way.", held),
        ("pressure_seconds_total", "counter", "Time in which tasks were held back.", held_s),
        ("cpu_seconds_total", "counter", "CPU time of all its processes.", tree_cpu_s(os.getpid())),
        ("cores", "gauge", "Cores that it may use.", len(os.sched_getaffinity(0))),
    ):
        lines += _metric(f"chiron_{name}", kind, about, {"": round(value, 6)})
    stalls: dict[tuple[str, ...], int] = {(why,): n for why, n in runtime.loop.stalls.items()}
    about = "Events that took the loop over 5 ms, as it computed (cpu) or waited (wait)."
    return lines + _counted("chiron_loop_stalls_total", about, ("cause",), stalls)


def tree_cpu_s(root: int, proc: Path = Path("/proc")) -> float:
    """Return the CPU seconds of the process `root` and its descendants, including ended ones.

    If the kernel does not list children, only the process and its ended children count.
    """
    ticks, left = 0, [root]
    while left:
        process = proc / str(left.pop())
        with suppress(OSError):  # it has ended: its time is now in its parent's
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[_TIMES]))
            for thread in (process / "task").iterdir():
                with suppress(OSError):
                    left += map(int, (thread / "children").read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")


def process_metrics() -> list[str]:
    """Return the metrics of this process, under the names of Prometheus's own clients."""
    pages = Path("/proc/self/statm").read_text().split()
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    most_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lines = list[str]()
    for name, kind, about, value in (
        ("cpu_seconds_total", "counter", "CPU time, user and system.", time.process_time()),
        ("resident_memory_bytes", "gauge", "Memory in RAM.", int(pages[1]) * page_bytes),
        ("virtual_memory_bytes", "gauge", "Address space.", int(pages[0]) * page_bytes),
        ("open_fds", "gauge", "Open file descriptors.", files),
        ("max_fds", "gauge", "Most file descriptors that it may open.", most_files),
        ("start_time_seconds", "gauge", "When it started, since the epoch.", _STARTED_S),
    ):
        lines += _metric(f"process_{name}", kind, about, {"": round(value, 6)})
    return lines


def _started_s() -> float:
    """Return when this process started, in seconds since the epoch."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    booted_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted_s + int(fields[19]) / os.sysconf("SC_CLK_TCK")  # proc(5): starttime


#: Computed once: it would change with each correction of the clock.
_STARTED_S = _started_s()


def _counted(
    name: str, about: str, labels: Sequence[str], values: Mapping[tuple[str, ...], int]
) -> list[str]:
    return _metric(
        *(name, "counter", about),
        {_label(*zip(labels, each, strict=True)): n for each, n in values.items()},
    )


def _label(*pairs: Any) -> str:
    """Format names and values of labels, as they follow a metric's name."""
    told = []
    for name, value in pairs:
        escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        told.append(f'{name}="{escaped}"')
    return f"{{{','.join(told)}}}" if told else ""


def _metric(name: str, kind: str, about: str, values: Mapping[str, float]) -> list[str]:
    """Format a metric; `values` are by the text that follows its name."""
    head = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    return head + [f"{name}{more} {value}" for more, value in values.items()]
