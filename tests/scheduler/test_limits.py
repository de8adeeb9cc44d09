"""Plans keep the limits of a cluster wherever one can."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chiron.scheduler.choices import Choices
from chiron.scheduler.folder_settings import FolderSettings
from chiron.scheduler.limits import exceeded
from chiron.scheduler.pareto import considered, pareto
from chiron.scheduler.schedule import job_of, schedule
from chiron.workflow.profile import Profile


@pytest.fixture
def heavy(profile) -> Profile:
    """Four functions of 100 MiB each."""
    known = profile(a="cpu 10", b="cpu 11", c="cpu 12", d="cpu 13")
    functions = {
        name: function.model_copy(update={"memory_mib": 100.0})
        for name, function in known.functions.items()
    }
    return known.model_copy(update={"functions": functions})


@pytest.mark.parametrize("mechanism", ["fork", "pool"])
@pytest.mark.parametrize("strategy", ["cost", "balanced", "latency"])
def test_functions_that_do_not_fit_a_node_together_are_spread(
    workflow, heavy, platform, mechanism, strategy
):
    known = workflow("a b c d")
    options = {"mechanism": mechanism, "strategy": strategy}
    one = schedule(known, heavy, platform(), 500.0, Choices(**options))
    several = schedule(known, heavy, platform(), 500.0, Choices(node_memory_mib=320, **options))
    assert max(wrap.memory_mib for wrap in one.wraps) > 320
    assert max(wrap.memory_mib for wrap in several.wraps) <= 320
    assert several.meets_slo and not any("limit" in line for line in several.why)


def test_where_no_plan_fits_the_best_one_says_what_it_exceeds(workflow, heavy, platform):
    choices = Choices(node_memory_mib=150)
    plan = schedule(workflow("a b"), heavy, platform(), 500.0, choices)
    assert plan.meets_slo and exceeded(plan, choices.limits)
    assert plan.why[-1].startswith("limit: ")


def test_no_planner_with_too_many_functions_is_chosen(workflow, profile, platform):
    """Faastlane+ would be fastest with 5 wraps; 3 are allowed."""
    place = platform(rpc_ms=0.0, invoke_ms=0.0, process_block_ms=50.0, process_startup_ms=0.0)
    known, functions = workflow("a " * 25), profile(a="cpu 100")
    for strategy in ("cost", "latency"):
        plan = schedule(known, functions, place, 1.0, Choices(strategy=strategy, max_functions=3))
        assert len(plan.wraps) <= 3


def test_a_front_has_only_plans_within_the_limits_where_there_are_any(workflow, heavy, platform):
    def front(memory: int) -> list[int]:
        job = job_of(workflow("a b c d"), heavy, platform(), 50.0, Choices(node_memory_mib=memory))
        plans = pareto(considered(job), job, 50.0).plans
        return [max(wrap.memory_mib for wrap in each.plan.wraps) for each in plans]

    assert front(320) and max(front(320)) <= 320
    assert front(100) and min(front(100)) > 100


def test_functions_that_are_called_are_among_those_that_may_be_deployed(workflow, heavy, platform):
    known, choices = workflow("a b c d"), Choices(node_memory_mib=320)
    two = schedule(known, heavy, platform(), 500.0, choices)
    assert len(two.wraps) == 2
    job = job_of(known, heavy, platform(), 500.0, choices, FolderSettings(called=("a", "b")))
    assert exceeded(two, job.limits) == ()
    few = replace(job.limits, functions=3)
    assert "4 functions to deploy, 3 allowed" in exceeded(two, few)[0]
    assert (few.wraps, replace(few, functions=1).wraps) == (1, 1)
