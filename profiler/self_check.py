"""How wrong predictions are on a platform: plans of known work, predicted and measured.

The constants of a platform say what no-ops cost. What functions do to each other that compute at
the same time, on fewer cores and under one GIL, is the simulation's word; here it is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from profiler.launcher import Deployment
from profiler.noop_handler import WORK, WORK_PAUSE_MS
from profiler.noop_shapes import FUNCTION, shapes
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
    more processes than there are cores, some in several wraps.

    Parameters
    ----------
    deployed
        Each plan of `profiler.noop_shapes`, by its name.
    """
    latencies: dict[str, list[float]] = {name: [] for name in deployed}
    alone_ms = []
    for _ in range(ROUNDS):
        for name, one in deployed.items():
            latencies[name].append(one.invoke(WORK.encode()).latency_ms)
        alone_ms.append(_run_ms(deployed[_ALONE]))
    profile = work_profile(median(alone_ms))
    errors = []
    for shape in shapes():
        if shape.name != _ALONE:
            predicted = predict(shape.plan, shape.workflow, profile, platform).latency_ms
            errors.append(abs(predicted / median(latencies[shape.name]) - 1))
    return round(min(1.0, max(errors)), 4)


def work_profile(alone_ms: float) -> Profile:
    """The profile of the working function, which takes `alone_ms` by itself."""
    computing_ms = max(0.0, alone_ms - WORK_PAUSE_MS) / 2
    periods = (
        Period(kind="cpu", start_ms=0.0, duration_ms=computing_ms),
        Period(kind="block", start_ms=computing_ms, duration_ms=WORK_PAUSE_MS),
        Period(kind="cpu", start_ms=computing_ms + WORK_PAUSE_MS, duration_ms=computing_ms),
    )
    function = FunctionProfile(latency_ms=2 * computing_ms + WORK_PAUSE_MS, periods=periods)
    return Profile(format=1, workflow="work", functions={FUNCTION: function})


def _run_ms(one: Deployment) -> float:
    (run,) = [row for row in one.invoke(WORK.encode(), trace=True).timeline if row["kind"] == "run"]
    return float(run["end_ms"]) - float(run["start_ms"])
