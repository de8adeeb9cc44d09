"""Which machines need an evaluator of JSONata."""

from __future__ import annotations

from typing import Any

from chiron.workflow.asl import parse_states
from chiron.workflow.asl_queries import uses_jsonata
from tests.rows import each_row

TASK = {"Type": "Task", "Resource": "f", "End": True}
QUERY = TASK | {"QueryLanguage": "JSONata", "Output": 1}
INNER = {"StartAt": "Q", "States": {"Q": QUERY}}
WITHOUT = {"StartAt": "T", "States": {"T": TASK}}


@each_row(
    ("state", "expected"),
    [
        (TASK | {"ResultPath": None}, False),
        (QUERY, True),
        ({"Type": "Map", "ItemProcessor": INNER, "End": True}, True),
        ({"Type": "Parallel", "Branches": [WITHOUT, INNER], "End": True}, True),
        ({"Type": "Map", "ItemProcessor": WITHOUT, "End": True}, False),
    ],
)
def test_a_machine_uses_jsonata_if_a_state_at_any_depth_does(
    state: dict[str, Any], expected: bool
) -> None:
    workflow = parse_states({"StartAt": "S", "States": {"S": state}}, "demo")
    assert uses_jsonata(workflow.machine) is expected


def test_a_static_graph_does_not() -> None:
    assert uses_jsonata(None) is False
