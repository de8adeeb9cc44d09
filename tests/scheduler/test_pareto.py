"""A Pareto front has no plan that another one beats, and the cheapest and fastest are on it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.pareto import pareto
from scheduler.pareto_picture import draw
from scheduler.schedule import job_of, schedule

periods = st.tuples(st.sampled_from(["cpu", "cpu", "block", "native"]), st.integers(0, 20))
texts = st.lists(periods, min_size=1, max_size=3).map(
    lambda listed: " ".join(f"{kind} {duration}" for kind, duration in listed)
)


@settings(deadline=None, max_examples=40)
@given(
    st.fixed_dictionaries(dict.fromkeys("abcd", texts)),
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(" ".join), min_size=1),
    st.sampled_from(["fork", "pool", "auto"]),
)
def test_no_plan_of_a_front_beats_another_and_the_best_are_on_it(
    workflow, profile, platform, functions, stages, mechanism
):
    known, measured, place = workflow(*stages[:3]), profile(**functions), platform(cpus=2)
    front = pareto(job_of(known, measured, place, 20.0), 20.0, mechanism)
    weights = [(plan.latency_ms, plan.cpus, plan.memory_mib) for plan in front.plans]
    for one in weights:
        assert not any(
            other != one and all(a <= b for a, b in zip(other, one, strict=True))
            for other in weights
        )
    assert len(set(weights)) == len(weights)
    for strategy in ("cost", "latency"):
        plan = schedule(known, measured, place, 20.0, mechanism=mechanism, strategy=strategy)
        assert any(ms <= plan.predicted.latency_ms and cpus <= plan.cpus for ms, cpus, _ in weights)
    for each in front.plans:
        assert each.plan.predicted.latency_ms == each.latency_ms
        each.plan.check_against(known)


def test_a_front_can_be_drawn(workflow, profile, platform, tmp_path):
    pytest.importorskip("matplotlib")
    known = workflow("a a a")
    front = pareto(job_of(known, profile(a="cpu 10"), platform(), 20.0), 20.0)
    draw(front, tmp_path / "new" / "front.png")
    assert (tmp_path / "new" / "front.png").read_bytes().startswith(b"\x89PNG")
