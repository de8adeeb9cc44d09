"""The range of a prediction: what spread, errors and the speed of the machine make of it."""

from __future__ import annotations

import pytest
from by_hand import ALONE, FUNCTIONS, TWO_WRAPS, WORKFLOW, Wraps, plan

from chiron.predictor.explain import explanation
from chiron.predictor.predict import predict
from chiron.predictor.speed import at_any_speed, platform_at, profile_at
from chiron.workflow.platform import PathCost, Platform
from chiron.workflow.profile import LONGEST_MS, Profile


def test_the_range_is_what_the_spread_of_the_functions_makes_of_it(costs, profile):
    functions = profile(**FUNCTIONS).functions
    spread = functions["a"].model_copy(update={"spread_ms": (8.0, 12.0)})
    uncertain = Profile(format=1, workflow="demo", functions=functions | {"a": spread})
    prediction = predict(plan(TWO_WRAPS), WORKFLOW, uncertain, costs)
    # At 8 ms the wrap ends at 10.5 and the remote one (12) decides; at 12 ms it ends at 14.5.
    assert (prediction.low_ms, prediction.high_ms) == (15.0, 17.5)


def test_the_range_is_what_the_spread_of_the_constants_makes_of_it(costs, profile):
    """The remote wrap decides: T_RPC and T_INV come once each before its 10 ms."""
    rpc = (costs.rpc_ms - 1.0, costs.rpc_ms + 3.0)
    uncertain = costs.model_copy(update={"spread": {"rpc_ms": rpc}})
    wraps: Wraps = [["abc"], ["d"]]
    certain = predict(plan(wraps, cpus=1), WORKFLOW, profile(**FUNCTIONS), costs)
    found = predict(plan(wraps, cpus=1), WORKFLOW, profile(**FUNCTIONS), uncertain)
    assert found.latency_ms == certain.latency_ms
    assert (found.low_ms, found.high_ms) == (found.latency_ms - 1.0, found.latency_ms + 3.0)


def test_the_range_is_wider_by_the_error_of_predictions(costs, profile):
    uncertain = costs.model_copy(update={"prediction_error": 0.2})
    found = predict(plan(TWO_WRAPS), WORKFLOW, profile(**FUNCTIONS), uncertain)
    assert found.low_ms == pytest.approx(0.8 * found.latency_ms)
    assert found.high_ms == pytest.approx(1.2 * found.latency_ms)


def test_the_range_has_the_speeds_that_the_machine_may_have(costs, profile):
    """What is computed and what was timed there changes, waiting does not."""
    drifting = costs.model_copy(update={"speed_drift": 0.25})
    found = predict(plan([["a"]]), ALONE, profile(a="cpu 20 block 10"), drifting)
    assert found.low_ms == pytest.approx(found.latency_ms - 20 * (1 - 1 / 1.25))
    assert found.high_ms == pytest.approx(found.latency_ms + 20 * 0.25)
    timed = drifting.model_copy(update={"request_ms": 4.0, "spread": {"request_ms": (4.0, 4.0)}})
    found = predict(plan([["a"]]), ALONE, profile(a="cpu 20 block 10"), timed)
    assert found.high_ms == pytest.approx(found.latency_ms + 24 * 0.25)


@pytest.fixture
def slowed(costs, profile) -> tuple[Profile, Platform]:
    """Functions profiled while the cores were half as fast as when the platform was calibrated."""
    slow = profile(a="cpu 20 block 10", b="cpu 8", c="block 3", d="cpu 4")
    for name, function in slow.functions.items():
        slow.functions[name] = function.model_copy(update={"cpu_probe_ms": 2.0})
    return slow, costs.model_copy(update={"cpu_probe_ms": 1.0})


def test_functions_are_as_fast_as_the_platform_was_when_it_was_calibrated(slowed):
    """The request takes 1 ms; a computes for 10 then, and waits for 10 as ever."""
    found = predict(plan([["a"]]), ALONE, *slowed)
    assert found.latency_ms == found.low_ms == found.high_ms == 21.0


def test_whatever_is_told_of_a_plan_is_at_that_speed(slowed):
    of_all = plan(TWO_WRAPS)
    found = predict(of_all, WORKFLOW, *slowed)
    same = profile_at(slowed[0], 1.0), slowed[1].model_copy(update={"cpu_probe_ms": None})
    assert found == predict(of_all, WORKFLOW, *same)
    told, (timeline,) = explanation(of_all, WORKFLOW, *slowed)
    assert told.prediction == found
    assert timeline.latency_ms == pytest.approx(found.latency_ms)


def test_a_platform_at_another_speed_costs_what_it_would_there(costs):
    measured = {"spread": {"request_ms": (0.5, 2.0)}, "idle": {"stage_ms": 0.5}}
    path = PathCost(ms=2.0, ms_per_mb=4.0, spread={"ms": (1.0, 3.0)})
    then = costs.model_copy(update={"cpu_probe_ms": 1.0, "paths": {"direct": path}, **measured})
    now = platform_at(then, 1.5)
    assert (now.request_ms, now.rpc_ms, now.cpu_probe_ms) == (1.5, 12.0, 1.5)
    assert (now.idle, now.spread) == ({"stage_ms": 0.75}, {"request_ms": (0.75, 3.0)})
    assert now.paths == {"direct": PathCost(ms=3.0, ms_per_mb=6.0, spread={"ms": (1.5, 4.5)})}
    assert now.switch_interval_ms == then.switch_interval_ms
    assert at_any_speed(now) == at_any_speed(then)
    given = then.model_copy(update={"spread": {}})
    assert platform_at(given, 1.5).request_ms == 1.0
    unknown = then.model_copy(update={"cpu_probe_ms": None})
    assert platform_at(unknown, 1.5).request_ms == 1.0


def test_no_range_passes_the_longest_time_that_there_is(costs, profile):
    uncertain = costs.model_copy(update={"prediction_error": 0.5, "request_ms": 0.9 * LONGEST_MS})
    assert predict(plan(TWO_WRAPS), WORKFLOW, profile(**FUNCTIONS), uncertain).high_ms == LONGEST_MS


def test_without_a_spread_the_range_is_the_latency(costs, profile):
    prediction = predict(plan(TWO_WRAPS), WORKFLOW, profile(**FUNCTIONS), costs)
    assert prediction.low_ms == prediction.latency_ms == prediction.high_ms
