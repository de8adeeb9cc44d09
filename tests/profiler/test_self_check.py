"""How wrong predictions are, from deployments whose latencies are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pytest

from chiron.predictor.predict import predict
from chiron.predictor.spread import longest_wait_ms
from chiron.profiler.cpu_speed import CpuSpeed
from chiron.profiler.known_work import CHECKED, HASH, WORK, Work, both
from chiron.profiler.noop_handler import BLOCK, CPU, NATIVE
from chiron.profiler.noop_shapes import FUNCTIONS, Shape, chains, crowd, shapes
from chiron.profiler.self_check import (
    QUANTILES,
    SelfCheck,
    Timed,
    nine_of_ten,
    speed_drift,
    warnings,
)
from chiron.workflow.platform import Platform

PLATFORM = Platform(
    format=1,
    name="known",
    cpus=2,
    one_node=True,
    request_ms=2,
    rpc_ms=1,
    invoke_ms=1,
    ipc_ms=0.5,
    process_startup_ms=4,
    process_block_ms=1,
    pool_dispatch_ms=1,
    thread_startup_ms=0.1,
    switch_cost_ms=0,
    work_variation=(1.0,),
    request_variation=(0.0,),
    idle_variation=(0.0,),
)
COSTS_MS = {CPU: 1e-4, NATIVE: 3e-4}
#: What the CPU-speed probe takes where the functions run; beside the requests it takes 1 ms.
PROBE_MS = 1.5
PLANS = [*shapes()[1:], chains(), crowd()]


@dataclass(frozen=True)
class Answer:
    latency_ms: float


@dataclass(frozen=True)
class Deployed:
    """Answers after a time that depends on the work."""

    latency_ms: Callable[[Work], float]

    def invoke(self, request: bytes) -> Answer:
        (work,) = {each for each in (*CHECKED, HASH) if each.request == request}
        return Answer(self.latency_ms(work))


def even(run: Callable[[], float]) -> tuple[float, CpuSpeed]:
    return run(), CpuSpeed(1.0, 0.0)


def alone(work: Work) -> Timed:
    return Timed(work.profile(COSTS_MS).functions[FUNCTIONS[0]].latency_ms, PROBE_MS)


def error(
    factor: Callable[[str, Work], float], rounds: int = len(CHECKED), *, gil: bool = True
) -> float:
    """What is found where every plan takes as long as predicted times a factor."""
    platform = PLATFORM.model_copy(update={"gil": gil})

    def deployed(shape: Shape) -> Deployed:
        return Deployed(
            lambda work: (
                factor(shape.name, work)
                * predict(
                    shape.plan, shape.workflow, work.profile(COSTS_MS, gil), platform
                ).latency_ms
            )
        )

    plans = [(shape, deployed(shape)) for shape in PLANS]
    check = SelfCheck(alone, plans, even)
    for _ in range(rounds):
        check.measure()
    return check.prediction_error(platform)


@pytest.mark.parametrize("gil", [True, False])
def test_right_predictions_have_no_error(gil: bool) -> None:
    assert error(lambda _, __: 1.0, gil=gil) == 0


@pytest.mark.parametrize(("factor", "found"), [(1.25, 0.2), (0.8, 0.25), (0.1, 1.0)])
def test_an_error_counts_whichever_way_plans_err_and_is_at_most_the_whole(
    factor: float, found: float
) -> None:
    assert error(lambda _, __: factor) == pytest.approx(found, abs=0.001)


@pytest.mark.parametrize("work", range(len(CHECKED)))
def test_each_work_counts(work: int) -> None:
    assert error(lambda _, asked: 1.25 if asked == CHECKED[work] else 1.0) == 0.2


def test_the_largest_of_ten_errors_are_left_out() -> None:
    """Each of the ten plans has as many errors as there are works, each of them once."""
    least = len(PLANS) * len(CHECKED) // 10
    assert least == len(CHECKED)
    assert error(lambda plan, _: 1.25 if plan in ("threads", "pool-many") else 1.0) == 0.2
    some = CHECKED[1:]
    assert error(lambda plan, work: 9.0 if plan == "pool-many" and work in some else 1.0) == 0


def test_it_does_with_fewer_rounds_than_works() -> None:
    assert error(lambda _, work: 1.25 if work == CHECKED[0] else 9.0, rounds=1) == 0.2


def test_of_n_errors_that_of_rank_nine_tenths_of_one_more_counts() -> None:
    assert [nine_of_ten([float(each) for each in range(n, 0, -1)]) for n in (1, 9, 19, 20)] == [
        1.0,
        9.0,
        18.0,
        19.0,
    ]


def test_speed_drift_is_how_far_parts_of_the_rounds_were_apart() -> None:
    assert speed_drift([1.0] * 16) == speed_drift([1.0]) == 0
    assert speed_drift([1.0] * 8 + [1.2] * 8) == pytest.approx(0.2)


def test_what_passes_within_a_part_is_no_drift() -> None:
    assert speed_drift([1.0, 9.0, 1.0] * 8) == 0


def test_known_work_is_profiled_as_it_is_asked_for() -> None:
    first, second = (
        Work(((CPU, 40_000), (BLOCK, 5.0), (NATIVE, 10_000)), ())
        .profile(COSTS_MS)
        .functions.values()
    )
    assert [(p.kind, p.start_ms, round(p.duration_ms, 9)) for p in first.periods] == [
        ("cpu", 0.0, 4.0),
        ("block", 4.0, 5.0),
        ("native", 9.0, 3.0),
    ]
    assert first.latency_ms == pytest.approx(12.0)
    assert (second.latency_ms, second.periods) == (0.0, ())
    assert both((CPU, 1.0)).request == b'[[["cpu", 1.0]], [["cpu", 1.0]]]'


def test_without_a_gil_known_work_in_python_is_native() -> None:
    work = both((CPU, 40_000), (BLOCK, 5.0)).profile(COSTS_MS, gil=False)
    assert [p.kind for p in work.functions[FUNCTIONS[0]].periods] == ["native", "block"]


def test_work_that_is_over_before_its_pause_computes_nothing() -> None:
    check = SelfCheck(lambda _: Timed(9.0, PROBE_MS), [], even)
    check.measure()
    assert check._cost_ms(CPU, WORK) == 0


def test_known_work_takes_what_it_does_at_the_speed_that_the_cores_had_typically() -> None:
    """A run on a core that is half as fast counts as one that took half the time."""
    speeds = cycle((1.0, 1.0, 2.0))

    def varied(work: Work) -> Timed:
        factor = next(speeds)
        wait_ms = sum(amount for kind, amount in work.first if kind == BLOCK)
        latency_ms = alone(work).latency_ms
        return Timed(wait_ms + (latency_ms - wait_ms) * factor, PROBE_MS * factor)

    check = SelfCheck(varied, [], even)
    for _ in range(3):
        check.measure()
    assert check.cpu_probe_ms == PROBE_MS
    assert check._cost_ms(CPU, WORK) == pytest.approx(COSTS_MS[CPU])


def test_a_calibration_that_agrees_with_itself_on_a_quiet_machine_is_relied_on() -> None:
    spread = {
        "request_ms": (1.9, 2.2),
        "thread_startup_ms": (0.0, 0.4),
        "contention_overhead": (0.0, 9.0),
    }
    sound = PLATFORM.model_copy(update={"spread": spread, "prediction_error": 0.22})
    assert warnings(sound, 0.02) == warnings(sound, None) == ()


@pytest.mark.parametrize(
    ("measured", "others", "word"),
    [
        ({}, 0.45, "45% of the cores"),
        ({"prediction_error": 0.37}, 0.0, "37%"),
        ({"work_variation": ()}, 0.0, "how they vary"),
        ({"request_variation": ()}, 0.0, "how they vary"),
        ({"idle_variation": ()}, 0.0, "how they vary"),
        ({"spread": {"rpc_ms": (2.1, 2.4)}}, 0.0, "rpc_ms is 1.00, by parts of its samples 2.10"),
        ({"spread": {"rpc_ms": (0.2, 7.0), "ipc_ms": (0.4, 0.6)}}, 0.0, "rpc_ms"),
        ({"spread": {"process_startup_ms": (0.0, 1.0)}}, 0.0, "process_startup_ms"),
    ],
)
def test_what_is_wrong_with_a_calibration_is_one_line(
    measured: dict[str, Any], others: float, word: str
) -> None:
    (line,) = warnings(PLATFORM.model_copy(update=measured), others)
    assert word in line
    mend = "calibrate again when it is quiet" if others else "chiron calibrate measures longer"
    assert line.startswith("platform known: ") and line.endswith(mend)


def test_each_kind_of_doubt_has_its_line() -> None:
    bad = {"spread": {"rpc_ms": (0.2, 7.0)}, "prediction_error": 0.44}
    assert len(warnings(PLATFORM.model_copy(update=bad), 0.97)) == 3


def test_requests_vary_by_what_computing_takes_of_them() -> None:
    """Every other request computes for half as long again; what it waits is as long as ever."""
    turns = dict[str, int]()

    def deployed(shape: Shape) -> Deployed:
        def latency_ms(work: Work) -> float:
            turns[shape.name] = turn = turns.get(shape.name, 0) + 1
            slow = (turn - 1) // len(CHECKED) % 4 == 3
            waits_ms = longest_wait_ms(shape.workflow, work.profile({CPU: 0.0, NATIVE: 0.0}))
            return waits_ms + 20.0 * (1.5 if slow else 1.0)

        return Deployed(latency_ms)

    once = deployed(shapes()[0])
    check = SelfCheck(
        lambda work: Timed(once.latency_ms(work), PROBE_MS),
        [(shape, deployed(shape)) for shape in PLANS],
        even,
    )
    for _ in range(8 * len(CHECKED)):
        check.measure()
    found = check.work_variation()
    assert len(found) == QUANTILES
    assert (min(found), max(found)) == (1.0, 1.5)
    assert found.count(1.5) == pytest.approx(QUANTILES / 4, abs=1)


def test_too_few_requests_do_not_say_how_they_vary() -> None:
    check = SelfCheck(alone, [], even)
    check.measure()
    assert check.work_variation() == ()
