"""States lead to states of their own scope, all of them are reached, and loops have a way out."""

from __future__ import annotations

from typing import Any

import pytest

from chiron.workflow.asl import parse_states
from tests.rows import each_row

TASK = {"Type": "Task", "Resource": "f", "End": True}
RULE = {"Variable": "$.a", "IsNull": True}


def going(after: str, **fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": "f", "Next": after, **fields}


def choice(*targets: str, **fields: Any) -> dict[str, Any]:
    return {"Type": "Choice", "Choices": [RULE | {"Next": to} for to in targets], **fields}


def caught(*targets: str) -> dict[str, Any]:
    return {"Catch": [{"ErrorEquals": ["E"], "Next": to} for to in targets]}


def machine_of(**states: Any) -> dict[str, Any]:
    return {"StartAt": "A", "States": states}


@each_row(
    "document",
    [
        pytest.param(machine_of(A=going("C"), C=choice("A", "B"), B=TASK), id="loop by a Choice"),
        pytest.param(machine_of(A=going("C"), C=choice("A")), id="loop that a Choice may leave"),
        pytest.param(machine_of(A=choice("C", Default="C"), C=going("A")), id="loop without end"),
        pytest.param(machine_of(A=going("A", **caught("B")), B=TASK), id="loop left by a Catch"),
        pytest.param(machine_of(A=TASK | caught("B", "C"), B=TASK, C=TASK), id="reached by Catch"),
        pytest.param(machine_of(A=choice("B", Default="C"), B=TASK, C=TASK), id="by Default"),
    ],
)
def test_transitions_that_can_end_are_accepted(document):
    workflow = parse_states(document, "demo")
    assert workflow.machine == document


INNER = machine_of(A=TASK)


@each_row(
    ("document", "code", "path", "functions"),
    [
        pytest.param(
            machine_of(A=TASK | caught("X")),
            "unknown-next",
            "States.A.Catch[0].Next",
            ("X",),
            id="Catch",
        ),
        pytest.param(
            machine_of(A=choice("B", "X"), B=TASK),
            "unknown-next",
            "States.A.Choices[1].Next",
            ("X",),
            id="Choice",
        ),
        pytest.param(
            machine_of(A=choice("B", Default="X"), B=TASK),
            "unknown-next",
            "States.A.Default",
            ("X",),
            id="Default",
        ),
        pytest.param(
            {
                "StartAt": "M",
                "States": {
                    "M": {"Type": "Map", "ItemProcessor": machine_of(A=going("B")), "Next": "B"},
                    "B": TASK,
                },
            },
            "unknown-next",
            "States.M.ItemProcessor.States.A.Next",
            ("B",),
            id="out of a Map",
        ),
        pytest.param(
            {
                "StartAt": "M",
                "States": {"M": {"Type": "Map", "ItemProcessor": INNER, "Next": "A"}},
            },
            "unknown-next",
            "States.M.Next",
            ("A",),
            id="into a Map",
        ),
        pytest.param(
            machine_of(A=choice("C"), B=going("C"), C=TASK),
            "unreachable",
            "States.B",
            ("B",),
            id="unreachable",
        ),
        pytest.param(
            machine_of(A=choice("C"), B=choice("D"), C=TASK, D=going("B")),
            "unreachable",
            "States.B",
            ("B", "D"),
            id="unreachable loop",
        ),
        pytest.param(
            machine_of(A=choice("B", "D"), B=going("C"), C=going("B"), D=TASK),
            "cycle",
            "States.C.Next",
            ("B", "C"),
            id="loop behind a Choice",
        ),
    ],
)
def test_transitions_are_refused_with_the_path_of_the_field(
    refused, document, code, path, functions
):
    error = refused(parse_states, document, "demo")
    assert (error.code, error.path, error.functions) == (code, path, functions)


def test_what_is_unreachable_is_not_said_where_a_transition_is_unknown(refused):
    error = refused(parse_states, machine_of(A=going("X"), B=TASK), "demo")
    assert (error.code, error.functions) == ("unknown-next", ("X",))


def test_what_is_unreachable_is_said_beside_other_faults(refused):
    error = refused(parse_states, machine_of(A=TASK | {"InputPath": 1}, B=TASK), "demo")
    assert "(at States.A.InputPath)" in error.message
    assert "(at States.B)" in error.message
