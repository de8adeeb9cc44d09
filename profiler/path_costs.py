"""The cost of objects sent from one wrap to another, by path and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import quantiles
from typing import NamedTuple

from chiron.deployment.launcher import Deployment
from chiron.profiler.cpu_speed import mean_probe_ms
from chiron.profiler.known_work import NOTHING, PAUSE
from chiron.profiler.noop_handler import LARGE, LARGE_MB
from chiron.profiler.noop_shapes import Shape, handed_over
from chiron.workflow.errors import ChironError
from chiron.workflow.paths import Path, PathKind
from chiron.workflow.platform import PathCost

#: The first rounds, which are discarded: wraps still discover each other's addresses, and memory is
#: touched for the first time.
_WARM_UP = 10
#: The largest share of requests through the gateway to a wrap called directly, as its address is
#: sometimes requested there. If a gateway counts no requests: the largest time of an object sent
#: directly, relative to the gateway.
_ASKED, _CLEARLY_LESS = 0.5, 0.75
#: The plan whose objects stay in one process.
_WITHIN = "within"


class _Latencies(NamedTuple):
    """The latency of a plan with a small object, and the extra latency of a large object."""

    small_ms: float
    more_ms: float


def path_shapes(paths: tuple[PathKind, ...]) -> dict[str, Shape]:
    """Return plans in which an output stays in its process, or takes each path to another wrap."""
    return {_WITHIN: handed_over(_WITHIN, [[2]]), **{path: _across(path) for path in paths}}


def path_costs(deployed: Mapping[str, Deployment], rounds: int) -> dict[Path, PathCost]:
    """Return `Platform.paths`, from `rounds` measurements of the deployed plans of `path_shapes`.

    The extra time of a plan of two wraps over one process is an object there and, as it is small,
    the answer back. The extra time of a large object goes one way. All plans take turns, and small
    objects are sent after idling, as for other constants (`chiron.profiler.calibrate`). The counts
    of requests through the gateway show whether wraps reach each other.

    Raises ``calibration-failed`` if an answer is not a no-op's.
    """
    before = _requests(deployed["auto"])
    timed = [
        {name: _latencies_ms(one) for name, one in deployed.items()}
        for _ in range(_WARM_UP + rounds)
    ][_WARM_UP:]
    after = _requests(deployed["auto"])
    found = {name: _cost(name, timed) for name in deployed if name != _WITHIN}
    is_direct = found["auto"].ms < _CLEARLY_LESS * found["gateway"].ms
    home, far = (now - then for now, then in zip(after, before, strict=True))
    if home:
        is_direct = far < _ASKED * home
    paths: dict[Path, PathCost] = {"direct": found["auto"]} if is_direct else {}
    paths["gateway"] = found["gateway"]
    if "store" in found:  # its plan also sends a call by the path auto
        paths["store"] = _less(found["store"], found["auto"].ms)
    return paths


def _requests(one: Deployment) -> list[float]:
    """Return the number of requests that each wrap got through the gateway."""
    counts = {each.name: each.invocation_count for each in one.gateway.functions()}
    return [counts[name] for name in one.names]


def _cost(name: str, rounds: Sequence[Mapping[str, _Latencies]]) -> PathCost:
    ms = [(each[name].small_ms - each[_WITHIN].small_ms) / 2 for each in rounds]
    ms_per_mb = [(each[name].more_ms - each[_WITHIN].more_ms) / LARGE_MB for each in rounds]
    (low_ms, mid_ms, high_ms), (low, mid, high) = map(_quartiles, (ms, ms_per_mb))
    spread = {"ms": (low_ms, high_ms), "ms_per_mb": (low, high)}
    return PathCost.model_validate({"ms": mid_ms, "ms_per_mb": mid, "spread": spread})


def _less(cost: PathCost, ms: float) -> PathCost:
    """Return `cost` reduced by `ms`, the cost of a message without size."""
    low_ms, mid_ms, high_ms = (
        round(max(0.0, each - ms), 4)
        for each in (cost.spread["ms"][0], cost.ms, cost.spread["ms"][1])
    )
    spread = {**cost.spread, "ms": (low_ms, high_ms)}
    return cost.model_copy(update={"ms": mid_ms, "spread": spread})


def _quartiles(values: Sequence[float]) -> list[float]:
    return [round(max(0.0, each), 4) for each in quantiles(values, n=4)]


def _latencies_ms(one: Deployment) -> _Latencies:
    mean_probe_ms()
    pausing, small, large = (
        one.invoke(request) for request in (PAUSE.request, NOTHING.request, LARGE.encode())
    )
    if large.output:
        message = "the no-op wraps answer something else than was asked: deploy chiron's template"
        raise ChironError("calibration-failed", message, status=502)
    return _Latencies(pausing.latency_ms, large.latency_ms - small.latency_ms)


def _across(path: PathKind) -> Shape:
    made = handed_over(f"path-{path}", [[1], [1]])
    return replace(made, plan=made.plan.model_copy(update={"path": path}))
