"""Objects go from wrap to wrap by every path that there is here; what is missing is left out."""

from __future__ import annotations

import pytest

from chiron.evaluation.runtime import rounds, servers
from chiron.evaluation.runtime.costs import measure_runtime
from chiron.evaluation.runtime.paths import WAYS, paths, sending, shapes
from chiron.generator.stores import StorePlace


@pytest.fixture
def without(monkeypatch):
    """Has programs be missing."""

    def hide(*names):
        found = servers.program
        monkeypatch.setattr(servers, "program", lambda n: None if n in names else found(n))

    return hide


def test_a_store_whose_server_is_missing_has_no_figures(without):
    without("minio", "redis-server")
    assert {quantity.system for quantity in paths().quantities} == {
        "bare sendfile",
        "direct",
        "gateway",
    }
    assert servers.missing("MinIO") == "minio is missing: make minio"


def test_what_is_larger_than_the_gateway_takes_has_no_figure_there():
    names = [quantity.name for quantity in paths().quantities if quantity.system == "gateway"]
    assert names == ["1 kB from wrap to wrap", "1 MB from wrap to wrap"]


def test_the_plans_run_every_task_and_go_by_the_path_that_they_are_named_after():
    store = StorePlace("redis://here")
    made = shapes(WAYS, {"Redis": store, "MinIO": store})
    for each in made.values():
        each.plan.check_against(each.workflow)
    assert {name: each.plan.path for name, each in made.items()} == {
        "a thread": "auto",
        "direct": "auto",
        "gateway": "gateway",
        "Redis": "store",
        "MinIO": "store",
    }


@pytest.mark.parametrize("size", [1, 3_000_000])
def test_bytes_are_sent_as_often_as_asked(size):
    with sending(size) as sent_ms:
        assert all(sent_ms() > 0 for _ in range(3))


@pytest.mark.soak
def test_every_figure_is_found(launcher, monkeypatch):
    monkeypatch.setattr(rounds, "_WARM_UP", 0)
    part = paths()
    figures = measure_runtime(launcher, 2, lambda line: None, [part])
    names = [(quantity.name, quantity.system) for quantity in part.quantities]
    assert [(figure.name, figure.system) for figure in figures] == names
    assert launcher.gateway.functions() == []
