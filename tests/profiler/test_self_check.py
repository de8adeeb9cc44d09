"""How wrong predictions are, from deployments whose latencies are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from predictor.predict import predict
from profiler import noop_handler
from profiler.noop_shapes import shapes
from profiler.self_check import prediction_error, warnings, work_profile
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


@pytest.fixture(autouse=True)
def _even_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores that are as fast before as after."""
    monkeypatch.setattr("profiler.cpu_speed._cores_ms", lambda *_: [1.0])


def no_pause() -> None:
    """Nothing between two rounds."""


def test_right_predictions_have_no_error() -> None:
    assert prediction_error(deployed({}), PLATFORM, no_pause) == 0


@pytest.mark.parametrize("plan", ["threads", "fork-many", "pool-few", "remote-many"])
@pytest.mark.parametrize(("factor", "error"), [(1.25, 0.2), (0.8, 0.25)])
def test_nine_of_ten_errors_are_smaller_whichever_way_plans_err(
    plan: str, factor: float, error: float
) -> None:
    """Of eight plans a single one makes an eighth of the errors."""
    two = prediction_error(deployed({"stages": factor, plan: factor}), PLATFORM, no_pause)
    assert two == pytest.approx(error, abs=0.001)
    one = prediction_error(deployed({plan: factor}), PLATFORM, no_pause)
    assert 0 < one < two


def test_an_error_is_at_most_the_whole() -> None:
    found = prediction_error(deployed({"threads": 0.1, "stages": 0.1}), PLATFORM, no_pause)
    assert found == 1


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
    assert "platform known" in line and "calibrate again" in line


def test_each_kind_of_doubt_has_its_line() -> None:
    bad = {"spread": {"rpc_ms": (0.2, 7.0)}, "prediction_error": 0.44}
    assert len(warnings(PLATFORM.model_copy(update=bad), 0.97)) == 3
