"""How wrong predictions are, from deployments whose latencies are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from predictor.predict import predict
from profiler import noop_handler
from profiler.noop_shapes import shapes
from profiler.self_check import prediction_error, work_profile
from workflow.platform import Platform

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
)
ALONE_MS = 18.0


@dataclass(frozen=True)
class Answer:
    latency_ms: float
    output: str = ""
    timeline: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Deployed:
    """Answers after a time that is known."""

    latency_ms: float

    def invoke(self, request: bytes, *, trace: bool = False) -> Answer:
        assert request.decode() == noop_handler.WORK
        rows = [{"kind": "run", "start_ms": 1.0, "end_ms": 1.0 + ALONE_MS}] if trace else []
        return Answer(self.latency_ms, timeline=rows)


def deployed(factors: Mapping[str, float]) -> dict[str, Deployed]:
    """Every plan, as long as predicted times a factor, 1 where none is given."""
    profile = work_profile(ALONE_MS)
    return {
        each.name: Deployed(
            predict(each.plan, each.workflow, profile, PLATFORM).latency_ms
            * factors.get(each.name, 1.0)
        )
        for each in shapes()
    }


def test_right_predictions_have_no_error() -> None:
    assert prediction_error(deployed({}), PLATFORM, predict) == 0


@pytest.mark.parametrize("plan", ["threads", "fork-many", "pool-few", "remote-many"])
@pytest.mark.parametrize(("factor", "error"), [(1.25, 0.2), (0.8, 0.25)])
def test_the_worst_plan_decides_whichever_way_it_errs(
    plan: str, factor: float, error: float
) -> None:
    found = prediction_error(deployed({"pool-many": 1.05, plan: factor}), PLATFORM, predict)
    assert found == pytest.approx(error, abs=0.001)


def test_an_error_is_at_most_the_whole() -> None:
    assert prediction_error(deployed({"threads": 0.1}), PLATFORM, predict) == 1


def test_the_work_computes_on_both_sides_of_its_pause() -> None:
    (function,) = work_profile(ALONE_MS).functions.values()
    assert function.latency_ms == ALONE_MS
    assert [(p.kind, p.duration_ms) for p in function.periods] == [
        ("cpu", 4.0),
        ("block", noop_handler.WORK_PAUSE_MS),
        ("cpu", 4.0),
    ]


def test_work_that_is_over_before_its_pause_is_all_pause() -> None:
    (function,) = work_profile(9.0).functions.values()
    assert function.latency_ms == noop_handler.WORK_PAUSE_MS
