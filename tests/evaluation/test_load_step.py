"""A step of the load is measured as it is told, and its workflows answer as they should."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from chiron.evaluation.runtime import load_step
from chiron.evaluation.runtime.load_step import Sent, back_s, cases, measure_load_step, p95_s


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_plans_run_every_task_of_their_workflows(case):
    case.shape.plan.check_against(case.shape.workflow)


@pytest.mark.parametrize(
    ("p95s", "back"),
    [
        ([0.1, 0.1, 0.1], 10.0),
        ([0.5, 0.4, 0.1], 12.0),
        ([0.5, 0.1, 0.4, 0.1], 13.0),
        ([0.5, 0.5], 40.0),
    ],
)
def test_p95_is_back_when_it_stays(p95s, back):
    windows = {14.0 + number: p95 for number, p95 in enumerate(p95s)}
    assert back_s(windows, 0.15, 10.0, 40.0) == back


def test_what_was_lost_took_the_longest():
    sent = [Sent(0.0, 0.1)] * 90
    assert p95_s(sent) == pytest.approx(0.1)
    assert p95_s(sent + [Sent(0.0, None)] * 10) == load_step._LATE_S


@pytest.mark.soak
def test_ways_are_measured_in_turn_and_each_scales_as_it_says(launcher, monkeypatch):
    for name in ("_LOW_S", "_HIGH_S", "_WINDOW_S"):
        monkeypatch.setattr(load_step, name, 0.5)
    asked = []

    @contextmanager
    def scaling(names, by_pressure):
        asked.append((len(names), by_pressure))
        for name in names:
            launcher.gateway.scale(name, 2)
        yield

    case = cases()[1]._replace(per_s=4.0)
    figures = measure_load_step(launcher, 2, lambda _: None, scaling, [case])
    found = {(each.system, each.name.partition(": ")[2]): each for each in figures}
    assert asked == [(2, False), (2, True), (2, False), (2, True)]
    assert {each.samples for each in figures} == {2}
    for way, replicas in {"no scaling": 2, "by the queue": 4}.items():
        assert found[way, "replicas in the end"].median == replicas
        assert found[way, "requests lost"].median == 0
        assert found[way, "p95 before the step"].median > 10
    assert launcher.gateway.functions() == []
