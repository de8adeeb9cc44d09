"""What a wrap tells monitoring: counters and a histogram, as Prometheus reads them."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping

#: The content type of the text format.
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
#: Upper bounds of the buckets of delays, in seconds.
_BOUNDS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


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

    def text(self, held_bytes: int) -> str:
        """All of it; `held_bytes` are those of the objects that wait or are worked on."""
        with self._lock:
            lines = [
                *_metric("chiron_events_total", "counter", {"": self._events}),
                *_metric("chiron_held_bytes", "gauge", {"": held_bytes}),
                *_metric(
                    "chiron_firing_failures_total",
                    "counter",
                    {f"{{{_label(name)}}}": count for name, count in self._failures.items()},
                ),
            ]
            values = dict[str, float]()
            for name, counts in self._delays.items():
                label, below = _label(name), 0
                for bound, count in zip((*map(str, _BOUNDS_S), "+Inf"), counts, strict=True):
                    below += count
                    values[f'_bucket{{{label},le="{bound}"}}'] = below
                values[f"_sum{{{label}}}"] = round(self._delay_s[name], 6)
                values[f"_count{{{label}}}"] = below
        lines += _metric("chiron_firing_delay_seconds", "histogram", values)
        return "\n".join(lines) + "\n"


def _label(bucket: str) -> str:
    escaped = bucket.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'bucket="{escaped}"'


def _metric(name: str, kind: str, values: Mapping[str, float]) -> list[str]:
    return [f"# TYPE {name} {kind}", *(f"{name}{label} {n}" for label, n in values.items())]
