"""The functions of orders are right, and every payload takes the way that it is made for."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chiron.evaluation.reference.executor import ReferenceRun
from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources
from chiron.workflow.folder import WorkflowFolder
from tests.rows import each_row

FUNCTIONS = ["Charge", "Check Order", "Confirm", "Pack", "Reserve", "Score Risk"]


@pytest.fixture
def orders(benchmarks: Path) -> Path:
    """The folder of the workflow."""
    return benchmarks / "orders"


def answered(orders: Path, payload: str) -> tuple[dict[str, Any], ReferenceRun]:
    """Return what the workflow answers to a payload, and its run."""
    sources = Sources.read(WorkflowFolder.open(orders))
    run = reference_run(sources, (orders / payload).read_bytes(), "http://127.0.0.1:9")
    return json.loads(run.output), run


def ran(run: ReferenceRun) -> dict[str, int]:
    """Return how often each task was run."""
    tasks = [name.rpartition("#")[0] for name in run.inputs]
    return {task: tasks.count(task) for task in FUNCTIONS if task in tasks}


def test_an_order_is_packed_reserved_paid_and_confirmed(orders: Path) -> None:
    answer, run = answered(orders, "payload.json")
    assert answer["payment"] == {"paid_cents": 71615, "card": "1486"} | {
        "reference": "f45d322d785d17fc"
    }
    assert answer["shipping_cents"] == 3312
    assert [line["reservation"] for line in answer["lines"]] == [f"A006-{n}" for n in range(1, 7)]
    assert ran(run) == {"Charge": 1, "Check Order": 1, "Confirm": 1, "Pack": 6, "Reserve": 6}


@pytest.mark.slow
def test_a_large_order_is_looked_at_first(orders: Path) -> None:
    answer, run = answered(orders, "payloads/large.json")
    assert (answer["payment"]["paid_cents"], len(answer["lines"])) == (199_072, 24)
    assert ran(run) == dict.fromkeys(FUNCTIONS, 1) | {"Pack": 24, "Reserve": 24}


@pytest.mark.slow
def test_a_large_order_of_one_who_did_not_pay_is_refused(orders: Path) -> None:
    answer, run = answered(orders, "payloads/debtor.json")
    assert answer == {"order": "A024", "refused": "the buyer may be Anan Quinyan"}
    assert ran(run) == {"Check Order": 1, "Pack": 24, "Reserve": 24, "Score Risk": 1}


def test_an_order_that_is_wrong_is_refused_at_once(orders: Path) -> None:
    answer, run = answered(orders, "payloads/wrong.json")
    assert answer == {"order": "A006", "refused": "4083194436730 is no article"}
    assert ran(run) == {"Check Order": 1}


def test_payloads_are_those_of_sizes_but_for_what_decides(orders: Path) -> None:
    small, large, debtor, wrong = (
        json.loads((orders / name).read_text())
        for name in ("payload.json", *(f"payloads/{p}.json" for p in ("large", "debtor", "wrong")))
    )
    assert debtor | {"buyer": large["buyer"]} == large
    assert wrong["lines"][:-1] == small["lines"][:-1]


@each_row(
    ("change", "words"),
    [
        ({"card": "4539578763621487"}, "card"),
        ({"card": ""}, "card"),
        ({"lines": [{"article": "4006381333931", "quantity": 0, "cents": 1}]}, "0 of"),
        ({"lines": [{"article": "4006381333913", "quantity": 1, "cents": 1}]}, "no article"),
    ],
)
def test_what_is_wrong_is_named(
    change: dict[str, Any], words: str, orders: Path, functions: SimpleNamespace
) -> None:
    order = json.loads((orders / "payload.json").read_text()) | change
    with pytest.raises(ValueError, match=words):
        functions.call(orders / "functions" / "check-order", json.dumps(order))
