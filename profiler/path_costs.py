"""What objects cost from one wrap to another, by path and size."""

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

#: Rounds that are thrown away first: wraps have still to learn where others are, and memory is
#: touched for the first time.
_WARM_UP = 10
#: What of the requests a wrap that is called directly gets through the gateway, which is asked for
#: its address now and then, at most; and, where a gateway counts no requests, what part of the time
#: through the gateway an object takes directly.
_ASKED, _CLEARLY_LESS = 0.5, 0.75
#: A plan whose objects stay in one process.
_WITHIN = "within"


class _Latencies(NamedTuple):
    """Of a plan with a small object, and how much more a large one takes."""

    small_ms: float
    more_ms: float


def path_shapes(paths: tuple[PathKind, ...]) -> dict[str, Shape]:
    """A function whose output another one gets: in its own process, and in another wrap by each
    path."""
    return {_WITHIN: handed_over(_WITHIN, [[2]]), **{path: _across(path) for path in paths}}


def path_costs(deployed: Mapping[str, Deployment], rounds: int) -> dict[Path, PathCost]:
    """`Platform.paths`, where the plans of `path_shapes` are deployed, timed `rounds` times.

    What a plan of two wraps takes longer than one process is an object there and, small as it is,
    the answer back; what it takes more with a large object goes one way. All plans take turns, and
    those of small ones come when all has been idle, as other constants do
    (`chiron.profiler.calibrate`). Whether wraps reach each other is told by who gets requests
    through the gateway.

    Raises ``calibration-failed`` where an answer is none of a no-op.
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
    if "store" in found:  # beside which a call goes as it can
        paths["store"] = _less(found["store"], found["auto"].ms)
    return paths


def _requests(one: Deployment) -> list[float]:
    """How many requests each wrap has had through the gateway."""
    counts = {each.name: each.invocation_count for each in one.gateway.functions()}
    return [counts[name] for name in one.names]


def _cost(name: str, rounds: Sequence[Mapping[str, _Latencies]]) -> PathCost:
    ms = [(each[name].small_ms - each[_WITHIN].small_ms) / 2 for each in rounds]
    ms_per_mb = [(each[name].more_ms - each[_WITHIN].more_ms) / LARGE_MB for each in rounds]
    (low_ms, mid_ms, high_ms), (low, mid, high) = map(_quartiles, (ms, ms_per_mb))
    spread = {"ms": (low_ms, high_ms), "ms_per_mb": (low, high)}
    return PathCost.model_validate({"ms": mid_ms, "ms_per_mb": mid, "spread": spread})


def _less(cost: PathCost, ms: float) -> PathCost:
    """`cost` without what something takes that has no size."""
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
