"""How wrong predictions are on a platform: plans of known work, predicted and measured.

The constants of a platform say what no-ops cost. What functions do to each other that compute at
the same time, on fewer cores and under one GIL, is the simulation's word; here it is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median

from profiler.drift import platform_at, profile_at, run_at
from profiler.launcher import Deployment
from profiler.noop_handler import WORK, WORK_PAUSE_MS
from profiler.noop_shapes import FUNCTION, Shape, shapes
from profiler.reference_loop import Pace, paced, steady
from workflow.model import Workflow
from workflow.plan import Plan, Prediction
from workflow.platform import Platform
from workflow.profile import FunctionProfile, Period, Profile

#: Predicts a plan; handed in, as the profiler does not know who predicts.
Predict = Callable[[Plan, Workflow, Profile, Platform], Prediction]

#: Rounds in which every plan is measured once.
ROUNDS = 24
#: How often in each of them the work is run alone.
_RUNS_A_ROUND = 2
#: The plan whose only function says how long the work takes alone.
_ALONE = "one"


def prediction_error(
    deployed: Mapping[str, Deployment], platform: Platform, predict: Predict
) -> float:
    """The largest error of all plans, relative to what was measured.

    Every function computes, waits and computes again. Some run as threads of one process, some in
    more processes than there are cores, some in several wraps. Each measurement is held against
    the prediction for the speed that the machine had beside it.

    Parameters
    ----------
    deployed
        Each plan of `profiler.noop_shapes`, by its name.
    """
    plans = {shape.name: shape for shape in shapes()}
    measured: dict[str, list[tuple[float, Pace]]] = {name: [] for name in plans}
    runs: list[tuple[float, Pace]] = []
    for _ in range(ROUNDS):
        for name in plans:
            measured[name].append(paced(partial(_latency_ms, deployed[name])))
        runs += [paced(partial(_run_ms, deployed[_ALONE])) for _ in range(_RUNS_A_ROUND)]
    alone_ms = median(
        run_at(run_ms, WORK_PAUSE_MS, pace.loop_ms, platform.reference_ms or pace.loop_ms)
        for run_ms, pace in _steady(runs)
    )
    profile = work_profile(alone_ms, platform.reference_ms)

    def ratio(shape: Shape, latency_ms: float, pace: Pace) -> float:
        functions, place = profile_at(profile, pace.loop_ms), platform_at(platform, pace.loop_ms)
        return predict(shape.plan, shape.workflow, functions, place).latency_ms / latency_ms

    errors = [
        abs(median(ratio(plans[name], *pair) for pair in _steady(pairs)) - 1)
        for name, pairs in measured.items()
        if name != _ALONE
    ]
    return round(min(1.0, max(errors)), 4)


def work_profile(alone_ms: float, reference_ms: float | None = None) -> Profile:
    """The profile of the working function, which takes `alone_ms` by itself.

    Parameters
    ----------
    reference_ms
        What the reference loop takes then.
    """
    computing_ms = max(0.0, alone_ms - WORK_PAUSE_MS) / 2
    periods = (
        Period(kind="cpu", start_ms=0.0, duration_ms=computing_ms),
        Period(kind="block", start_ms=computing_ms, duration_ms=WORK_PAUSE_MS),
        Period(kind="cpu", start_ms=computing_ms + WORK_PAUSE_MS, duration_ms=computing_ms),
    )
    function = FunctionProfile(
        latency_ms=2 * computing_ms + WORK_PAUSE_MS, periods=periods, reference_ms=reference_ms
    )
    return Profile(format=1, workflow="work", functions={FUNCTION: function})


def _steady(measured: Sequence[tuple[float, Pace]]) -> tuple[tuple[float, Pace], ...]:
    return steady(measured, lambda each: each[1].uneven)


def _latency_ms(one: Deployment) -> float:
    return one.invoke(WORK.encode()).latency_ms


def _run_ms(one: Deployment) -> float:
    (run,) = [row for row in one.invoke(WORK.encode(), trace=True).timeline if row["kind"] == "run"]
    return float(run["end_ms"]) - float(run["start_ms"])
