"""What the wrap runtime costs is measured on wraps that answer as the reference executor does."""

from __future__ import annotations

import pytest

from evaluation.runtime import large_data, large_handler, overheads, rounds, spawning_handler
from evaluation.runtime.pipe import copying
from evaluation.runtime.run import PARTS, measure_runtime


@pytest.mark.parametrize(
    "shape",
    [*overheads.shapes(), *(each for kind in large_data.KINDS for each in large_data.shapes(kind))],
    ids=lambda shape: shape.name,
)
def test_the_plans_run_every_task_of_their_workflows(shape):
    shape.plan.check_against(shape.workflow)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_figure_is_found(part, launcher, monkeypatch):
    monkeypatch.setattr(rounds, "_WARM_UP", 1)
    told = []
    figures = measure_runtime(launcher, 2, told.append, [part])
    assert [figure.name for figure in figures] == [each.name for each in part.quantities]
    assert {figure.samples for figure in figures} == {2}
    assert launcher.gateway.functions() == []
    assert [line.split()[0] for line in told] == ["deploying", f"{part.name}:"]


def test_a_large_output_is_asked_for_made_and_taken_in():
    for name, size in {"large": 10_000_000, "small": 12}.items():
        made = large_handler.handle(large_handler.handle("?" + name))
        assert large_handler.handle(made) == str(len(made)) == str(size)
    whole = large_handler.handle("whole")
    assert large_handler.handle(whole) == whole
    assert len(whole.encode()) == pytest.approx(10_000_000, abs=100)


def test_processes_of_multiprocessing_begin_after_they_were_asked_for():
    first, second = sorted(map(float, spawning_handler.handle("2").strip("[]").split(",")))
    assert 0 < first < second


def test_data_is_copied_as_often_as_asked():
    with copying(b"x" * 1_000_000) as copy_ms:
        assert all(copy_ms() > 0 for _ in range(3))
