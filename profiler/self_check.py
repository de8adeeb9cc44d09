"""Whether a calibration is to be relied on, and how wrong predictions are on its platform.

The constants of a platform say what no-ops cost. What functions do to each other that compute at
the same time, on fewer cores and under one GIL, is the simulation's word; here it is checked with
plans of known work, predicted and measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import median, quantiles

from deployment.background_load import disturbance
from deployment.launcher import Deployment
from predictor.predict import predict
from profiler.noop_handler import WORK, WORK_PAUSE_MS
from profiler.noop_shapes import FUNCTION, shapes
from workflow.platform import Platform
from workflow.profile import FunctionProfile, Period, Profile
from workflow.tracing import run_ms, runs

#: Rounds in which every plan is measured once.
ROUNDS = 24
#: So many in a row make a part.
_PART = 8
#: How often in each of them the work is run alone.
_RUNS_A_ROUND = 2
#: The plan whose only function says how long the work takes alone.
_ALONE = "one"

#: What is more was disturbed. An idle machine of two cores had an error of 0.09 to 0.22 in five
#: calibrations; no spread wider than 0.41 of what a request costs, no constant farther than 0.06 of
#: that outside of its own.
_LARGEST_ERROR, _WIDEST, _FARTHEST = 0.3, 0.5, 0.1


def warnings(measured: Platform, others: float | None) -> tuple[str, ...]:
    """Why the calibration `measured` is not to be relied on, a line each; nothing where it is.

    `others` is the share of the cores that other programs had meanwhile, where that is known.
    """
    busy = disturbance(others)
    found = [f"{busy} while it was calibrated"] if busy else []
    found += _scattered(measured)
    if measured.prediction_error > _LARGEST_ERROR:
        wrong = f"{measured.prediction_error:.0%}"
        found.append(f"predictions of known work were {wrong} wrong")
    return tuple(
        f"platform {measured.name}: {line}: calibrate again when it is quiet" for line in found
    )


def _scattered(measured: Platform) -> Iterator[str]:
    """The constant of which the parts of the samples say the most different things, if any."""

    def off(name: str) -> float:
        (low_ms, high_ms), value_ms = measured.spread[name], float(getattr(measured, name))
        outside_ms = max(0.0, low_ms - value_ms, value_ms - high_ms)
        return max((high_ms - low_ms) / _WIDEST, outside_ms / _FARTHEST)

    constants = [name for name in measured.spread if name.endswith("_ms")]
    worst = max(constants, key=off, default=None)
    if worst is not None and off(worst) > measured.request_ms:
        low_ms, high_ms = measured.spread[worst]
        value_ms = getattr(measured, worst)
        yield f"{worst} is {value_ms:.2f}, by parts of its samples {low_ms:.2f} to {high_ms:.2f}"


def prediction_error(
    deployed: Mapping[str, Deployment],
    platform: Platform,
    pause: Callable[[], None],
) -> float:
    """The error, relative to what was measured, that nine of ten predictions stay within.

    Every function computes, waits and computes again. Some run as threads of one process, some in
    more processes than there are cores, some in several wraps. Of each plan the medians of several
    parts of its requests are predicted, so that what the machine's drift does to them counts too.

    Parameters
    ----------
    deployed
        Each plan of `profiler.noop_shapes`, by its name.
    pause
        Called between rounds, while nothing runs.
    """
    plans = {shape.name: shape for shape in shapes()}
    measured: dict[str, list[float]] = {name: [] for name in plans}
    runs: list[float] = []
    for _ in range(ROUNDS):
        for name in plans:
            measured[name].append(_latency_ms(deployed[name]))
        runs += [_run_ms(deployed[_ALONE]) for _ in range(_RUNS_A_ROUND)]
        pause()
    profile = work_profile(median(runs))
    errors = []
    for name, shape in plans.items():
        if name != _ALONE:
            found = predict(shape.plan, shape.workflow, profile, platform)
            for first in range(0, ROUNDS, _PART):
                part_ms = median(measured[name][first : first + _PART])
                errors.append(abs(found.latency_ms / part_ms - 1))
    return round(min(1.0, quantiles(errors, n=10, method="inclusive")[-1]), 4)


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


def _latency_ms(one: Deployment) -> float:
    return one.invoke(WORK.encode()).latency_ms


def _run_ms(one: Deployment) -> float:
    (run,) = runs(one.invoke(WORK.encode(), trace=True).timeline)
    return run_ms(run)
