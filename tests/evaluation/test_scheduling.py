"""The scheduler's evaluation: its baselines are what they claim."""

from __future__ import annotations

from itertools import permutations

import pytest

from chiron.evaluation.scheduling.exhaustive import (
    PLATFORM,
    compare_small_stages,
    in_stages,
    least_latencies_ms,
    random_profile,
    stage_ms,
    workflow_of,
)
from chiron.evaluation.scheduling.published import published_ms
from chiron.predictor.predict import Predictor
from chiron.scheduler.options import Options
from chiron.scheduler.schedule import job_of

#: A place where a fork costs next to nothing.
CHEAP = PLATFORM.model_copy(update={"process_startup_ms": 0.5, "process_block_ms": 0.5})


def test_no_plan_of_a_small_stage_is_faster_than_the_exhaustive_search():
    stages = list(compare_small_stages(12, seed=5))
    assert all(stage.latency_ms >= stage.least_ms - 0.001 for stage in stages)
    assert all(stage.processes >= stage.least_processes for stage in stages)
    assert {stage.mechanism for stage in stages} == {"fork", "pool"}


@pytest.mark.parametrize("kinds", [("cpu", "block"), ("native", "cpu")])
def test_the_least_latency_of_one_process_is_that_of_its_best_order(kinds):
    profile = random_profile(3, kinds, seed=2)
    predictor = Predictor(profile, PLATFORM)
    best_ms = min(
        stage_ms(predictor, (order,), 1, "fork") for order in permutations(profile.functions)
    )
    least_ms = least_latencies_ms(profile, PLATFORM, "fork")
    assert least_ms[0] == pytest.approx(best_ms, abs=1e-4)
    assert least_ms == sorted(least_ms, reverse=True)


def test_the_published_algorithm_puts_waiting_functions_with_computing_ones():
    """What is dealt out in turn is one process of two that compute, and one of two that wait."""
    profile = random_profile(4, ("cpu",), seed=1)
    busy, idle = profile.functions["f0000"], profile.functions["f0001"]
    waits = tuple(p.model_copy(update={"kind": "block"}) for p in idle.periods)
    functions = {
        "f0000": busy,
        "f0001": idle.model_copy(update={"periods": waits}),
        "f0002": busy,
        "f0003": idle.model_copy(update={"periods": waits}),
    }
    profile = profile.model_copy(update={"functions": functions})
    workflow = workflow_of(in_stages(profile, 1))
    (options,) = Options.all_of(job_of(workflow, profile, CHEAP, 100.0), "fork")
    dealt = (("f0000", "f0002"), ("f0001", "f0003"))
    dealt_ms = stage_ms(Predictor(profile, CHEAP), dealt, 2, "fork")
    assert published_ms(options, 2) < dealt_ms
