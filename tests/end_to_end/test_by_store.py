"""Plans over several wraps whose objects go by a store answer as the reference executor does."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources

#: What every task of the small workflow is in, three wraps with further processes.
APART = {
    "small-main": [["Split it", "M1"], ["Wave"]],
    "small-far": [["M2"], ["Zusammen/fügen? {50 %}"]],
    "small-near": [["M3"]],
}
ITEM = {"Type": "Task", "Resource": "price", "End": True}
EACH = {
    "Type": "Map",
    "ItemProcessor": {"StartAt": "Price", "States": {"Price": ITEM}},
    "Next": "Sum",
}
SUM = {"Type": "Task", "Resource": "sum", "End": True}
MACHINE = {"StartAt": "Each", "States": {"Each": EACH, "Sum": SUM}}
FUNCTIONS = {
    "price": "def handle(req):\n    return str(int(req) * 7)\n",
    "sum": "import json\n\ndef handle(req):\n    return str(sum(json.loads(req)))\n",
}
pytestmark = [pytest.mark.redis, pytest.mark.parametrize("store", ["redis"], indirect=True)]


@pytest.fixture
def by_store(place, store):
    """A launcher whose wraps use the store."""
    return replace(place.launcher, store=store.place)


def test_a_static_workflow(store, by_store, write_folder, plan_by_hand, tmp_path, wait_until):
    # Room for a request that is much larger than the payload that wraps are sized for.
    folder = write_folder(tmp_path / "small", fields={"split": {"limits": {"memory": "256Mi"}}})
    plan = plan_by_hand(APART, "pool", path="store")
    large = json.dumps({"a": "x" * 300_000, "price": 1.5}).encode()
    with by_store.launch(folder.workflow, folder, plan) as deployed:
        for request in (b'{"a": 1.0}', "no JSON: ü".encode(), large):
            expected = reference_run(Sources.read(folder), request, by_store.gateway.url).output
            assert deployed.invoke(request).output == expected
        wait_until(lambda: store.names() == [])


def test_a_workflow_that_decides(store, by_store, write_folder, plan_by_hand, tmp_path, wait_until):
    folder = write_folder(tmp_path / "order", MACHINE, FUNCTIONS, {})
    wraps = {"order-main": [["Sum"]], "order-far": [["Price"], ["Price"]]}
    plan = plan_by_hand(wraps, workflow="order", trigger="data", path="store")
    with by_store.launch(folder.workflow, folder, plan) as deployed:
        for items in ([], [*range(60)]):
            request = json.dumps(items).encode()
            expected = reference_run(Sources.read(folder), request, by_store.gateway.url).output
            assert deployed.invoke(request).output == expected
        wait_until(lambda: store.names() == [])
