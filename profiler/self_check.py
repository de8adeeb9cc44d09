"""Whether a calibration is reliable, and the error of predictions on its platform.

The constants of a platform are the costs of no-ops. The simulation predicts how functions that
compute at the same time slow each other down, on fewer cores and under one GIL. This module checks
that with plans of known work, predicted and measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, cycle
from statistics import median
from typing import NamedTuple

from chiron.deployment.background_load import disturbance
from chiron.deployment.launcher import Deployment
from chiron.predictor.predict import predict
from chiron.predictor.spread import evenly, longest_wait_ms
from chiron.profiler.cpu_speed import CpuSpeed, with_cpu_speed
from chiron.profiler.invocation import Solo
from chiron.profiler.known_work import CHECKED, HASH, WORK, Work, waiting_ms
from chiron.profiler.noop_handler import CPU, NATIVE
from chiron.profiler.noop_shapes import FUNCTIONS, Shape
from chiron.workflow.platform import Platform

#: Runs of the work alone in each round.
_RUNS_A_ROUND = 2
#: With this many predictions, the largest errors are left out.
_KEPT = 0.9
#: Parts of the rounds between which speeds are compared.
_PARTS = 8
#: The most quantiles of how requests vary, and the least computing relative to the usual.
QUANTILES, _LEAST = 50, 0.1
#: Fewer requests have no 95th percentile.
FEWEST_VARIED = 20
#: Fewer requests of a plan with its work have no median to differ from.
_FEWEST = 5

#: Larger values mean a disturbance. An idle machine of two cores had errors of 0.11 to 0.15 in
#: three calibrations, with 16 % of its cores busy 0.20. Spreads were at most 0.41 of a request's
#: cost (0.90 if brief), and constants at most 0.06 of that cost outside of their own spread.
LARGEST_ERROR, _WIDEST, _FARTHEST = 0.3, 1.0, 0.1


def warnings(measured: Platform, others: float | None) -> tuple[str, ...]:
    """Return a line for each reason why the calibration `measured` is unreliable.

    `others` is the share of the cores that other programs used meanwhile, if known.
    """
    busy = disturbance(others)
    found = [f"{busy} while it was calibrated"] if busy else []
    found += _scattered(measured)
    if measured.prediction_error > LARGEST_ERROR:
        wrong = f"{measured.prediction_error:.0%}"
        found.append(f"predictions of known work were {wrong} wrong")
    if not (measured.work_variation and measured.request_variation and measured.idle_variation):
        found.append("too few requests were timed to tell how they vary, so p95 is as p50")
    quiet = others is not None and not busy
    mend = "chiron calibrate measures longer" if quiet else "calibrate again when it is quiet"
    return tuple(f"platform {measured.name}: {line}: {mend}" for line in found)


def _scattered(measured: Platform) -> Iterator[str]:
    """Return the constant that varies most between the parts of the samples, if any."""

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


#: Runs a function, and returns its time with that of the CPU-speed probe.
Beside = Callable[[Callable[[], float]], tuple[float, CpuSpeed]]


class Timed(NamedTuple):
    """The time of a request or function, and of the CPU-speed probe beside it, in milliseconds."""

    latency_ms: float
    probe_ms: float


#: Runs work in the first of the two functions alone, and returns its time.
Alone = Callable[[Work], Timed]


def alone_in(one: Deployment) -> Alone:
    """Return a runner of the only function of `one`, whose wrap runs the CPU-speed probe too."""

    def run(work: Work) -> Timed:
        requests = [work.request]
        solo = Solo(one.gateway, one.trace_key, one.names[0], FUNCTIONS[0], requests)
        found = solo.invoke(cpu_probed=True)
        return Timed(found.latency_ms, found.speed.probe_ms)

    return run


class SelfCheck:
    """Plans of known work, measured round by round and then predicted.

    The plans use threads of one process, more processes than cores, several wraps, or stages. Each
    plan runs with each work of `known_work.CHECKED`.

    Args:
        alone: measures the time of work alone.
        plans: the plans to check.
        beside: measures the speed of the machine. Predictions are checked at one speed, as
            `Platform.speed_drift` covers changes of speed.
    """

    def __init__(
        self,
        alone: Alone,
        plans: Sequence[tuple[Shape, Deployment]],
        beside: Beside = with_cpu_speed,
    ) -> None:
        self._alone, self._plans, self._beside = alone, plans, beside
        self._works = cycle(enumerate(CHECKED))
        self._requests: dict[tuple[int, int], list[Timed]] = {}
        self._runs: dict[Work, list[Timed]] = {WORK: [], HASH: []}

    def measure(self) -> None:
        """Run every plan with one of the works; each round uses the next work."""
        number, work = next(self._works)
        for place, (_, one) in enumerate(self._plans):
            timed = self._timed(partial(_request_ms, one, work))
            self._requests.setdefault((place, number), []).append(timed)
        for each, runs in self._runs.items():
            runs += [self._alone(each) for _ in range(_RUNS_A_ROUND)]

    def _timed(self, run: Callable[[], float]) -> Timed:
        latency_ms, speed = self._beside(run)
        return Timed(latency_ms, speed.probe_ms)

    def prediction_error(self, platform: Platform) -> float:
        """Return the bound that another prediction's relative error keeps nine times of ten.

        Each plan with each work counts once, by the median of its requests.
        """
        return round(min(1.0, nine_of_ten(self._errors(platform))), 4)

    def typical_error(self, platform: Platform) -> float:
        return median(self._errors(platform))

    def _errors(self, platform: Platform) -> list[float]:
        probe_ms = self._beside_ms
        costs_ms = {kind: self._cost_ms(kind, work) for kind, work in ((CPU, WORK), (NATIVE, HASH))}
        profiles = [work.profile(costs_ms, platform.gil) for work in CHECKED]
        errors = []
        for (place, number), requests in self._requests.items():
            shape, _ = self._plans[place]
            found = predict(shape.plan, shape.workflow, profiles[number], platform)
            measured_ms = median(_at_speed(requests, self._waiting_ms(place, number), probe_ms))
            errors.append(abs(found.latency_ms / measured_ms - 1))
        return errors

    @property
    def cpu_probe_ms(self) -> float:
        """Return the typical time of the CPU-speed probe where the functions run."""
        return median(each.probe_ms for runs in self._runs.values() for each in runs)

    @property
    def _beside_ms(self) -> float:
        """Return the typical time of the probe beside the requests."""
        return median(each.probe_ms for timed in self._requests.values() for each in timed)

    def _waiting_ms(self, place: int, number: int) -> float:
        """Return the least wait of the requests of a plan with a work."""
        waits = CHECKED[number].profile({CPU: 0.0, NATIVE: 0.0})
        return longest_wait_ms(self._plans[place][0].workflow, waits)

    def work_variation(self) -> tuple[float, ...]:
        """Return `Platform.work_variation`: how computing varied, in all plans and alone.

        The excess of a request over the median of its plan and work is divided by the computing
        time, at one speed of the machine. Fewer than `FEWEST_VARIED` requests give no values.
        """
        found = list[float]()
        for (place, number), requests in self._requests.items():
            found += _varied(requests, self._waiting_ms(place, number), self._beside_ms)
        for work, runs in self._runs.items():
            found += _varied(runs, waiting_ms(work.first), self.cpu_probe_ms)
        if len(found) < FEWEST_VARIED:
            return ()
        quantiles = evenly(found, min(QUANTILES, len(found)))
        return tuple(round(max(_LEAST, each), 4) for each in quantiles)

    def _cost_ms(self, kind: str, work: Work) -> float:
        """Return the time of one unit of a kind, of which `work` consists besides waits."""
        amount = sum(each for what, each in work.first if what == kind)
        wait_ms = waiting_ms(work.first)
        runs_ms = _at_speed(self._runs[work], wait_ms, self.cpu_probe_ms)
        return max(0.0, median(runs_ms) - wait_ms) / amount


def nine_of_ten(errors: Sequence[float]) -> float:
    """Return the bound that one more error of random rank keeps nine times of ten.

    Of n errors it is the error of rank 0.9 (n + 1), or the largest of too few.

    Source: Lei et al., Distribution-Free Predictive Inference for Regression (JASA 2018), section
    2: split conformal prediction.
    """
    rank = math.ceil(_KEPT * (len(errors) + 1))
    return sorted(errors)[min(rank, len(errors)) - 1]


def speed_drift(probes_ms: Sequence[float]) -> float:
    """Return `Platform.speed_drift` from the probe's time in each round, in order.

    Two parts of the rounds stand for the time of a calibration and the time of a later plan.
    """
    size = -(-len(probes_ms) // _PARTS)
    parts_ms = [median(probes_ms[at : at + size]) for at in range(0, len(probes_ms), size)]
    changes = [max(pair) / min(pair) - 1 for pair in combinations(parts_ms, 2)]
    return round(min(1.0, nine_of_ten(changes)), 4) if changes else 0.0


def _at_speed(requests: Sequence[Timed], wait_ms: float, probe_ms: float) -> list[float]:
    """Convert times to the speed at which the probe takes `probe_ms`; waits stay."""
    return [wait_ms + (each.latency_ms - wait_ms) * probe_ms / each.probe_ms for each in requests]


def _varied(requests: Sequence[Timed], wait_ms: float, probe_ms: float) -> list[float]:
    """Return each request's computing relative to the usual; nothing for few requests."""
    if len(requests) < _FEWEST:
        return []
    latencies_ms = _at_speed(requests, wait_ms, probe_ms)
    middle_ms = median(latencies_ms)
    computing_ms = middle_ms - wait_ms
    if computing_ms <= 0:
        return []
    return [1 + (each - middle_ms) / computing_ms for each in latencies_ms]


def _request_ms(one: Deployment, work: Work) -> float:
    return one.invoke(work.request).latency_ms
