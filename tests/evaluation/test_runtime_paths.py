"""Objects go from wrap to wrap by every path that there is here; what is missing is left out."""

from __future__ import annotations

import pytest

from chiron.evaluation.runtime import servers
from chiron.evaluation.runtime.paths import WAYS, paths, shapes
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
