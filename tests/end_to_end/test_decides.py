"""A workflow that decides while it runs, in a wrap and called by a client: they answer the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chiron.deployment.invoke import find_invoker
from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan

FUNCTIONS = {
    "check": """
import json

def handle(req):
    items = json.loads(req)["items"]
    if -1 in items:
        raise ValueError("one is negative")
    return str(len(items))
""",
    "price": "def handle(req):\n    return str(int(req) * 7)\n",
}


def task(function: str, **fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": function, **(fields or {"End": True})}


def branch(name: str) -> dict[str, Any]:
    return {"StartAt": name, "States": {name: task("price")}}


BOTH = {"Type": "Parallel", "Branches": [branch("Low"), branch("High")], "End": True}
MACHINE = {
    "StartAt": "Check",
    "States": {
        "Check": task(
            "check",
            ResultPath="$.count",
            Catch=[{"ErrorEquals": ["ValueError"], "ResultPath": "$.error", "Next": "Refused"}],
            Next="Any",
        ),
        "Any": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.count", "NumericGreaterThan": 0, "Next": "Items"}],
            "Default": "Refused",
        },
        "Items": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": {"StartAt": "Both", "States": {"Both": BOTH}},
            "End": True,
        },
        "Refused": {"Type": "Pass", "InputPath": "$.error", "End": True},
    },
}
WRAP = {"order-main": [["Check", "Low"], ["High"]]}
ALONE = {"order-check": [["Check"]], "order-low": [["Low"]], "order-high": [["High"]]}


@pytest.fixture
def plans(plan_by_hand) -> list[Plan]:
    known = {"workflow": "order", "trigger": "data"}
    return [
        plan_by_hand(WRAP, planner="pgp", **known),
        plan_by_hand(ALONE, planner="one-to-one", orchestrator="client", **known),
    ]


def test_the_client_answers_as_a_wrap_does(place, write_folder, plans, tmp_path):
    folder = write_folder(tmp_path / "order", MACHINE, FUNCTIONS, {})
    sources = Sources.read(folder)
    with place.deployed(folder, plans):
        wrap, client = (find_invoker(place.gateway, "order", each.planner) for each in plans)
        with wrap, client:
            for items in ([1], [4, -1], [*range(12)]):
                request = json.dumps({"items": items}).encode()
                expected = reference_run(sources, request, place.gateway.url).output
                assert wrap.invoke(request).output == client.invoke(request).output == expected
            for request in (b'{"items": []}', b"no JSON", b'{"items": ["x"]}'):
                errors = []
                for invoker in (wrap, client):
                    with pytest.raises(ChironError) as failed:
                        invoker.invoke(request)
                    errors.append((failed.value.code, failed.value.message))
                assert errors[0] == errors[1]
