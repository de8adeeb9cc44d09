"""A Pareto front has no plan that another one beats, and the cheapest and fastest are on it."""

from __future__ import annotations

import shlex
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chiron.scheduler.choices import Choices
from chiron.scheduler.options import Option
from chiron.scheduler.pareto import considered, pareto, preferred, undominated
from chiron.scheduler.picture import Picture, draw
from chiron.scheduler.schedule import job_of, schedule
from chiron.workflow.errors import ChironError
from tests.examples import FEWER

periods = st.tuples(st.sampled_from(["cpu", "cpu", "block", "native"]), st.integers(0, 20))
texts = st.lists(periods, min_size=1, max_size=3).map(
    lambda listed: " ".join(f"{kind} {duration}" for kind, duration in listed)
)


@FEWER
@given(
    st.fixed_dictionaries(dict.fromkeys("abcd", texts)),
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(" ".join), min_size=1),
    st.sampled_from(["fork", "pool", "auto"]),
)
# Three CPUs are faster than two by 0.01 ms, which their estimate denies.
@example(dict.fromkeys("abc", "cpu 0") | {"d": "cpu 8"}, ["a a a d", "a d d"], "pool")
def test_no_plan_of_a_front_beats_another_and_the_best_are_on_it(
    workflow, profile, platform, functions, stages, mechanism
):
    known, measured, place = workflow(*stages[:3]), profile(**functions), platform(cpus=2)
    job = job_of(known, measured, place, 20.0)
    front = pareto(considered(job, mechanism), job, 20.0)
    weights = [(plan.latency_ms, plan.cpus, plan.memory_mib) for plan in front.plans]
    for one in weights:
        assert not any(
            other != one and all(a <= b for a, b in zip(other, one, strict=True))
            for other in weights
        )
    assert len(set(weights)) == len(weights)
    for strategy in ("cost", "latency"):
        plan = schedule(
            known, measured, place, 20.0, Choices(mechanism=mechanism, strategy=strategy)
        )
        assert any(ms <= plan.predicted.latency_ms and cpus <= plan.cpus for ms, cpus, _ in weights)
    for each in front.plans:
        assert each.plan.predicted.latency_ms == each.latency_ms
        each.plan.check_against(known)


@pytest.mark.parametrize("strategy", ["cost", "balanced", "latency"])
def test_preferred_plans_are_each_faster_than_those_before_and_the_scheduled_one_is_there(
    workflow, profile, platform, strategy
):
    known, measured, place = workflow("a a a", "b"), profile(a="cpu 10", b="cpu 5"), platform()
    job = job_of(known, measured, place, 20.0)
    found = preferred(considered(job), strategy)
    latencies = [option.judged_ms for option in found]
    assert latencies == sorted(set(latencies), reverse=True)
    assert latencies[-1] == min(option.judged_ms for option in considered(job))
    if strategy == "latency":
        assert len(found) == 1
    if strategy == "cost":
        for option in found:
            chosen = schedule(known, measured, place, option.judged_ms)
            assert chosen.cpus == option.plan.cpus


def test_a_front_can_be_drawn(workflow, profile, platform, tmp_path):
    pytest.importorskip("matplotlib")
    known = workflow("a a a")
    job = job_of(known, profile(a="cpu 10"), platform(), 20.0)
    draw(Picture("demo", 20.0, considered(job), job.percentile), tmp_path / "new" / "front.png")
    assert (tmp_path / "new" / "front.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_without_matplotlib_says_how_to_install_it_here(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ChironError, match=r"pip install 'chiron-openfaas\[evaluation\]'") as caught:
        draw(Picture("w", slo_ms=1, considered=(), percentile=50), tmp_path / "front.png")
    assert caught.value.code == "no-matplotlib"
    assert f": {shlex.quote(sys.executable)} -m pip install" in str(caught.value)


def test_a_picture_has_the_chosen_plan_once_whichever_planner_it_is_of(workflow, profile, platform):
    known, measured, place = (
        workflow("a b", "c"),
        profile(a="cpu 9", b="cpu 8", c="cpu 1"),
        platform(),
    )
    found = considered(job_of(known, measured, place, 20.0))
    for planner in ("pgp", "one-to-one", "sand", "faastlane-t"):
        plan = schedule(known, measured, place, 20.0, Choices(planner=planner))
        chosen = Option(plan, plan.predicted.latency_ms, fits=True)
        front = Picture("demo", 20.0, found, 95.0, chosen).front
        assert [option.judged_ms for option in front] == sorted(
            (option.judged_ms for option in front), reverse=True
        )
        chosen = [o for o in front if o.judged_ms == plan.predicted.latency_ms]
        assert [option.plan.cpus for option in chosen] == [plan.cpus]
        assert len(front) - len(undominated(found)) in (0, 1)


def test_no_plan_is_looked_for_when_the_time_is_over(workflow, profile, platform):
    job = job_of(workflow("a a"), profile(a="cpu 10"), platform(), 20.0)
    assert considered(job, seconds=0.0) == []
