"""Compares the first two of three answers with the second fastest replica, with a straggler.

References
----------
Pheromone (NSDI'23), table I: the trigger Redundant, for straggler mitigation.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import NamedTuple

from chiron.deployment.launcher import Launcher
from chiron.evaluation.runtime.deployed import ALONE, BENCHMARKS, Client, buckets, direct
from chiron.evaluation.runtime.rounds import Figure, resampled
from chiron.workflow.errors import ChironError

_NAME = "redundant"
_FUNCTIONS = ("spread-question", "ask-replica", "merge-answers")
#: A replica's service time is log-normal: its median, and the deviation of its logarithm. One of
#: the three replicas in each request is a straggler, `_STRAGGLER` times as slow.
_MEDIAN_MS, _SIGMA, _STRAGGLER = 10.0, 0.2, 20.0
_CLIENTS, _REQUESTS_A_ROUND = 4, 20
_FIRST_TWO, _ALL = "first two of three", "all three"
_OPTIONS: dict[str, dict[str, object]] = {
    _FIRST_TWO: {"trigger": "redundant", "k": 2, "n": 3},
    _ALL: {"trigger": "dynamic-join"},
}


class _Taken(NamedTuple):
    """Latencies of one request in ms: each way, and with only the second fastest replica."""

    ways_ms: dict[str, float]
    second_ms: float


def measure_redundant(
    launcher: Launcher, rounds: int, progress: Callable[[str], None]
) -> tuple[Figure, ...]:
    """Return 99th percentiles of `rounds` times 20 requests, four at a time, each way in turn."""
    document = json.loads((BENCHMARKS / _NAME / "workflow.json").read_text(encoding="utf-8"))
    with ExitStack() as stack:
        entries = {}
        for number, (way, options) in enumerate(_OPTIONS.items()):
            answers = {**options, "function": "merge-answers"}
            changes = {
                "name": f"{_NAME}-{number}",
                "buckets": document["buckets"] | {"answers": answers},
            }
            deployed = buckets(launcher, _NAME, (_FUNCTIONS,), changes=changes)
            entries[way] = stack.enter_context(deployed).entry
        progress(f"{rounds * _REQUESTS_A_ROUND} requests each way, {_CLIENTS} at a time")

        def ask_all(seed: int) -> list[_Taken]:
            draw = random.Random(seed)  # noqa: S311
            with ExitStack() as closes:
                clients = {
                    way: closes.enter_context(closing(direct(launcher.gateway.url, entry)))
                    for way, entry in entries.items()
                }
                return [
                    _asked(clients, draw) for _ in range(rounds * _REQUESTS_A_ROUND // _CLIENTS)
                ]

        with ThreadPoolExecutor(_CLIENTS) as threads:
            taken = [each for found in threads.map(ask_all, range(_CLIENTS)) for each in found]
    return tuple(_figures(taken))


def _asked(clients: dict[str, Client], draw: random.Random) -> _Taken:
    delays_ms = [_MEDIAN_MS * draw.lognormvariate(0, _SIGMA) for _ in range(3)]
    delays_ms[draw.randrange(3)] *= _STRAGGLER
    taken, answers = dict[str, float](), set[bytes]()

    def ask(way: str, delays_ms: list[float]) -> float:
        body = json.dumps({"words": ["chiron"], "delays_ms": delays_ms}).encode()
        answer, latency_ms = clients[way].post(body, ALONE)
        answers.add(answer)
        return latency_ms

    for way in clients:
        taken[way] = ask(way, delays_ms)
    second_ms = ask(_ALL, sorted(delays_ms)[1:2])
    if len(answers) > 1:
        raise ChironError("wrong-output", f"answers differ: {answers}", status=500)
    return _Taken(taken, second_ms)


def _figures(taken: list[_Taken]) -> list[Figure]:
    second = [each.second_ms for each in taken]
    first_two, every = ([each.ways_ms[way] for each in taken] for way in _OPTIONS)
    pair = [first_two, second]
    return [
        resampled("p99, one replica, as fast as the second fastest", [second], lambda p: p[0]),
        resampled(f"p99, {_FIRST_TWO}", [first_two], lambda p: p[0]),
        resampled("p99, these two: more than the one", pair, lambda p: p[0] - p[1]),
        resampled("p99, these two / the one", pair, lambda p: p[0] / p[1], "x"),
        resampled(f"p99, {_ALL}", [every], lambda p: p[0]),
    ]
