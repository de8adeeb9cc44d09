"""The cost of crashes if tasks are retried, and if whole workflows are.

References
----------
Pheromone (TNET'24), section VI: a chain of four sleeps of 100 ms, each of which crashes with a
probability of 1 %. There a client gets no error from a crash and retries after 800 ms. Here a
client gets an error at once. Both are measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

from chiron.deployment.launcher import Launcher
from chiron.evaluation.runtime.deployed import PROCESS, Client, direct, shape, workflows
from chiron.evaluation.runtime.handlers import crashing
from chiron.evaluation.runtime.rounds import Figure, resampled
from chiron.workflow.errors import ChironError

_CRASHING = "chiron-evaluate-crashing"
_CHAIN, _CLIENTS, _REQUESTS_A_ROUND = 4, 8, 20
#: The timeout after which the paper's client retries, in seconds.
_PATIENCE_S = 0.8
#: The errors in a row after which a request has failed: crashes hardly cause so many.
_MOST_ERRORS = 10
_REQUEST = b"{}"


class _Way(NamedTuple):
    """How crashes are handled: the attempts of a task, and whether the client reacts to errors."""

    name: str
    attempts: int
    is_told: bool = True


_WAYS = (
    _Way("tasks run again", 2),
    _Way("the workflow runs again, after an error", 1),
    _Way("the workflow runs again, after 800 ms", 1, is_told=False),
)


def measure_reruns(
    launcher: Launcher, rounds: int, progress: Callable[[str], None]
) -> tuple[Figure, ...]:
    """Return 99th percentiles of `rounds` times 20 requests each way, in turn, and their ratios."""
    shapes = [
        shape(f"attempts-{attempts}", _CRASHING, [PROCESS] * _CHAIN, attempts=attempts)
        for attempts in (1, 2)
    ]
    with workflows(launcher, shapes, {_CRASHING: crashing}) as deployed:
        entries = {attempts: deployed[f"attempts-{attempts}"].entry for attempts in (1, 2)}

        def ask_all(number: int) -> dict[str, list[float]]:
            taken: dict[str, list[float]] = {way.name: [] for way in _WAYS}
            clients = {a: direct(launcher.gateway.url, entry) for a, entry in entries.items()}
            with closing(clients[1]), closing(clients[2]):
                for turn in range(rounds * _REQUESTS_A_ROUND // _CLIENTS * len(_WAYS)):
                    way = _WAYS[(number + turn) % len(_WAYS)]
                    taken[way.name].append(_latency_ms(clients[way.attempts], way))
            return taken

        progress(f"{rounds * _REQUESTS_A_ROUND} requests each way, {_CLIENTS} at a time")
        with ThreadPoolExecutor(_CLIENTS) as threads:
            each = list(threads.map(ask_all, range(_CLIENTS)))
    taken = {way.name: [ms for one in each for ms in one[way.name]] for way in _WAYS}
    return tuple(_figures(taken))


def _latency_ms(client: Client, way: _Way) -> float:
    """Return the latency with retries; raises the error of the last of `_MOST_ERRORS` tries."""
    start, errors = time.perf_counter(), 0
    while True:
        begun = time.perf_counter()
        try:
            client.post(_REQUEST)
            return (time.perf_counter() - start) * 1000
        except ChironError:
            errors += 1
            if errors == _MOST_ERRORS:
                raise
            if not way.is_told:
                time.sleep(max(0.0, begun + _PATIENCE_S - time.perf_counter()))


def _figures(taken: dict[str, list[float]]) -> list[Figure]:
    names = [way.name for way in _WAYS]
    found = [resampled(f"p99, {n}", [taken[n]], lambda p99: p99[0]) for n in names]
    first, *others = names
    for name in others:
        pair = [taken[first], taken[name]]
        found.append(resampled(f"p99, {first} / {name}", pair, lambda p99: p99[0] / p99[1], "x"))
    return found
