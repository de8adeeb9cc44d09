"""The rules of a Choice have one operator each, that can be evaluated, and one Next."""

from __future__ import annotations

from typing import Any

from chiron.workflow.asl import parse_states
from chiron.wrap.core.statemachine.choices import OPERATORS
from tests.rows import each_row

ONE = {"Variable": "$.a", "StringEquals": "x"}
OPERANDS = {"String": "x", "Numeric": 1.5, "Boolean": True, "Timestamp": "2016-03-14T01:59:00Z"}


def machine_of(*rules: Any, **fields: Any) -> dict[str, Any]:
    choice = {"Type": "Choice", "Choices": list(rules), "Default": "A", **fields}
    states = {"C": choice, "A": {"Type": "Task", "Resource": "f", "End": True}}
    return {"StartAt": "C", "States": states}


def operand(name: str) -> Any:
    """Something that the operator takes."""
    if name.startswith("Is"):
        return True
    if name.endswith("Path"):
        return "$.b"
    return next(value for kind, value in OPERANDS.items() if name.startswith(kind))


@each_row("name", OPERATORS)
def test_every_operator_is_kept_with_what_it_compares(name):
    rule = {"Variable": "$.a", name: operand(name), "Next": "A"}
    machine = parse_states(machine_of(rule | {"Comment": "c"}), "demo").machine
    assert machine is not None
    assert machine["States"]["C"]["Choices"] == [rule]


def test_rules_nest_by_and_or_and_not():
    rule = {"And": [{"Or": [ONE]}, {"Not": {"Not": ONE}}], "Next": "A"}
    machine = parse_states(machine_of(rule, ONE | {"Next": "A"}), "demo").machine
    assert machine is not None
    assert machine["States"]["C"]["Choices"] == [rule, ONE | {"Next": "A"}]


@each_row("name", OPERATORS)
def test_an_operator_refuses_what_it_cannot_compare(refused, name):
    rule = {"Variable": "$.a", name: None, "Next": "A"}
    error = refused(parse_states, machine_of(rule), "demo")
    assert (error.code, error.path) == ("bad-field", f"States.C.Choices[0].{name}")
    assert error.message.startswith(f"{name} has to be")


REFUSED = [
    ({}, "missing-field", "[0].Next"),
    ({"Next": "A"}, "missing-field", "[0]"),
    ({"Variable": "$.a", "Next": "A"}, "missing-field", "[0]"),
    ({"StringEquals": "x", "Next": "A"}, "missing-field", "[0].Variable"),
    (ONE, "missing-field", "[0].Next"),
    (ONE | {"Next": 1}, "bad-field", "[0].Next"),
    (ONE | {"Next": "A", "IsNull": True}, "bad-field", "[0].IsNull"),
    (ONE | {"Next": "A", "And": [ONE]}, "bad-field", "[0].And"),
    ({"Or": [ONE], "Variable": "$.a", "Next": "A"}, "bad-field", "[0].Variable"),
    ({"Variable": "a", "IsNull": True, "Next": "A"}, "bad-field", "[0].Variable"),
    ({"Variable": "$.a", "StringEqual": "x", "Next": "A"}, "unknown-field", "[0].StringEqual"),
    ({"Condition": "{% true %}", "Next": "A"}, "unsupported-field", "[0].Condition"),
    (ONE | {"Next": "A", "Assign": 1}, "bad-field", "[0].Assign"),
    ({"Not": ONE | {"Assign": {}}, "Next": "A"}, "bad-field", "[0].Not.Assign"),
    ({"And": [], "Next": "A"}, "bad-field", "[0].And"),
    ({"And": ONE, "Next": "A"}, "bad-field", "[0].And"),
    ({"Not": [ONE], "Next": "A"}, "bad-field", "[0].Not"),
    ({"Not": ONE | {"Next": "A"}, "Next": "A"}, "bad-field", "[0].Not.Next"),
    ({"Or": [ONE, ONE | {"Next": "A"}], "Next": "A"}, "bad-field", "[0].Or[1].Next"),
    ({"Or": [{"And": [{}]}], "Next": "A"}, "missing-field", "[0].Or[0].And[0]"),
    (1, "bad-field", "[0]"),
]


@each_row(("rule", "code", "path"), REFUSED)
def test_a_rule_is_refused_with_the_path_of_its_field(refused, rule, code, path):
    error = refused(parse_states, machine_of(rule), "demo")
    assert (error.code, error.path) == (code, f"States.C.Choices{path}")


@each_row("choices", [[], {}, None])
def test_a_choice_has_at_least_one_rule(refused, choices):
    error = refused(parse_states, machine_of(Choices=choices), "demo")
    assert (error.code, error.path) == ("bad-field", "States.C.Choices")
