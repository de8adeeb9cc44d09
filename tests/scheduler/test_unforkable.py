"""No plan has what cannot be forked in a process that is forked for each request."""

from __future__ import annotations

import pytest

from chiron.predictor.forked import wrongly_forked
from chiron.predictor.mechanisms import MECHANISMS
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.plan import Unforkable

REASON = "its answers vary, but not there"


@pytest.fixture
def counting(profile):
    """Function a, which cannot be forked, and b, which can."""
    known = profile(a="cpu 50", b="cpu 50")
    counts = known.functions["a"].model_copy(update={"unforkable": REASON})
    return known.model_copy(update={"functions": {**known.functions, "a": counts}})


@pytest.mark.parametrize("slo_ms", [70.0, 1.0])
def test_it_is_in_the_main_process_or_in_a_pool(slo_ms, counting, workflow, platform):
    for stages in (["a b"], ["a a b b"], ["b", "a b", "b b a"]):
        for mechanism in (*MECHANISMS, "auto"):
            known = workflow(*stages)
            plan = schedule(known, counting, platform(), slo_ms, Choices(mechanism=mechanism))
            assert plan.unforkable == (Unforkable(function="a", reason=REASON),)
            assert list(wrongly_forked(plan, known)) == []


def test_what_can_be_forked_is_forked_beside_it(counting, workflow, platform):
    plan = schedule(workflow("a b"), counting, platform(), 70.0)
    assert (plan.mechanisms, plan.meets_slo) == ("fork", True)
    assert plan.wraps[0].processes == (("s0t0",), ("s0t1",))


def test_a_layout_that_forks_it_all_the_same_says_so(counting, workflow, platform):
    known = workflow("b a")
    plan = schedule(known, counting, platform(), 1000.0, Choices(planner="faastlane"))
    assert not plan.meets_slo
    (line,) = wrongly_forked(plan, known)
    assert line in plan.why
    assert f"a runs in processes that are forked for each request, although {REASON}" in line
