"""Latencies after a step of the load, with and without scaling of the replicas.

References
----------
DataFlower (ASPLOS'23), section 8.3: pressure-aware scaling beside DataFlower-Non-aware, which
ignores slow transfers of outputs.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import NamedTuple

import aiohttp

from chiron.deployment.launcher import Launcher
from chiron.evaluation.runtime.deployed import REMOTE, THREAD, Shape, shape, workflows
from chiron.evaluation.runtime.handlers import linked, waiting
from chiron.evaluation.runtime.rounds import Figure, Unit
from chiron.workflow.plan import Demand, Prediction

#: The load grows by this factor.
STEP = 10
#: How long the load is low, and then high, in seconds.
_LOW_S, _HIGH_S = 10.0, 30.0
#: p95 is over the requests due within this many seconds. It is back when it stays within this
#: multiple of p95 before the step.
_WINDOW_S, _BACK = 4.0, 1.5
#: The timeout of a request in seconds; a request that exceeds it is lost.
_LATE_S = 30.0
#: The prediction's high end. A request may take ten times that, so a queued request is not lost.
_HIGHEST_MS = 6000.0
_REQUEST = b"{}"

#: Scales the named functions for the length of a block; the flag adds scaling by pressure.
Scaling = Callable[[Sequence[str], bool], AbstractContextManager[None]]


class Case(NamedTuple):
    """A workflow, its function, and the load before the step in requests/s."""

    name: str
    shape: Shape
    source: ModuleType
    per_s: float


class _Way(NamedTuple):
    name: str
    scales: bool = True
    by_pressure: bool = True


_WAYS = (
    _Way("no scaling", scales=False),
    _Way("by the queue", by_pressure=False),
    _Way("by the queue and pressure"),
)


class Sent(NamedTuple):
    """A request: its due time, and its latency from then, in seconds; None if it was lost."""

    due_s: float
    took_s: float | None


def cases() -> list[Case]:
    """Return a function that waits, and slow transfers, each with capacity for 2.5 times the load.

    Both plans predict little CPU time, so that a replica accepts many requests at once.
    """
    one = shape("step-waiting", _function(waiting), [THREAD])
    two = shape("step-linked", _function(linked), [THREAD, REMOTE])
    return [
        Case("a function waits", _planned(one, cpu_ms=200.0, latency_ms=400.0), waiting, 6.0),
        Case("outputs leave slowly", _planned(two, cpu_ms=4.0, latency_ms=120.0), linked, 4.0),
    ]


def _planned(made: Shape, cpu_ms: float, latency_ms: float) -> Shape:
    demand = Demand(cpu_ms=cpu_ms, memory_mib=4.0)
    wraps = [each.model_copy(update={"demand": demand}) for each in made.plan.wraps]
    predicted = Prediction(latency_ms=latency_ms, low_ms=latency_ms, high_ms=_HIGHEST_MS)
    update = {"wraps": tuple(wraps), "predicted": predicted}
    return made._replace(plan=made.plan.model_copy(update=update))


def _function(source: ModuleType) -> str:
    return f"chiron-evaluate-{source.__name__.rpartition('.')[2]}"


def measure_load_step(
    launcher: Launcher,
    rounds: int,
    progress: Callable[[str], None],
    scaling: Scaling,
    measured: Sequence[Case],
) -> tuple[Figure, ...]:
    """Return the figures of every case and way, of at least two `rounds` in turn."""
    taken: dict[tuple[str, str], list[dict[str, float]]] = {}
    for number in range(rounds):
        for case in measured:
            for turn in range(len(_WAYS)):
                way = _WAYS[(number + turn) % len(_WAYS)]
                progress(f"round {number + 1} of {rounds}: {case.name}, {way.name}")
                taken.setdefault((case.name, way.name), []).append(
                    _run(launcher, case, way, scaling)
                )
    return tuple(
        Figure.of(f"{case}: {name}", [found[name] for found in its], unit, way)
        for (case, way), its in taken.items()
        for name, unit in _UNITS.items()
    )


def _run(launcher: Launcher, case: Case, way: _Way, scaling: Scaling) -> dict[str, float]:
    sources = {_function(case.source): case.source}
    with workflows(launcher, [case.shape], sources) as deployed:
        names = [wrap.name for wrap in case.shape.plan.wraps]
        url = f"{launcher.gateway.url}/function/{names[0]}"
        expected = deployed[case.shape.name].expected(_REQUEST)
        with scaling(names, way.by_pressure) if way.scales else nullcontext():
            sent = asyncio.run(_load(url, expected, case.per_s))
        replicas = sum(launcher.gateway.describe(name).replicas for name in names)
    return _found(sent, _LOW_S) | {"replicas in the end": float(replicas)}


async def _load(url: str, expected: bytes, per_s: float) -> list[Sent]:
    """Send requests at a low rate, then a high one, without waiting for answers."""
    low, high = round(per_s * _LOW_S), round(STEP * per_s * _HIGH_S)
    dues = [number / per_s for number in range(low)]
    dues += [_LOW_S + number / (STEP * per_s) for number in range(high)]
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(_LATE_S)
    ) as session:
        begin = time.perf_counter()

        async def one(due: float) -> Sent:
            await asyncio.sleep(begin + due - time.perf_counter())
            try:
                async with session.post(url, data=_REQUEST) as response:
                    right = response.status == 200 and await response.read() == expected
            except (aiohttp.ClientError, TimeoutError):
                right = False
            return Sent(due, time.perf_counter() - begin - due if right else None)

        return await asyncio.gather(*map(one, dues))


_UNITS: dict[str, Unit] = {
    "until p95 is back": "s",
    "p95 before the step": "ms",
    "highest p95 after it": "ms",
    "requests lost": "",
    "replicas in the end": "",
}


def _found(sent: Sequence[Sent], step_s: float) -> dict[str, float]:
    """Return the figures of a run; a p95 that never recovers counts as `_HIGH_S` seconds."""
    before = p95_s([each for each in sent if each.due_s < step_s])
    ends = [step_s + _WINDOW_S + number for number in range(int(_HIGH_S - _WINDOW_S) + 1)]
    windows = {
        end: p95_s([each for each in sent if end - _WINDOW_S <= each.due_s < end]) for end in ends
    }
    return {
        "until p95 is back": back_s(windows, _BACK * before, step_s, step_s + _HIGH_S) - step_s,
        "p95 before the step": 1000 * before,
        "highest p95 after it": 1000 * max(windows.values()),
        "requests lost": float(sum(each.took_s is None for each in sent)),
    }


def p95_s(sent: Sequence[Sent]) -> float:
    """Return the 95th percentile of latencies in seconds; a lost request counts `_LATE_S`."""
    taken = [_LATE_S if each.took_s is None else each.took_s for each in sent]
    return statistics.quantiles(taken, n=20, method="inclusive")[18]


def back_s(windows: dict[float, float], most_s: float, begin_s: float, end_s: float) -> float:
    """Return the begin of the first window from which on no p95 exceeds `most_s`; else `end_s`.

    `windows` maps the ends of windows, in ascending order, to their p95. All are in seconds.
    """
    found = end_s
    for end, p95 in reversed(windows.items()):
        if p95 > most_s:
            break
        found = max(begin_s, end - _WINDOW_S)
    return found
