"""Evaluates the rules of Choice states in JSONPath."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from .errors import StatesError
from .paths import check_path, evaluate, is_definite
from .values import instant, number_of

_KEPT = 4096
_ABSENT = object()


def matches(rule: dict[str, Any], data: Any, context: Any) -> bool:
    """Whether `rule` holds for `data`. Values of another type than the operator's do not match.

    Raises StatesError, ``States.Runtime``, if a path finds nothing (except with IsPresent), and
    ValueError for an operand that `check_operand` refuses.
    """
    if "And" in rule:
        return all(matches(each, data, context) for each in rule["And"])
    if "Or" in rule:
        return any(matches(each, data, context) for each in rule["Or"])
    if "Not" in rule:
        return not matches(rule["Not"], data, context)
    name = next(name for name in rule if name in OPERATORS)
    look = _look if name == "IsPresent" else evaluate
    value = look(rule["Variable"], data, context)
    return OPERATORS[name].holds(value, rule[name], data, context)


def check_operand(name: str, operand: Any) -> None:
    """Raise ValueError, a line, unless the operator `name` of OPERATORS accepts `operand`."""
    OPERATORS[name].check(name, operand)


class _Kind(NamedTuple):
    """A comparable type; `comparable` maps a value to its sort key, or None for other types."""

    name: str
    comparable: Callable[[Any], Any]


class _Operator(NamedTuple):
    kind: _Kind
    test: Callable[[Any, Any], bool]
    is_path: bool = False

    def holds(self, value: Any, operand: Any, data: Any, context: Any) -> bool:
        other = evaluate(operand, data, context) if self.is_path else operand
        sides = self.kind.comparable(value), self.kind.comparable(other)
        return None not in sides and self.test(*sides)

    def check(self, name: str, operand: Any) -> None:
        if not self.is_path:
            if self.kind.comparable(operand) is None:
                raise ValueError(f"{name} has to be {self.kind.name}")
            if self.test is _fits:
                _pieces(operand)
        elif not isinstance(operand, str):
            raise ValueError(f"{name} has to be a path")
        else:
            check_path(operand)


class _Is(NamedTuple):
    """A test of a value's type."""

    test: Callable[[Any], bool]

    def holds(self, value: Any, operand: Any, data: Any, context: Any) -> bool:
        return self.test(value) is operand

    def check(self, name: str, operand: Any) -> None:
        if not isinstance(operand, bool):
            raise ValueError(f"{name} has to be true or false")


def _look(path: str, data: Any, context: Any) -> Any:
    """Return the value at `path`; `_ABSENT` if there is none, or an empty list of matches."""
    try:
        found = evaluate(path, data, context)
    except StatesError as error:
        if error.name != "States.Runtime":  # it takes too long, or cannot be applied
            raise
        return _ABSENT
    return _ABSENT if found == [] and not is_definite(path) else found


def _fits(text: str, pattern: str) -> bool:
    """Whether `text` matches `pattern`; takes time linear in their lengths."""
    first, *others = _pieces(pattern)
    if not others:
        return text == first
    *middle, last = others
    if not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return at <= end


@lru_cache(_KEPT)
def _pieces(pattern: str) -> tuple[str, ...]:
    """Return the texts between the wildcards of a StringMatches, unescaped."""
    pieces, escaped = [""], False
    for character in pattern:
        if escaped and character not in "*\\":
            break
        if escaped or character not in "*\\":
            pieces[-1] += character
            escaped = False
        elif character == "*":
            pieces.append("")
        else:
            escaped = True
    if escaped:
        raise ValueError(f"StringMatches {pattern!a} has a \\ before neither * nor \\")
    return tuple(pieces)


_STRING = _Kind("a string", lambda value: value if isinstance(value, str) else None)
_NUMBER = _Kind("a number", number_of)
_BOOLEAN = _Kind("true or false", lambda value: value if isinstance(value, bool) else None)
_TIMESTAMP = _Kind("a timestamp such as 2016-03-14T01:59:00Z", instant)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "GreaterThan": operator.gt,
    "LessThanEquals": operator.le,
    "GreaterThanEquals": operator.ge,
}
_ORDERED = {"String": _STRING, "Numeric": _NUMBER, "Timestamp": _TIMESTAMP}

_COMPARE = {
    f"{kind}{comparison}{suffix}": _Operator(_ORDERED[kind], test, suffix == "Path")
    for kind in _ORDERED
    for comparison, test in _COMPARISONS.items()
    for suffix in ("", "Path")
}

#: The operators of rules that compare or test a value.
OPERATORS: dict[str, _Operator | _Is] = {
    **_COMPARE,
    "BooleanEquals": _Operator(_BOOLEAN, operator.eq),
    "BooleanEqualsPath": _Operator(_BOOLEAN, operator.eq, is_path=True),
    "StringMatches": _Operator(_STRING, _fits),
    "IsNull": _Is(lambda value: value is None),
    "IsPresent": _Is(lambda value: value is not _ABSENT),
    "IsNumeric": _Is(lambda value: number_of(value) is not None),
    "IsString": _Is(lambda value: isinstance(value, str)),
    "IsBoolean": _Is(lambda value: isinstance(value, bool)),
    "IsTimestamp": _Is(lambda value: instant(value) is not None),
}
