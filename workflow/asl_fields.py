"""Checks of single fields of States Language: one for each kind of value."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from chiron.workflow.asl_shapes import DROPPED, Check, Reading, bad, typed
from chiron.workflow.asl_variables import check_variable_name
from chiron.wrap.core.statemachine.paths import check_path, check_reference_path, check_result_path
from chiron.wrap.core.statemachine.templates import check_expression, check_template
from chiron.wrap.core.statemachine.values import instant, is_number

#: The language's limit for seconds, attempts and concurrent branches.
MOST = 99_999_999


def text(value: Any, path: str, _: Reading) -> str:
    found: str = typed(value, str, path)
    return found


def anything(value: Any, _: str, __: Reading) -> Any:
    return value


def whole(least: int, most: int = MOST) -> Check:
    """Return a check for a whole number from `least` to `most`."""

    def check(value: Any, path: str, _: Reading) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise bad(path, f"has to be a whole number from {least} to {most}")
        return value

    return check


def factor(value: Any, path: str, _: Reading) -> float:
    """Check a number from 1 on within the range of a float."""
    if not is_number(value) or not 1 <= value <= sys.float_info.max:
        raise bad(path, f"has to be a number from 1 to {sys.float_info.max}")
    found: float = value
    return found


def percentage(value: Any, path: str, _: Reading) -> float:
    if not is_number(value) or not 0 <= value <= 100:
        raise bad(path, "has to be a number from 0 to 100")
    found: float = value
    return found


def one_of(*words: str) -> Check:
    """Return a check for one of a few words."""

    def check(value: Any, path: str, _: Reading) -> str:
        if value not in words:
            raise bad(path, f"has to be {' or '.join(words)}")
        found: str = value
        return found

    return check


def point_in_time(value: Any, path: str, _: Reading) -> str:
    """Check a timestamp of RFC 3339."""
    if instant(value) is None:
        raise bad(path, "has to be a timestamp, like 2024-08-18T17:33:00Z")
    found: str = value
    return found


def path_of_data(value: Any, path: str, _: Reading) -> str:
    """Check a JSONPath into the data or the context object."""
    return _valid(check_path, value, path)


def path_of_one(value: Any, path: str, _: Reading) -> str:
    """Check a reference path: a JSONPath that selects one value."""
    return _valid(check_reference_path, value, path)


def path_or_null(value: Any, path: str, reading: Reading) -> str | None:
    """Check a JSONPath, or null for an empty object."""
    return None if value is None else path_of_data(value, path, reading)


def place_or_null(value: Any, path: str, _: Reading) -> str | None:
    """Check a reference path for a result, or null to drop the result."""
    return None if value is None else _valid(check_result_path, value, path)


def path_or_function(value: Any, path: str, _: Reading) -> str:
    """Check a JSONPath or an intrinsic function."""
    return _valid(check_expression, value, path)


def template(value: Any, path: str, reading: Reading) -> Any:
    """Check a payload template: an object, or a list that may contain templates."""
    if not isinstance(value, dict | list):
        raise bad(path, "has to be an object")
    return parameters(value, path, reading)


def parameters(value: Any, path: str, _: Reading) -> Any:
    """Check a JSON value whose objects are payload templates."""
    try:
        check_template(value)
    except ValueError as error:
        raise bad(path, str(error)) from None
    return value


def assigned(value: Any, path: str, reading: Reading) -> Any:
    """Check an Assign: variable name -> value, or an expression if the name ends in ``.$``."""
    for name in typed(value, dict, path):
        check_variable_name(name.removesuffix(".$"), f"{path}.{name}")
    return template(value, path, reading)


def comment(value: Any, path: str, _: Reading) -> object:
    """Check a comment; the machine does not keep it."""
    typed(value, str, path)
    return DROPPED


def _valid(check: Callable[[str], object], value: Any, path: str) -> str:
    """Return `value` if it is a string that `check` accepts."""
    found: str = typed(value, str, path)
    try:
        check(found)
    except ValueError as error:
        raise bad(path, str(error)) from None
    return found
