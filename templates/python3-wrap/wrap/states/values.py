"""The values that flow between states: plain JSON values of Python, and what is no JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
#: Halves of surrogate pairs, but for those that stand for bytes that are no UTF-8.
_LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class Text(str):
    """A text that a function answered and that is no JSON."""

    __slots__ = ()


def parse(text: str) -> Any:
    """The value of `text` if it is strict JSON, else it as a `Text`.

    NaN and Infinity are no JSON, and neither is here what Python cannot hold: numbers too large
    for a float, or nesting too deep.
    """
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return Text(text)


def dump(value: Any) -> str:
    """`value` as a text: a `Text` as it is, all else as compact JSON.

    Half of a surrogate pair is written as an escape, as it was: no encoding has it.

    Raises ValueError where it holds a NaN or an infinite number.
    """
    if isinstance(value, Text):
        return str(value)
    text = _ENCODER.encode(value)
    return text if text.isascii() else _LONE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def is_number(value: Any) -> bool:
    """Whether `value` is a JSON number: true and false are none, though they are ints in Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def identity(value: Any) -> Hashable:
    """What two values share if, and only if, they are the same JSON value: 1 and 1.0 are."""
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, dict):
        return dict, frozenset((name, identity(each)) for name, each in value.items())
    if isinstance(value, list):
        return list, tuple(map(identity, value))
    return value  # type: ignore[no-any-return]  # None, a number or a str


def instant(value: Any) -> Fraction | None:
    """The seconds since 1970 at the timestamp `value`, None where it is none.

    One is a string of RFC 3339 with an upper-case T, and an upper-case Z or an offset. A leap
    second is the first second after it.
    """
    found = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    *fields, second = map(int, found.groups()[:6])
    if second > 60:
        return None
    try:
        minute = datetime(*fields, tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return None
    fraction, sign, hours, minutes = found.groups()[6:]
    elapsed = minute - _EPOCH
    seconds = Fraction(elapsed.days * 86400 + elapsed.seconds + second)
    if fraction:
        seconds += Fraction(f"0{fraction}")
    offset = (int(hours) * 60 + int(minutes)) * 60 if sign else 0
    return seconds + offset if sign == "-" else seconds - offset


def _refused(constant: str) -> None:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(digits)
    return number


_DECODER = json.JSONDecoder(parse_constant=_refused, parse_float=_finite)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
