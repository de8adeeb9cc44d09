"""How wrong predictions are on a platform: plans of known work, predicted and measured.

The constants of a platform say what no-ops cost. What functions do to each other that compute at
the same time, on fewer cores and under one GIL, is the simulation's word; here it is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median

from profiler.drift import platform_at, profile_at, slower
from profiler.launcher import Deployment
from profiler.noop_handler import WORK, WORK_PAUSE_MS
from profiler.noop_shapes import FUNCTION, Shape, shapes
from profiler.reference_loop import Pace, paced
from workflow.model import Workflow
from workflow.plan import Plan, Prediction
from workflow.platform import Platform
from workflow.profile import FunctionProfile, Period, Profile

#: Predicts a plan; handed in, as the profiler does not know who predicts.
Predict = Callable[[Plan, Workflow, Profile, Platform], Prediction]

#: Rounds in which every plan is measured once.
ROUNDS = 15
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
    computing_ms = []
    for _ in range(ROUNDS):
        for name in plans:
            measured[name].append(paced(partial(_latency_ms, deployed[name])))
            run_ms, pace = paced(partial(_run_ms, deployed[_ALONE]))
            factor = slower(platform.reference_ms, pace.loop_ms)
            computing_ms.append((run_ms - WORK_PAUSE_MS) / factor)
    profile = work_profile(WORK_PAUSE_MS + median(computing_ms), platform.reference_ms)

    def ratio(shape: Shape, latency_ms: float, pace: Pace) -> float:
        functions, place = profile_at(profile, pace.loop_ms), platform_at(platform, pace.loop_ms)
        return predict(shape.plan, shape.workflow, functions, place).latency_ms / latency_ms

    errors = [
        abs(median(ratio(plans[name], *pair) for pair in pairs) - 1)
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


def _latency_ms(one: Deployment) -> float:
    return one.invoke(WORK.encode()).latency_ms


def _run_ms(one: Deployment) -> float:
    (run,) = [row for row in one.invoke(WORK.encode(), trace=True).timeline if row["kind"] == "run"]
    return float(run["end_ms"]) - float(run["start_ms"])
