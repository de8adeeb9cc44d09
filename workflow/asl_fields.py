"""What single fields of States Language may hold: one check for each kind of value."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from chiron.workflow.asl_shapes import DROPPED, Check, Reading, bad, typed
from chiron.workflow.asl_variables import check_variable_name
from chiron.wrap.core.statemachine.paths import check_path, check_reference_path, check_result_path
from chiron.wrap.core.statemachine.templates import check_expression, check_template
from chiron.wrap.core.statemachine.values import instant, is_number

#: Most that the language allows for a number of seconds, attempts or branches at a time.
MOST = 99_999_999


def text(value: Any, path: str, _: Reading) -> str:
    found: str = typed(value, str, path)
    return found


def anything(value: Any, _: str, __: Reading) -> Any:
    return value


def whole(least: int, most: int = MOST) -> Check:
    """A check for a whole number from `least` to `most`."""

    def check(value: Any, path: str, _: Reading) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise bad(path, f"has to be a whole number from {least} to {most}")
        return value

    return check


def factor(value: Any, path: str, _: Reading) -> float:
    """A number from 1 on that a float holds."""
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
    """A check for one of a few words."""

    def check(value: Any, path: str, _: Reading) -> str:
        if value not in words:
            raise bad(path, f"has to be {' or '.join(words)}")
        found: str = value
        return found

    return check


def point_in_time(value: Any, path: str, _: Reading) -> str:
    """A timestamp as RFC 3339 has it."""
    if instant(value) is None:
        raise bad(path, "has to be a timestamp, like 2024-08-18T17:33:00Z")
    found: str = value
    return found


def path_of_data(value: Any, path: str, _: Reading) -> str:
    """A JSONPath into the data or the context object."""
    return _valid(check_path, value, path)


def path_of_one(value: Any, path: str, _: Reading) -> str:
    """A reference path: a JSONPath that selects one value."""
    return _valid(check_reference_path, value, path)


def path_or_null(value: Any, path: str, reading: Reading) -> str | None:
    """A JSONPath, or null for an empty object."""
    return None if value is None else path_of_data(value, path, reading)


def place_or_null(value: Any, path: str, _: Reading) -> str | None:
    """A reference path, which says where a result goes, or null to drop it."""
    return None if value is None else _valid(check_result_path, value, path)


def path_or_function(value: Any, path: str, _: Reading) -> str:
    """A JSONPath or an intrinsic function."""
    return _valid(check_expression, value, path)


def template(value: Any, path: str, reading: Reading) -> Any:
    """A payload template: an object, or a list, which may have some in it."""
    if not isinstance(value, dict | list):
        raise bad(path, "has to be an object")
    return parameters(value, path, reading)


def parameters(value: Any, path: str, _: Reading) -> Any:
    """Any JSON value, in which objects are payload templates."""
    try:
        check_template(value)
    except ValueError as error:
        raise bad(path, str(error)) from None
    return value


def assigned(value: Any, path: str, reading: Reading) -> Any:
    """Variables by their names, each with a value or, where the name ends in ``.$``, a path."""
    for name in typed(value, dict, path):
        check_variable_name(name.removesuffix(".$"), f"{path}.{name}")
    return template(value, path, reading)


def comment(value: Any, path: str, _: Reading) -> object:
    """A string that a machine does not need."""
    typed(value, str, path)
    return DROPPED


def _valid(check: Callable[[str], object], value: Any, path: str) -> str:
    """`value` if it is a string for which `check` does not raise ValueError."""
    found: str = typed(value, str, path)
    try:
        check(found)
    except ValueError as error:
        raise bad(path, str(error)) from None
    return found
