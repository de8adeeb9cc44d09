"""Ray and Dask are asked what our wraps are asked, and answer it; what is missing is named."""

from __future__ import annotations

import os

import pytest

from chiron.evaluation import optional
from chiron.evaluation.runtime import rounds
from chiron.evaluation.runtime.costs import measure_runtime
from chiron.evaluation.runtime.others import HAND_OVERS, NOOPS, SYSTEMS, others, wrap_shapes
from chiron.evaluation.runtime.systems import STARTED, System
from chiron.workflow.errors import ChironError
from tests.rows import each_row

EXTRA = "the extra comparison brings it"


class Worker:
    """Runs tasks at once, here, and keeps what each ran where."""

    def __init__(self):
        self.ran = []

    def call(self, worker, function, *given):
        self.ran.append((worker, function.__name__, len(given)))
        return function(*given)

    def system(self) -> System:
        return System("here", self.call, list)


@each_row("shape", wrap_shapes(), ids=lambda shape: shape.name)
def test_the_plans_run_every_task_of_their_workflows(shape):
    shape.plan.check_against(shape.workflow)


def test_wraps_have_the_tasks_that_other_systems_have():
    for shape, ask in zip(wrap_shapes(), 2 * (NOOPS + HAND_OVERS), strict=True):
        worker = Worker()
        assert ask.on(worker.system())
        assert len(worker.ran) == sum(ask.stages) == len(shape.workflow.tasks)


def test_every_task_of_a_stage_takes_all_that_the_stage_before_gives_from_two_workers():
    worker = Worker()
    fan = next(ask for ask in NOOPS if ask.name.startswith("fan-out"))
    assert fan.on(worker.system())
    assert [given for _, _, given in worker.ran] == [1] * 17 + [16]
    assert [place for place, _, _ in worker.ran[1:17]] == [1, 0] * 8


def test_a_wrong_answer_is_noticed():
    lossy = System("lossy", Worker().call, lambda outputs: [None for _ in outputs])
    assert not any(ask.on(lossy) for ask in NOOPS + HAND_OVERS)


def test_where_nothing_is_installed_the_line_that_installs_it_is_said(monkeypatch):
    monkeypatch.setattr(optional, "find_spec", lambda library: None)
    with pytest.raises(ChironError, match=r"pip install 'chiron-openfaas\[comparison\]'") as raised:
        others()
    assert raised.value.code == "not-installed"


def test_what_is_not_installed_has_no_figures(monkeypatch):
    monkeypatch.setattr(optional, "find_spec", lambda library: library == "ray" or None)
    systems = {quantity.system.split()[0] for quantity in others().quantities}
    assert systems == {"wrap,", "Ray"}


@pytest.mark.slow
@pytest.mark.parametrize("library", SYSTEMS)
def test_a_system_answers_what_it_is_asked(library):
    if optional.missing(library):
        pytest.skip(f"{library} is not installed: {EXTRA}")
    with STARTED[library]() as systems:
        for system in systems:
            assert all(ask.on(system) for ask in HAND_OVERS + NOOPS[:2])


@pytest.mark.slow
def test_tasks_of_dask_run_where_they_are_told():
    pytest.importorskip("distributed", reason=EXTRA)
    with STARTED["Dask"]() as (_, told):
        workers = [told.answers([told.call(n, os.getpid) for _ in range(4)]) for n in (0, 1)]
    assert [len(set(each)) for each in workers] == [1, 1]
    assert len({os.getpid(), *workers[0], *workers[1]}) == 3


@pytest.mark.slow
def test_every_figure_is_found(launcher, monkeypatch):
    if not any(optional.missing(library) is None for library in SYSTEMS):
        pytest.skip(f"neither Ray nor Dask is installed: {EXTRA}")
    monkeypatch.setattr(rounds, "_WARM_UP", 0)
    part = others()
    figures = measure_runtime(launcher, 2, lambda line: None, [part])
    names = [(quantity.name, quantity.system) for quantity in part.quantities]
    assert [(figure.name, figure.system) for figure in figures] == names
    assert launcher.gateway.functions() == []
