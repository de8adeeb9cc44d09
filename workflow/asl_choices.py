"""Checks the rules of Choice states: one operator each, nested by And, Or and Not."""

from __future__ import annotations

from functools import partial
from typing import Any

from chiron.workflow.asl_fields import assigned, comment, path_of_data, text
from chiron.workflow.asl_queries import (
    NOT_IN_JSONATA,
    NOT_IN_JSONPATH,
    or_expression,
    query_template,
    query_variables,
    truth,
)
from chiron.workflow.asl_shapes import Check, Reading, Shape, checked, checked_each, typed
from chiron.workflow.errors import ChironError
from chiron.wrap.core.statemachine.choices import OPERATORS, check_operand


def choices(value: Any, path: str, reading: Reading) -> list[dict[str, Any]]:
    """Return the checked rules of a Choice state in JSONPath."""
    return _rules(value, path, reading, partial(_rule, shape=_OUTER))


def conditions(value: Any, path: str, reading: Reading) -> list[dict[str, Any]]:
    """Return the checked rules of a Choice state in JSONata."""
    return _rules(value, path, reading, _condition)


def _rules(value: Any, path: str, reading: Reading, check: Check) -> list[dict[str, Any]]:
    if not typed(value, list, path):
        raise ChironError("bad-field", "a list of rules needs at least one", path=path)
    return checked_each(value, check, path, reading)


def _condition(value: Any, path: str, reading: Reading) -> dict[str, Any]:
    return checked(value, _CONDITION, path, reading)


def _rule(value: Any, path: str, reading: Reading, shape: Shape) -> dict[str, Any]:
    before = len(reading.faults)
    rule = checked(value, shape, path, reading)
    if len(reading.faults) == before:
        _check_operator(rule, path)
    return rule


def _check_operator(rule: dict[str, Any], path: str) -> None:
    given = [field for field in rule if field in OPERATORS or field in _JOINING]
    if not given:
        what = "a rule needs an operator: one that compares a Variable, And, Or or Not"
        raise ChironError("missing-field", what, path=path)
    first, *more = given
    if more:
        what = f"a rule has one operator, not {first} and {more[0]}: join two rules with And"
        raise ChironError("bad-field", what, path=f"{path}.{more[0]}")
    if first in OPERATORS and "Variable" not in rule:
        what = f"{first} needs a Variable: the path of what it compares"
        raise ChironError("missing-field", what, path=f"{path}.Variable")
    if first in _JOINING and "Variable" in rule:
        what = f"{first} has no Variable: the rules in it have"
        raise ChironError("bad-field", what, path=f"{path}.Variable")


def _nested(value: Any, path: str, reading: Reading) -> dict[str, Any]:
    return _rule(value, path, reading, _INNER)


def _nested_rules(value: Any, path: str, reading: Reading) -> list[dict[str, Any]]:
    return _rules(value, path, reading, _nested)


def _outermost(_: Any, path: str, __: Reading) -> None:
    what = f"a nested rule has no {path.rpartition('.')[2]}: its outermost has it"
    raise ChironError("bad-field", what, path=path)


def _operand(value: Any, path: str, _: Reading) -> Any:
    try:
        check_operand(path.rpartition(".")[2], value)
    except ValueError as error:
        raise ChironError("bad-field", str(error), path=path) from None
    return value


_JOINING: dict[str, Check] = {"And": _nested_rules, "Or": _nested_rules, "Not": _nested}
_FIELDS: dict[str, Check] = {
    "Comment": comment,
    "Variable": path_of_data,
    **_JOINING,
    **dict.fromkeys(OPERATORS, _operand),
}
_OUTER = Shape(
    _FIELDS | {"Next": text, "Assign": assigned}, required=("Next",), refused=NOT_IN_JSONPATH
)
_CONDITION = Shape(
    {
        "Comment": comment,
        "Condition": or_expression(truth),
        "Assign": query_variables,
        "Output": query_template,
        "Next": text,
    },
    required=("Condition", "Next"),
    refused=NOT_IN_JSONATA,
)
_INNER = Shape(_FIELDS | {"Next": _outermost, "Assign": _outermost}, refused=NOT_IN_JSONPATH)
