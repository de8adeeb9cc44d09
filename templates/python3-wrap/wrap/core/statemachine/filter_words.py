"""Filter operators that are words, as in Jayway JsonPath: ``@.k in ['a', 'b']``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .values import identity


def _has(values: Any, value: Any) -> bool:
    return isinstance(values, list) and identity(value) in map(identity, values)


def _shared(one: Any, other: Any) -> list[bool] | None:
    """Whether `other` has each value of `one`; None unless both are lists."""
    if not isinstance(one, list) or not isinstance(other, list):
        return None
    kept = set(map(identity, other))
    return [identity(each) in kept for each in one]


def _contains(holder: Any, part: Any) -> bool:
    if isinstance(holder, str):
        return isinstance(part, str) and part in holder
    return _has(holder, part)


def _is_subset(one: Any, other: Any) -> bool:
    shared = _shared(one, other)
    return shared is not None and all(shared)


def _is_apart(one: Any, other: Any) -> bool:
    shared = _shared(one, other)
    return shared is not None and not any(shared)


def _is_of_size(value: Any, size: Any) -> bool:
    return isinstance(value, str | list | dict) and len(value) == size


def _is_empty(value: Any, wanted: Any) -> bool:
    return isinstance(value, str | list | dict) and (not value) is wanted


#: Operator -> whether it holds between its left and its right value.
WORDS: dict[str, Callable[[Any, Any], bool]] = {
    "in": lambda value, values: _has(values, value),
    "nin": lambda value, values: not _has(values, value),
    "contains": _contains,
    "subsetof": _is_subset,
    "anyof": lambda one, other: any(_shared(one, other) or ()),
    "noneof": _is_apart,
    "size": _is_of_size,
    "empty": _is_empty,
}
