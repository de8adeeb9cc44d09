"""Ray and Dask are asked what our wraps are asked, and answer it; what is missing is named."""

from __future__ import annotations

import pytest

from chiron.evaluation import optional
from chiron.evaluation.runtime import rounds
from chiron.evaluation.runtime.costs import measure_runtime
from chiron.evaluation.runtime.others import HAND_OVERS, NOOPS, SYSTEMS, others
from chiron.evaluation.runtime.systems import System
from chiron.workflow.errors import ChironError

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
