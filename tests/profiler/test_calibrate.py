"""Constants from no-op plans: solved exactly, and measured for real."""

from __future__ import annotations

import json
import os
import sys

import pytest

from generator.launcher import Launcher
from predictor.predict import predict
from profiler import noop_handler
from profiler.calibrate import calibrate
from profiler.constants import Interpreter, platform, spread
from profiler.noop_shapes import FUNCTION, shape, shapes
from workflow.platform import Platform
from workflow.profile import FunctionProfile, Period, Profile

NOOP_MS = 0.004


def predicted(measured: Platform) -> dict[str, float]:
    """What each no-op plan is predicted to take on a platform."""
    periods = (Period(kind="cpu", start_ms=0.0, duration_ms=NOOP_MS),)
    noop = FunctionProfile(latency_ms=NOOP_MS, periods=periods)
    profile = Profile(format=1, workflow="noop", functions={FUNCTION: noop})
    return {
        shape.name: predict(shape.plan, shape.workflow, profile, measured).latency_ms
        for shape in shapes()
    }


def test_plans_take_what_they_took_when_predicted_with_the_constants_found() -> None:
    latencies = {
        "one": 1.7,
        "threads": 2.1,
        "fork-few": 4.9,
        "fork-many": 10.0,
        "pool-few": 2.3,
        "pool-many": 2.6,
        "remote-few": 3.5,
        "remote-many": 5.1,
    }
    found = platform(latencies, Interpreter(5.0, 0.006, NOOP_MS), name="made-up", cpus=64)
    assert predicted(found) == pytest.approx(latencies, abs=0.02)


def test_constants_of_a_known_platform_are_found_again(platform_of: Platform) -> None:
    found = platform(
        predicted(platform_of),
        Interpreter(5.0, platform_of.switch_cost_ms, NOOP_MS),
        name=platform_of.name,
        cpus=platform_of.cpus,
    )
    known = platform_of.model_dump(exclude={"spread"})
    assert found.model_dump(exclude={"spread"}) == pytest.approx(known, abs=0.01)


def test_the_spread_has_the_quartiles_of_what_differs(platform_of: Platform) -> None:
    parts = [platform_of.model_copy(update={"rpc_ms": float(ms)}) for ms in (5, 1, 2, 3, 4)]
    assert spread(parts) == {"rpc_ms": (2.0, 4.0)}
    assert spread([platform_of]) == {}


@pytest.fixture
def platform_of() -> Platform:
    return Platform(
        format=1,
        name="known",
        cpus=64,
        request_ms=2.0,
        rpc_ms=1.5,
        invoke_ms=0.5,
        ipc_ms=0.1,
        process_startup_ms=3.0,
        process_block_ms=1.0,
        pool_dispatch_ms=0.4,
        thread_startup_ms=0.05,
        switch_interval_ms=5.0,
        switch_cost_ms=0.01,
    )


def test_noise_makes_no_constant_negative() -> None:
    latencies = dict.fromkeys((shape.name for shape in shapes()), 2.0) | {"one": 2.5}
    found = platform(latencies, Interpreter(5.0, 0.006, NOOP_MS), name="noisy", cpus=2)
    assert (found.rpc_ms, found.ipc_ms, found.process_block_ms, found.switch_cost_ms) == (0,) * 4


def test_every_no_op_plan_is_sound() -> None:
    for each in [*shapes(), shape("mixed", [[2, 2], [1, 3]], "pool")]:
        each.plan.check_against(each.workflow)


def test_the_no_op_answers_its_request_or_the_interpreters_constants() -> None:
    assert noop_handler.handle("anything") == "anything"
    answer = json.loads(noop_handler.handle(noop_handler.QUESTION))
    assert answer["switch_interval_ms"] == pytest.approx(sys.getswitchinterval() * 1000)
    assert 0 < answer["switch_cost_ms"] < 5


def test_a_real_gateway_is_calibrated_and_left_as_it_was(launcher: Launcher) -> None:
    found = calibrate(launcher, name="here", rounds=10)
    assert (found.name, found.cpus) == ("here", len(os.sched_getaffinity(0)))
    assert found.switch_interval_ms == pytest.approx(5.0)
    assert min(found.request_ms, found.process_startup_ms) > 0
    low, high = found.spread["request_ms"]
    assert 0 < low < high
    assert launcher.gateway.functions() == []
