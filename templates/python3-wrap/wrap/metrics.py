"""What a wrap tells monitoring, as Prometheus reads it."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wrap.runtime import Runtime

#: The content type of the text format.
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
#: Upper bounds of the buckets of delays, in seconds.
_BOUNDS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def replica_metrics(
    runtime: Runtime,
    replica: str,
    taken: int,
    queued: int,
    held_bytes: int,
    firings: tuple[int, int, int] | None = None,
) -> list[str]:
    """What the replica called `replica` has to do.

    That is requests that it has `taken`, of which some may wait for processes, and those `queued`
    before that; and objects of so many bytes, but for those on disk. Of buckets it is what has
    fired: how many `firings` run, how many wait, and how many may run at once.
    """
    mechanism, sink = runtime.mechanism, runtime.sink
    pressure = runtime.exchange and runtime.exchange.pressure
    at_once = min(runtime.route.threads, mechanism.most if runtime.wrap.slots else math.inf)
    if firings is not None:
        running, ready, at_once = firings
        taken, queued = taken + running, queued + ready
    waiting = mechanism.waiting
    label = f"{{{_label('wrap', runtime.wrap.name)},{_label('replica', replica)}}}"
    values = [
        ("chiron_requests_in_hand", "gauge", max(0, taken - waiting)),
        ("chiron_requests_waiting", "gauge", queued + waiting),
        ("chiron_requests_at_once", "gauge", at_once),
        ("chiron_held_bytes", "gauge", held_bytes),
        ("chiron_spilled_bytes", "gauge", sink.spilled if sink else 0),
        ("chiron_leaving_bytes", "gauge", pressure.leaving if pressure else 0),
        ("chiron_tasks_held_back", "gauge", pressure.held if pressure else 0),
        ("chiron_pressure_seconds_total", "counter", pressure.held_s if pressure else 0),
    ]
    lines = _metric("chiron_replica_info", "gauge", {label: 1})
    for name, kind, value in values:
        lines += _metric(name, kind, {"": round(value, 6)})
    return lines


def page(lines: Iterable[str]) -> str:
    """Lines as Prometheus reads them."""
    return "\n".join(lines) + "\n"


class StreamMetrics:
    """What became of events; any thread may call its methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events = 0
        self._failures: Counter[str] = Counter()
        self._delays = defaultdict[str, list[int]](lambda: [0] * (len(_BOUNDS_S) + 1))
        self._delay_s = defaultdict[str, float](float)

    def took(self, events: int) -> None:
        """Events are held."""
        with self._lock:
            self._events += events

    def ended(self, bucket: str, delay_s: float) -> None:
        """What a bucket has fired has ended, so long after it was due."""
        with self._lock:
            self._delays[bucket][bisect_left(_BOUNDS_S, delay_s)] += 1
            self._delay_s[bucket] += delay_s

    def failed(self, bucket: str) -> None:
        """A run of what a bucket has fired has failed."""
        with self._lock:
            self._failures[bucket] += 1

    def lines(self) -> list[str]:
        """All of it."""
        with self._lock:
            lines = [
                *_metric("chiron_events_total", "counter", {"": self._events}),
                *_metric(
                    "chiron_firing_failures_total",
                    "counter",
                    {
                        f"{{{_label('bucket', name)}}}": count
                        for name, count in self._failures.items()
                    },
                ),
            ]
            values = dict[str, float]()
            for name, counts in self._delays.items():
                label, below = _label("bucket", name), 0
                for bound, count in zip((*map(str, _BOUNDS_S), "+Inf"), counts, strict=True):
                    below += count
                    values[f'_bucket{{{label},le="{bound}"}}'] = below
                values[f"_sum{{{label}}}"] = round(self._delay_s[name], 6)
                values[f"_count{{{label}}}"] = below
        return lines + _metric("chiron_firing_delay_seconds", "histogram", values)


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{name}="{escaped}"'


def _metric(name: str, kind: str, values: Mapping[str, float]) -> list[str]:
    return [f"# TYPE {name} {kind}", *(f"{name}{label} {n}" for label, n in values.items())]
