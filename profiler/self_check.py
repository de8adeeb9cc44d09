"""Whether a calibration is to be relied on, and how wrong predictions are on its platform.

The constants of a platform say what no-ops cost. What functions do to each other that compute at
the same time, on fewer cores and under one GIL, is the simulation's word; here it is checked with
plans of known work, predicted and measured.
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

#: How often in each round the work is run alone.
_RUNS_A_ROUND = 2
#: Of the errors of so many predictions the largest are left out.
_KEPT = 0.9
#: Speeds are compared between so many parts of the rounds.
_PARTS = 8
#: At most so many quantiles say how requests vary, and the least that a request computes of the
#: usual.
QUANTILES, _LEAST = 50, 0.1
#: Fewer requests have no 95th percentile.
FEWEST_VARIED = 20
#: Fewer requests of a plan with its work have no median to differ from.
_FEWEST = 5

#: What is more was disturbed. An idle machine of two cores had an error of 0.11 to 0.15 in three
#: calibrations, one with 16 % of its cores busy 0.20; no spread wider than 0.41 of what a request
#: costs (0.90 in brief ones), no constant farther than 0.06 of that outside of its own.
LARGEST_ERROR, _WIDEST, _FARTHEST = 0.3, 1.0, 0.1


def warnings(measured: Platform, others: float | None) -> tuple[str, ...]:
    """Why the calibration `measured` is not to be relied on, a line each; nothing where it is.

    `others` is the share of the cores that other programs had meanwhile, where that is known.
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


#: Runs something, and says how fast the machine was beside it.
Beside = Callable[[Callable[[], float]], tuple[float, CpuSpeed]]


class Timed(NamedTuple):
    """What a request or a function took, and the CPU-speed probe beside it, in milliseconds."""

    latency_ms: float
    probe_ms: float


#: Runs the first of the two functions alone, and says how long it took where it ran.
Alone = Callable[[Work], Timed]


def alone_in(one: Deployment) -> Alone:
    """Runs the only function of `one`, beside which its wrap runs the CPU-speed probe."""

    def run(work: Work) -> Timed:
        requests = [work.request]
        solo = Solo(one.gateway, one.trace_key, one.names[0], FUNCTIONS[0], requests)
        found = solo.invoke(cpu_probed=True)
        return Timed(found.latency_ms, found.speed.probe_ms)

    return run


class SelfCheck:
    """Plans of known work, measured a round at a time, and then predicted.

    Some run as threads of one process, some in more processes than there are cores, some in several
    wraps, some in stages; with each work of `known_work.CHECKED`, so that one plan is several.

    Args:
        alone: says how long work takes.
        plans: the plans to check.
        beside: what says how fast the machine was. Predictions are checked at one speed of it, as
            `Platform.speed_drift` tells what comes of others.
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
        """Run every plan with one of the works, the next one in the next round."""
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
        """What another prediction's error, relative to what is measured, stays within, nine times
        of ten.

        Each plan with each work counts once, by the median of its requests.
        """
        return round(min(1.0, nine_of_ten(self._errors(platform))), 4)

    def typical_error(self, platform: Platform) -> float:
        """The median error of the predictions for `platform`, relative to what is measured."""
        return median(self._errors(platform))

    def _errors(self, platform: Platform) -> list[float]:
        probe_ms = self._beside_ms
        costs_ms = {kind: self._cost_ms(kind, work) for kind, work in ((CPU, WORK), (NATIVE, HASH))}
        profiles = [work.profile(costs_ms) for work in CHECKED]
        errors = []
        for (place, number), requests in self._requests.items():
            shape, _ = self._plans[place]
            found = predict(shape.plan, shape.workflow, profiles[number], platform)
            measured_ms = median(_at_speed(requests, self._waiting_ms(place, number), probe_ms))
            errors.append(abs(found.latency_ms / measured_ms - 1))
        return errors

    @property
    def cpu_probe_ms(self) -> float:
        """What the CPU-speed probe took typically where the functions run."""
        return median(each.probe_ms for runs in self._runs.values() for each in runs)

    @property
    def _beside_ms(self) -> float:
        """And what it took beside the requests."""
        return median(each.probe_ms for timed in self._requests.values() for each in timed)

    def _waiting_ms(self, place: int, number: int) -> float:
        """For how long at least the requests of a plan with a work wait."""
        waits = CHECKED[number].profile({CPU: 0.0, NATIVE: 0.0})
        return longest_wait_ms(self._plans[place][0].workflow, waits)

    def work_variation(self) -> tuple[float, ...]:
        """`Platform.work_variation`: how computing varied in the requests of all plans, and alone.

        What a request took more than the median of its plan with its work is divided by how long
        that computes, at one speed of the machine. There are none of fewer than `FEWEST_VARIED`
        requests.
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
        """What one of a kind takes, of which `work` has some, and waits but nothing else."""
        amount = sum(each for what, each in work.first if what == kind)
        wait_ms = waiting_ms(work.first)
        runs_ms = _at_speed(self._runs[work], wait_ms, self.cpu_probe_ms)
        return max(0.0, median(runs_ms) - wait_ms) / amount


def nine_of_ten(errors: Sequence[float]) -> float:
    """What one more error, which is as likely to have any rank, stays within nine times of ten.

    Of n errors that is the one of rank 0.9 (n + 1); the largest, where there are too few.

    Source: Lei et al., Distribution-Free Predictive Inference for Regression (JASA 2018), section
    2: split conformal prediction.
    """
    rank = math.ceil(_KEPT * (len(errors) + 1))
    return sorted(errors)[min(rank, len(errors)) - 1]


def speed_drift(probes_ms: Sequence[float]) -> float:
    """`Platform.speed_drift`, from what the CPU-speed probe took in each round, in their order.

    Any two parts of the rounds may be as far apart as when a platform was calibrated and when a
    plan runs on it.
    """
    size = -(-len(probes_ms) // _PARTS)
    parts_ms = [median(probes_ms[at : at + size]) for at in range(0, len(probes_ms), size)]
    changes = [max(pair) / min(pair) - 1 for pair in combinations(parts_ms, 2)]
    return round(min(1.0, nine_of_ten(changes)), 4) if changes else 0.0


def _at_speed(requests: Sequence[Timed], wait_ms: float, probe_ms: float) -> list[float]:
    """What they take where the CPU-speed probe takes `probe_ms`; waits are as long as ever."""
    return [wait_ms + (each.latency_ms - wait_ms) * probe_ms / each.probe_ms for each in requests]


def _varied(requests: Sequence[Timed], wait_ms: float, probe_ms: float) -> list[float]:
    """How many times as long as usual requests computed that wait `wait_ms`; of few, nothing."""
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
