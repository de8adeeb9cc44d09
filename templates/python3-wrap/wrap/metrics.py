"""What a wrap tells monitoring: counters and a histogram, as Prometheus reads them."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
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
        self._fired: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._delays = [0] * (len(_BOUNDS_S) + 1)
        self._delay_s = 0.0

    def took(self, events: int) -> None:
        """Events are held."""
        with self._lock:
            self._events += events

    def ended(self, bucket: str, delay_s: float) -> None:
        """What a bucket has fired has ended, so long after it was due."""
        with self._lock:
            self._fired[bucket] += 1
            self._delays[bisect_left(_BOUNDS_S, delay_s)] += 1
            self._delay_s += delay_s

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
                *_metric("chiron_firings_total", "counter", _by_bucket(self._fired)),
                *_metric("chiron_firing_failures_total", "counter", _by_bucket(self._failures)),
            ]
            counts, below = dict[str, float](), 0
            for bound, count in zip((*map(str, _BOUNDS_S), "+Inf"), self._delays, strict=True):
                below += count
                counts[f'_bucket{{le="{bound}"}}'] = below
            counts |= {"_sum": round(self._delay_s, 6), "_count": below}
        lines += _metric("chiron_firing_delay_seconds", "histogram", counts)
        return "\n".join(lines) + "\n"


def _by_bucket(counts: Mapping[str, float]) -> dict[str, float]:
    return {f'{{bucket="{_escaped(name)}"}}': count for name, count in counts.items()}


def _escaped(name: str) -> str:
    return name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _metric(name: str, kind: str, values: Mapping[str, float]) -> list[str]:
    return [f"# TYPE {name} {kind}", *(f"{name}{label} {n}" for label, n in values.items())]
