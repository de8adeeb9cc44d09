"""No plan has what cannot be forked in a process that is forked for each request."""

from __future__ import annotations

import pytest

from chiron.predictor.forked import wrongly_forked
from chiron.predictor.mechanisms import EVERYWHERE
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.errors import ChironError
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
        for mechanism in (*EVERYWHERE, "auto"):
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


@pytest.fixture
def refused(profile):
    """Function a, which sub-interpreters refuse, and b and c, which run there; c changes files."""
    known = profile(a="cpu 50", b="cpu 50", c="cpu 50")
    facts = {
        "a": {"tried": {"interpreters": "module x does not support loading in subinterpreters"}},
        "b": {"tried": {"interpreters": ""}},
        "c": {"tried": {"interpreters": ""}, "unshareable": ("sys.stdout", "os.umask")},
    }
    functions = {n: f.model_copy(update=facts[n]) for n, f in known.functions.items()}
    return known.model_copy(update={"functions": functions})


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("a", "module x does not support loading in subinterpreters"),
        ("c", "it changes what interpreters share (os.umask)"),
    ],
)
def test_what_sub_interpreters_refuse_is_in_the_main_process(
    function, reason, refused, workflow, platform
):
    place = platform(interpreters_dispatch_ms=0.1)
    choices = Choices(mechanism="interpreters")
    plan = schedule(workflow(f"b {function}"), refused, place, 70.0, choices)
    assert (plan.mechanisms, plan.meets_slo) == ("interpreters", True)
    assert plan.wraps[0].processes == (("s0t1",), ("s0t0",))
    shown = Unforkable(function=function, reason=reason, mechanism="interpreters")
    assert shown in plan.unforkable
    layout = choices.model_copy(update={"planner": "faastlane"})
    known = workflow(f"b {function} {function}")
    (line, *_) = wrongly_forked(schedule(known, refused, place, 1e4, layout), known)
    assert f"{function} runs in sub-interpreters, although {reason}: have it in the main" in line


def test_auto_takes_sub_interpreters_where_they_win_and_the_platform_has_them(
    refused, workflow, platform
):
    known, auto = workflow("b b"), Choices(mechanism="auto")
    slower = {"pool_dispatch_ms": 9.0, "process_startup_ms": 9.0}
    with_them = platform(interpreters_dispatch_ms=0.1, **slower)
    assert schedule(known, refused, with_them, 55.0, auto).mechanisms == "interpreters"
    assert "interpreters" not in schedule(known, refused, platform(**slower), 70.0, auto).mechanisms
    with pytest.raises(ChironError, match="needs wraps with Python 3"):
        schedule(known, refused, platform(), 70.0, Choices(mechanism="interpreters"))
