"""The rules of Choice states: one operator each, nested by And, Or and Not."""

from __future__ import annotations

from typing import Any

from workflow.asl_fields import (
    boolean,
    comment,
    number,
    path_of_data,
    point_in_time,
    text,
)
from workflow.asl_shapes import Check, Reading, Shape, checked, typed
from workflow.errors import ChironError

_ORDERED: dict[str, Check] = {"String": text, "Numeric": number, "Timestamp": point_in_time}
_RELATIONS = ("Equals", "LessThan", "GreaterThan", "LessThanEquals", "GreaterThanEquals")
_WITH_VALUE: dict[str, Check] = {
    **{f"{kind}{how}": check for kind, check in _ORDERED.items() for how in _RELATIONS},
    "BooleanEquals": boolean,
}
_COMPARISONS: dict[str, Check] = {
    **_WITH_VALUE,
    **{f"{operator}Path": path_of_data for operator in _WITH_VALUE},
    "StringMatches": text,
    **{
        f"Is{what}": boolean
        for what in ("Null", "Present", "Numeric", "String", "Boolean", "Timestamp")
    },
}


def choices(value: Any, path: str, reading: Reading) -> list[dict[str, Any]]:
    """The rules of a Choice state, the first of which that matches says what is next."""
    return _rules(value, path, reading, _OUTER)


def _rules(value: Any, path: str, reading: Reading, shape: Shape) -> list[dict[str, Any]]:
    if not typed(value, list, path):
        raise ChironError("bad-field", "a list of rules needs at least one", path=path)
    kept = []
    for index, rule in enumerate(value):
        with reading.faults.noting():
            kept.append(_rule(rule, f"{path}[{index}]", reading, shape))
    return kept


def _rule(value: Any, path: str, reading: Reading, shape: Shape) -> dict[str, Any]:
    rule = checked(value, shape, path, reading)
    given = [field for field in value if field in _COMPARISONS]
    with reading.faults.noting():
        if len(given) > 1:
            what = f"a rule has one operator, not {' and '.join(given)}: join rules with And"
            raise ChironError("bad-field", what, path=f"{path}.{given[1]}")
        if "Variable" in value and not given:
            raise ChironError("missing-field", "a rule needs an operator", path=path)
    return rule


def _nested(value: Any, path: str, reading: Reading) -> dict[str, Any]:
    return _rule(value, path, reading, _INNER)


def _nested_rules(value: Any, path: str, reading: Reading) -> list[dict[str, Any]]:
    return _rules(value, path, reading, _INNER)


def _no_next(_: Any, path: str, __: Reading) -> None:
    raise ChironError("bad-field", "a nested rule has no Next: its outermost has it", path=path)


_FIELDS: dict[str, Check] = {
    "Comment": comment,
    "Variable": path_of_data,
    "And": _nested_rules,
    "Or": _nested_rules,
    "Not": _nested,
    **_COMPARISONS,
}
_OPERATOR = (("Variable", "And", "Or", "Not"),)
_OUTER = Shape(_FIELDS | {"Next": text}, required=("Next",), exactly_one=_OPERATOR)
_INNER = Shape(_FIELDS | {"Next": _no_next}, exactly_one=_OPERATOR)
