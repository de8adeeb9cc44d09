"""What single fields of States Language may hold: one check for each kind of value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from workflow.asl_shapes import DROPPED, JSONATA, Check, Reading, bad, typed
from workflow.errors import ChironError
from workflow.states.paths import check_path, check_result_path
from workflow.states.templates import check_template
from workflow.states.values import instant, is_number

Kept = TypeVar("Kept")

#: Most that the language allows for a number of seconds, attempts or branches at a time.
MOST = 99_999_999


def text(value: Any, path: str, _: Reading) -> str:
    """A string."""
    found: str = typed(value, str, path)
    return found


def boolean(value: Any, path: str, _: Reading) -> bool:
    """True or false."""
    found: bool = typed(value, bool, path)
    return found


def anything(value: Any, _: str, __: Reading) -> Any:
    """Any JSON value."""
    return value


def whole(least: int) -> Check:
    """A check for a whole number from `least` on."""

    def check(value: Any, path: str, _: Reading) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
            raise bad(path, f"has to be a whole number from {least} to {MOST}")
        return value

    return check


def number(value: Any, path: str, _: Reading) -> float:
    """A finite number."""
    if not is_number(value) or not math.isfinite(value):
        raise bad(path, "has to be a number")
    return value


def factor(value: Any, path: str, reading: Reading) -> float:
    """A number from 1 on."""
    if number(value, path, reading) < 1:
        raise bad(path, "has to be 1 or more")
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


def path_or_null(value: Any, path: str, reading: Reading) -> str | None:
    """A JSONPath, or null for an empty object."""
    return None if value is None else path_of_data(value, path, reading)


def place_or_null(value: Any, path: str, _: Reading) -> str | None:
    """A reference path, which says where a result goes, or null to drop it."""
    return None if value is None else _valid(check_result_path, value, path)


def template(value: Any, path: str, _: Reading) -> dict[str, Any]:
    """A payload template."""
    return _valid(check_template, typed(value, dict, path), path)


def path_or_function(value: Any, path: str, _: Reading) -> str:
    """A JSONPath or an intrinsic function."""
    _valid(lambda given: check_template({"value.$": given}), typed(value, str, path), path)
    found: str = value
    return found


def comment(value: Any, path: str, _: Reading) -> object:
    """A string for people only."""
    typed(value, str, path)
    return DROPPED


def language(value: Any, path: str, _: Reading) -> object:
    """The query language, of which there is one here."""
    if value != "JSONPath":
        what = f"{JSONATA}ResultSelector and Variable"
        raise ChironError("unsupported-field", what, path=path)
    return DROPPED


def _valid(check: Callable[[Any], object], value: Kept, path: str) -> Kept:
    """`value` if `check` does not raise ValueError, whose reason is said else."""
    try:
        check(value)
    except ValueError as error:
        raise bad(path, str(error)) from None
    return value
